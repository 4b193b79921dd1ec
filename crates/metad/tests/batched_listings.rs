//! One call lists directories of two homes. What it answers is what a single group would.

mod cluster;

use base::GroupId;
use cluster::{Cluster, Plan, files::create_request, mkdirs_request, refused};
use proto::{exception, hdfs as p, protocol};
use rpc::{CallError, Client};
use std::collections::BTreeMap;

const SECOND: GroupId = GroupId(2);
const ELEVENTH: u32 = 11;
const ENTRIES_MAX: usize = 4;
const PATHS_MAX: usize = 9;

/// Directories of both homes in turn, with their files.
struct Story {
    first: Cluster,
    second: Cluster,
    paths: Vec<String>,
}

impl Story {
    async fn start() -> Self {
        let limited = |plan: Plan| {
            plan.adjusted(|_, config| {
                config.limits.listing_max = ENTRIES_MAX;
                config.limits.batched_listing_paths_max = PATHS_MAX;
            })
        };
        let (first, active) = limited(Plan::group(2)).in_sync().await;
        let further = Plan::further_group(&first, SECOND, ELEVENTH, 2).await;
        let (second, _) = limited(further).in_sync().await;
        first.give_slots(active, SECOND).await;
        let mut of_home: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for number in 0.. {
            let path = format!("/d{number}");
            first.mkdirs(active, &path).await;
            let home = first.server(active).home_of(&path).expect("it is there");
            of_home.entry(home.0).or_default().push(path);
            if of_home.len() == 2 && of_home.values().all(|paths| paths.len() >= 3) {
                break;
            }
        }
        let paths = (0..6).map(|at| of_home[&(1 + at % 2)][at as usize / 2].clone()).collect();
        Self { first, second, paths }
    }

    fn clients_as(&self, user: &str) -> Vec<Client> {
        let of = |cluster: &Cluster| -> Vec<Client> {
            let client = |member| cluster.client_as(member, protocol::CLIENT_NAMENODE, user);
            cluster.running().into_iter().map(client).collect()
        };
        [of(&self.first), of(&self.second)].concat()
    }
}

async fn batched(
    client: &Client,
    paths: &[String],
    start_after: &[u8],
) -> Result<p::GetBatchedListingResponseProto, CallError> {
    let request = p::GetBatchedListingRequestProto {
        paths: paths.to_vec(),
        start_after: start_after.to_vec().into(),
        need_location: false,
    };
    client.call("getBatchedListing", &request).await
}

/// What the pages of a listing told: index of the path and name, or the class of the error. A line a page.
async fn pages(client: &Client, paths: &[String]) -> Vec<Vec<String>> {
    let (mut pages, mut cookie) = (Vec::new(), Vec::new());
    loop {
        let page = batched(client, paths, &cookie).await.unwrap();
        let mut told = Vec::new();
        for listing in page.listings {
            let index = listing.parent_idx;
            told.extend(
                listing
                    .partial_listing
                    .iter()
                    .map(|it| format!("{index} {}", String::from_utf8_lossy(&it.path))),
            );
            told.extend(listing.exception.map(|error| format!("{index} {}", error.class_name)));
        }
        pages.push(told);
        if !page.has_more {
            return pages;
        }
        cookie = page.start_after.to_vec();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn directories_of_two_homes_are_listed_as_those_of_one() {
    let story = Story::start().await;
    let clients = story.clients_as(cluster::SUPERUSER);
    let paths = &story.paths;
    for (path, count) in paths.iter().zip([2, 6, 0, 1, 3]) {
        for number in 0..count {
            let request = create_request(&format!("{path}/f{number}"), "DFSClient_batched_1");
            let _: p::CreateResponseProto = clients[0].call("create", &request).await.unwrap();
        }
    }
    let closed = p::SetPermissionRequestProto {
        src: paths[5].clone(),
        permission: p::FsPermissionProto { perm: 0o700 },
    };
    let _: p::SetPermissionResponseProto = clients[0].call("setPermission", &closed).await.unwrap();
    let none = format!("{}/none", paths[3]);
    let file = format!("{}/f0", paths[1]);
    let asked = [&paths[..], &[none, file]].concat();
    let expected: Vec<Vec<String>> = [
        // A page is over with the directory that fills it, and one directory never tells more than four.
        "0 f0,0 f1,1 f0,1 f1,1 f2,1 f3",
        "1 f4,1 f5,3 f0,4 f0,4 f1,4 f2",
        "5 org.apache.hadoop.security.AccessControlException,6 java.io.FileNotFoundException,7 ",
    ]
    .map(|page| page.split(',').map(str::to_owned).collect())
    .to_vec();
    for client in story.clients_as("bob") {
        assert_eq!(pages(&client, &asked).await, expected);
    }

    // Limits and cookies that make no sense are refused as in one group, by each door.
    for client in &clients {
        let many: Vec<String> = paths.iter().cycle().take(10).cloned().collect();
        let said = refused(batched(client, &many, b"").await, exception::ILLEGAL_ARGUMENT);
        assert!(said.contains("Too many source paths (10 > 9)"), "{said}");
        let said = refused(batched(client, paths, b"x").await, exception::ILLEGAL_ARGUMENT);
        assert!(said.contains("too short"), "{said}");
        let behind = batched(client, paths, &[0, 0, 0, 9]).await.unwrap();
        assert_eq!((behind.listings.len(), behind.has_more), (0, false));
        // The rest of a batch may be one home's alone.
        let rest = batched(client, paths, &[&[0, 0, 0, 4], &b"f1"[..]].concat()).await.unwrap();
        let names: Vec<&[u8]> =
            rest.listings.iter().flat_map(|it| &it.partial_listing).map(|it| &*it.path).collect();
        assert_eq!((names, rest.has_more), (vec![&b"f2"[..]], false));
    }
    story.second.end().await;
    story.first.end().await;
}

/// A directory's times and number of children are told as its home knows them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_batched_listing_tells_of_directories_what_their_homes_know() {
    let story = Story::start().await;
    let clients = story.clients_as(cluster::SUPERUSER);
    for path in &story.paths[..2] {
        for number in 0..4 {
            let directory = format!("{path}/below-{number}");
            let _: p::MkdirsResponseProto =
                clients[0].call("mkdirs", &mkdirs_request(&directory)).await.unwrap();
            let request = create_request(&format!("{directory}/f"), "DFSClient_batched_2");
            let _: p::CreateResponseProto = clients[1].call("create", &request).await.unwrap();
        }
    }
    for client in &clients {
        let (mut cookie, mut found) = (Vec::new(), 0);
        loop {
            let page = batched(client, &story.paths[..2], &cookie).await.unwrap();
            for listing in &page.listings {
                for entry in &listing.partial_listing {
                    let path = &story.paths[listing.parent_idx as usize];
                    let name = String::from_utf8_lossy(&entry.path);
                    let request = p::GetFileInfoRequestProto { src: format!("{path}/{name}") };
                    let status: p::GetFileInfoResponseProto =
                        client.call("getFileInfo", &request).await.unwrap();
                    let status = status.fs.unwrap();
                    assert_eq!(entry.children_num, Some(1), "{path}/{name}");
                    assert_eq!(entry.modification_time, status.modification_time, "{path}/{name}");
                    found += 1;
                }
            }
            if !page.has_more {
                break;
            }
            cookie = page.start_after.to_vec();
        }
        assert_eq!(found, 8);
    }
    story.second.end().await;
    story.first.end().await;
}
