//! Doors that know less than the groups behind them.

mod cluster;

use base::GroupId;
use cluster::{Cluster, Plan, files::create_request};
use group::Order;
use proto::hdfs as p;
use rpc::{CallError, Client};
use std::time::Duration;

const SECOND: GroupId = GroupId(2);
/// The first member of the second group.
const ELEVENTH: u32 = 11;

async fn two_homes(of_first: u32, of_second: u32) -> (Cluster, Cluster) {
    let (first, active) = Cluster::in_sync(of_first).await;
    let (second, _) = Plan::further_group(&first, SECOND, ELEVENTH, of_second).await.in_sync().await;
    first.give_slots(active, SECOND).await;
    (first, second)
}

/// A new directory whose home is this group.
async fn directory_of(first: &Cluster, group: u32) -> String {
    for number in 0.. {
        let active = first.wait_for_active(&[]).await;
        let path = format!("/of-{group}-{number}");
        first.mkdirs(active, &path).await;
        if first.server(active).home_of(&path).map(|home| home.0) == Some(group) {
            return path;
        }
    }
    unreachable!("a home is drawn for each directory")
}

async fn file(client: &Client, path: &str) {
    let _: p::CreateResponseProto =
        client.call("create", &create_request(path, "DFSClient_late_1")).await.unwrap();
}

async fn status(client: &Client, path: &str) -> Result<Option<p::HdfsFileStatusProto>, CallError> {
    let request = p::GetFileInfoRequestProto { src: path.into() };
    client.call::<_, p::GetFileInfoResponseProto>("getFileInfo", &request).await.map(|answer| answer.fs)
}

async fn summary(client: &Client, path: &str) -> Result<(u64, u64), CallError> {
    let request = p::GetContentSummaryRequestProto { path: path.into() };
    let answer: p::GetContentSummaryResponseProto = client.call("getContentSummary", &request).await?;
    Ok((answer.summary.directory_count, answer.summary.file_count))
}

async fn batched(
    client: &Client,
    request: &p::GetBatchedListingRequestProto,
) -> p::GetBatchedListingResponseProto {
    client.call("getBatchedListing", request).await.unwrap()
}

/// A member that is cut off from its group, and has not heard of a directory with a file.
struct Late {
    first: Cluster,
    second: Cluster,
    door: Client,
    /// By the home of the directory.
    directories: [String; 2],
}

impl Late {
    async fn start() -> Self {
        let (first, second) = two_homes(2, 3).await;
        let active = second.wait_for_active(&[]).await;
        let late = second.others(active)[1];
        second.cables.pull(late);
        second.wait_in_sync(active, 2).await;
        let directories = [directory_of(&first, 1).await, directory_of(&first, 2).await];
        for directory in &directories {
            file(&first.client(1), &format!("{directory}/f")).await;
        }
        assert_eq!(second.server(late).home_of(&directories[1]), None, "it has not heard of it");
        let door = second.client(late);
        Self { first, second, door, directories }
    }

    async fn end(self) {
        self.second.end().await;
        self.first.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_late_door_finds_the_files_of_its_own_group_and_of_others() {
    let late = Late::start().await;
    for directory in &late.directories {
        let found = status(&late.door, &format!("{directory}/f")).await;
        assert!(found.unwrap().is_some(), "{directory}");
        file(&late.door, &format!("{directory}/g")).await;
    }
    late.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_late_door_tells_the_whole_sum_of_a_directory_that_it_does_not_know() {
    let late = Late::start().await;
    for directory in &late.directories {
        assert_eq!(summary(&late.door, directory).await.unwrap(), (1, 1), "{directory}");
    }
    late.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_late_door_tells_the_sum_of_a_file_in_a_directory_that_it_does_not_know() {
    let late = Late::start().await;
    for directory in &late.directories {
        assert_eq!(summary(&late.door, &format!("{directory}/f")).await.unwrap(), (0, 1), "{directory}");
    }
    late.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_late_door_lists_directories_that_it_does_not_know() {
    let late = Late::start().await;
    let [one, other] = late.directories.clone();
    for paths in [
        vec![one.clone(), other.clone()],
        vec![other.clone(), "/".into(), one.clone(), "/none".into()],
        vec![format!("{other}/f"), format!("{one}/f"), other],
    ] {
        let request = p::GetBatchedListingRequestProto { paths: paths.clone(), ..Default::default() };
        let found = batched(&late.door, &request).await;
        let expected = batched(&late.first.client(1), &request).await;
        assert_eq!(found, expected);
        let told: Vec<(u32, usize)> = found
            .listings
            .iter()
            .map(|listing| (listing.parent_idx, listing.partial_listing.len()))
            .collect();
        let count = |path: &String| match path.as_str() {
            "/" => found.listings[1].partial_listing.len(),
            "/none" => 0,
            _ => 1,
        };
        assert_eq!(told, (0..).zip(paths.iter().map(count)).collect::<Vec<_>>());
    }
    late.end().await;
}

/// The door is the active of a home, and is elected out of office while its part of a sum waits for the root group.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sum_outlives_the_office_of_its_door() {
    let (mut first, second) = two_homes(1, 2).await;
    let directory = directory_of(&first, 2).await;
    let active = second.wait_for_active(&[]).await;
    let other = second.others(active)[0];
    let client = second.client(active);
    file(&client, &format!("{directory}/f")).await;
    first.kill_all().await;
    // The home's directory lease is over.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let asked = {
        let (client, directory) = (client.clone(), directory.clone());
        tokio::spawn(async move { summary(&client, &directory).await })
    };
    tokio::time::sleep(Duration::from_millis(300)).await;
    second.say(active, Order::HandOver { to: Some(base::MemberId(other)) }).await.unwrap();
    second.wait_for_active(&[active]).await;
    first.restart_all().await;
    let answer = asked.await.unwrap();
    assert_eq!(answer.unwrap(), (1, 1));
    second.end().await;
    first.end().await;
}
