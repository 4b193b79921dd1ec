//! Snapshots of directories whose files are in two groups: each is one cut through both, whatever happens to the servers.

mod cluster;

use base::ClientId;
use cluster::{
    files::{create_request, insist},
    refused,
    two::Two,
    until,
};
use proto::hdfs as p;
use rpc::Client;
use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

const HOLDER: &str = "DFSClient_snapshots_1";

async fn allow(client: &Client) {
    let request = p::AllowSnapshotRequestProto { snapshot_root: "/s".into() };
    let _: p::AllowSnapshotResponseProto = client.call("allowSnapshot", &request).await.unwrap();
}

fn named(name: &str) -> p::CreateSnapshotRequestProto {
    p::CreateSnapshotRequestProto { snapshot_root: "/s".into(), snapshot_name: Some(name.into()) }
}

/// An empty file that is closed.
async fn file(client: &Client, path: &str) {
    let made: p::CreateResponseProto = client.call("create", &create_request(path, HOLDER)).await.unwrap();
    let request = p::CompleteRequestProto {
        src: path.into(),
        client_name: HOLDER.into(),
        last: None,
        file_id: made.fs.and_then(|fs| fs.file_id),
    };
    let closed: p::CompleteResponseProto = client.call("complete", &request).await.unwrap();
    assert!(closed.result);
}

async fn status(client: &Client, path: &str) -> p::HdfsFileStatusProto {
    let request = p::GetFileInfoRequestProto { src: path.into() };
    let answer: p::GetFileInfoResponseProto = client.call("getFileInfo", &request).await.unwrap();
    answer.fs.unwrap()
}

async fn delete(client: &Client, path: &str) {
    let request = p::DeleteRequestProto { src: path.into(), recursive: true };
    let answer: p::DeleteResponseProto = client.call("delete", &request).await.unwrap();
    assert!(answer.result, "{path}");
}

async fn names(client: &Client, path: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut start_after = Vec::new();
    loop {
        let request = p::GetListingRequestProto {
            src: path.into(),
            start_after: start_after.clone().into(),
            need_location: false,
        };
        let answer: p::GetListingResponseProto = client.call("getListing", &request).await.unwrap();
        let page = answer.dir_list.unwrap_or_else(|| panic!("{path} is not there"));
        for entry in page.partial_listing {
            start_after = entry.path.to_vec();
            names.insert(String::from_utf8(entry.path.to_vec()).unwrap());
        }
        if page.remaining_entries == 0 {
            return names;
        }
    }
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// Only a directory's home knows when the directory's files changed last. Every server's lists of snapshottable directories and of snapshots have the same times as a status.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lists_of_snapshots_have_the_times_that_the_homes_of_their_directories_know() {
    let two = Two::start(1, "/s").await;
    let clients = two.clients();
    for home in &two.homes {
        let request = p::AllowSnapshotRequestProto { snapshot_root: home.clone() };
        let _: p::AllowSnapshotResponseProto = clients[0].call("allowSnapshot", &request).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        file(&clients[0], &format!("{home}/f")).await;
        let request =
            p::CreateSnapshotRequestProto { snapshot_root: home.clone(), snapshot_name: Some("one".into()) };
        let _: p::CreateSnapshotResponseProto = clients[0].call("createSnapshot", &request).await.unwrap();
    }
    for client in &clients {
        // A home that does not answer for a second is not waited for.
        until("the lists say what a status says", async || {
            let request = p::GetSnapshottableDirListingRequestProto {};
            let listed: p::GetSnapshottableDirListingResponseProto =
                client.call("getSnapshottableDirListing", &request).await.unwrap();
            let listed = listed.snapshottable_dir_list.unwrap().snapshottable_dir_listing;
            assert_eq!(listed.len(), 2);
            for home in &two.homes {
                let name = home.rsplit('/').next().unwrap();
                let directory = listed.iter().find(|listed| *listed.dir_status.path == *name.as_bytes());
                let (now, told) = (status(client, home).await, &directory.unwrap().dir_status);
                if (told.modification_time, told.children_num) != (now.modification_time, now.children_num) {
                    return false;
                }
            }
            true
        })
        .await;
        for home in &two.homes {
            let request = p::GetSnapshotListingRequestProto { snapshot_root: home.clone() };
            let listed: p::GetSnapshotListingResponseProto =
                client.call("getSnapshotListing", &request).await.unwrap();
            let snapshot = &listed.snapshot_list.unwrap().snapshot_listing[0].dir_status;
            let then = status(client, &format!("{home}/.snapshot/one")).await;
            assert_eq!(snapshot.modification_time, then.modification_time, "{home}/.snapshot/one");
        }
    }
    two.end().await;
}

/// Directories had one file when a snapshot was taken, and have none now. A listing in the snapshot tells what a status there tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_listing_in_a_snapshot_has_what_the_homes_of_its_directories_knew() {
    let two = Two::start(1, "/s").await;
    let clients = two.clients();
    allow(&clients[0]).await;
    for home in &two.homes {
        file(&clients[0], &format!("{home}/f")).await;
    }
    let _: p::CreateSnapshotResponseProto = clients[0].call("createSnapshot", &named("all")).await.unwrap();
    for home in &two.homes {
        delete(&clients[1], &format!("{home}/f")).await;
    }
    for client in &clients {
        until("listings of what was say what a status says", async || {
            let request = p::GetListingRequestProto {
                src: "/s/.snapshot/all".into(),
                start_after: Vec::new().into(),
                need_location: false,
            };
            let answer: p::GetListingResponseProto = client.call("getListing", &request).await.unwrap();
            let listed = answer.dir_list.unwrap().partial_listing;
            let mut are_same = true;
            for home in &two.homes {
                let name = home.rsplit('/').next().unwrap();
                let told = listed.iter().find(|listed| *listed.path == *name.as_bytes()).unwrap();
                let then = status(client, &format!("/s/.snapshot/all/{name}")).await;
                assert_eq!(then.children_num, Some(1), "{home}");
                are_same &= (told.modification_time, told.children_num)
                    == (then.modification_time, then.children_num);
            }
            are_same
        })
        .await;
    }
    two.end().await;
}

/// Every door shows the files of both groups as they were, sums them up, and tells what has changed since.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_door_shows_a_snapshot_of_both_groups() {
    let two = Two::start(1, "/s").await;
    let clients = two.clients();
    allow(&clients[1]).await;
    for home in &two.homes {
        file(&clients[0], &format!("{home}/old")).await;
        file(&clients[1], &format!("{home}/gone")).await;
    }
    let made: p::CreateSnapshotResponseProto =
        clients[1].call("createSnapshot", &named("one")).await.unwrap();
    assert_eq!(made.snapshot_path, "/s/.snapshot/one");
    for home in &two.homes {
        delete(&clients[1], &format!("{home}/gone")).await;
        file(&clients[0], &format!("{home}/new")).await;
    }
    let below = |home: &str| home.rsplit('/').next().unwrap().to_owned();
    for client in &clients {
        for home in &two.homes {
            let then = format!("/s/.snapshot/one/{}", below(home));
            assert_eq!(names(client, &then).await, set(["old", "gone"]));
            assert_eq!(names(client, home).await, set(["old", "new"]));
        }
        let request = p::GetContentSummaryRequestProto { path: "/s/.snapshot/one".into() };
        let sum: p::GetContentSummaryResponseProto =
            client.call("getContentSummary", &request).await.unwrap();
        assert_eq!((sum.summary.file_count, sum.summary.directory_count), (4, two.directories));
        let request = p::GetSnapshotDiffReportRequestProto {
            snapshot_root: "/s".into(),
            from_snapshot: "one".into(),
            to_snapshot: String::new(),
        };
        let report: p::GetSnapshotDiffReportResponseProto =
            client.call("getSnapshotDiffReport", &request).await.unwrap();
        let lines: Vec<String> = report.diff_report.diff_report_entries.iter().map(line).collect();
        let mut expected = Vec::new();
        let mut homes: Vec<String> = two.homes.iter().map(|home| below(home)).collect();
        homes.sort();
        for home in homes {
            let of_home = ["M {}", "+ {}/new", "- {}/gone"].map(|line| line.replace("{}", &home));
            expected.extend(of_home);
        }
        assert_eq!(lines, expected);
    }
    // A file in a snapshot stays where it is, and the one that came later moves.
    let [from, to] = &two.homes;
    let rename = |name: &str| p::RenameRequestProto {
        src: format!("{from}/{name}"),
        dst: format!("{to}/{name}-moved"),
    };
    let answer = clients[0].call::<_, p::RenameResponseProto>("rename", &rename("old")).await;
    let said = refused(answer.map(drop), "UnsupportedOperationException");
    assert!(said.contains("is in a snapshot"), "{said}");
    let moved: p::RenameResponseProto = clients[0].call("rename", &rename("new")).await.unwrap();
    assert!(moved.result);
    let request = p::DeleteSnapshotRequestProto { snapshot_root: "/s".into(), snapshot_name: "one".into() };
    let _: p::DeleteSnapshotResponseProto = clients[0].call("deleteSnapshot", &request).await.unwrap();
    assert!(names(&clients[1], "/s/.snapshot").await.is_empty());
    two.wait_until_same().await;
    two.end().await;
}

fn line(entry: &p::SnapshotDiffReportEntryProto) -> String {
    format!("{} {}", entry.modification_label, String::from_utf8_lossy(&entry.fullpath))
}

/// A client makes one file after the other, in turn in either home. Each snapshot that is taken meanwhile has all up to one of them, and none behind it; also while
/// the actives of both groups are killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_snapshot_is_one_cut_through_both_groups() {
    let mut two = Two::start(3, "/s").await;
    allow(&two.clients()[0]).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = {
        let (homes, door, is_over) = (two.homes.clone(), two.door(), is_over.clone());
        tokio::spawn(async move { write_in_turn(&homes, &door, &is_over).await })
    };
    let taker = {
        let (door, is_over) = (two.door(), is_over.clone());
        tokio::spawn(async move { take_snapshots(&door, &is_over).await })
    };
    for groups in [&[1][..], &[2], &[1, 2]] {
        two.kill_actives(groups).await;
    }
    is_over.store(true, Ordering::Release);
    let (made, taken) = (writer.await.unwrap(), taker.await.unwrap());
    assert!(made > 20 && taken > 10, "{made} files, {taken} snapshots");
    let below: Vec<String> =
        two.homes.iter().map(|home| home.rsplit('/').next().unwrap().to_owned()).collect();
    let clients = two.clients();
    let mut longest = 0;
    for snapshot in 0..taken {
        let client = &clients[snapshot % clients.len()];
        let mut files = BTreeSet::new();
        for directory in &below {
            let then = format!("/s/.snapshot/s{snapshot}/{directory}");
            files.extend(names(client, &then).await.iter().map(|name| name.parse::<usize>().unwrap()));
        }
        let count = files.len();
        assert_eq!(files, (0..count).collect(), "snapshot {snapshot}");
        assert!(count >= longest, "snapshot {snapshot} has less than one before it");
        longest = count;
    }
    two.wait_until_same().await;
    two.first.wait_until_equal().await;
    two.second.wait_until_equal().await;
    two.end().await;
}

/// Returns how many files there are.
async fn write_in_turn(
    homes: &[String; 2],
    door: &impl Fn(usize) -> SocketAddr,
    is_over: &AtomicBool,
) -> usize {
    let (mut at, mut made) = (0, 0);
    while !is_over.load(Ordering::Acquire) {
        let request = create_request(&format!("{}/{made}", homes[made % 2]), HOLDER);
        let call = made as i32 + 1;
        let answer =
            insist::<_, p::CreateResponseProto>(door, &mut at, ClientId([1; 16]), call, "create", &request)
                .await;
        assert!(answer.unwrap().fs.is_some());
        made += 1;
    }
    made
}

/// Returns how many snapshots there are.
async fn take_snapshots(door: &impl Fn(usize) -> SocketAddr, is_over: &AtomicBool) -> usize {
    let (mut at, mut taken) = (1, 0);
    while !is_over.load(Ordering::Acquire) {
        let request = named(&format!("s{taken}"));
        let (name, call) = (ClientId([2; 16]), taken as i32 + 1);
        let answer = insist::<_, p::CreateSnapshotResponseProto>(
            door,
            &mut at,
            name,
            call,
            "createSnapshot",
            &request,
        )
        .await;
        assert_eq!(answer.unwrap().snapshot_path, format!("/s/.snapshot/s{taken}"));
        taken += 1;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    taken
}
