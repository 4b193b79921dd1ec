//! Quotas over directories whose files are in two groups. Their limits hold for both groups together, whatever happens to the servers.

mod cluster;

use base::ClientId;
use cluster::{
    Cluster, Plan,
    files::{create_request, insist},
    mkdirs_request, refused,
    two::{ELEVENTH, SECOND, Two},
};
use proto::hdfs as p;
use rpc::{CallError, Client};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

const KEEP: u64 = i64::MAX as u64;
const HOLDER: &str = "DFSClient_quotas_1";

async fn set_quota(client: &Client, path: &str, names: u64, space: u64) -> Result<(), CallError> {
    let request = p::SetQuotaRequestProto {
        path: path.into(),
        namespace_quota: names,
        storagespace_quota: space,
        storage_type: None,
    };
    client.call("setQuota", &request).await.map(|_: p::SetQuotaResponseProto| ())
}

async fn usage(client: &Client, path: &str) -> p::QuotaUsageProto {
    let request = p::GetQuotaUsageRequestProto { path: path.into() };
    let response: p::GetQuotaUsageResponseProto = client.call("getQuotaUsage", &request).await.unwrap();
    response.usage
}

async fn create(client: &Client, path: &str) -> Result<(), CallError> {
    client.call("create", &create_request(path, HOLDER)).await.map(|_: p::CreateResponseProto| ())
}

async fn mkdirs(client: &Client, path: &str) -> Result<(), CallError> {
    client.call("mkdirs", &mkdirs_request(path)).await.map(|_: p::MkdirsResponseProto| ())
}

async fn delete(client: &Client, path: &str) {
    let request = p::DeleteRequestProto { src: path.into(), recursive: true };
    let answer: p::DeleteResponseProto = client.call("delete", &request).await.unwrap();
    assert!(answer.result, "{path}");
}

fn assert_names_exceeded(answer: Result<(), CallError>, quota: u64) {
    let text = refused(answer, "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException");
    let expected = format!(
        "The NameSpace quota (directories and files) of directory /q is exceeded: quota={quota} file count={}",
        quota + 1
    );
    assert!(text.starts_with(&expected), "{text}");
}

/// Each name that fits is allowed in either group, and none that does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn both_groups_together_keep_the_limits_of_a_quota() {
    let two = Two::start(1, "/q").await;
    let clients = two.clients();
    let quota = two.directories + 6;
    set_quota(&clients[1], "/q", quota, KEEP).await.unwrap();
    for file in 0..6 {
        create(&clients[file % 2], &format!("{}/f{file}", two.homes[file / 3])).await.unwrap();
    }
    for client in &clients {
        for home in &two.homes {
            assert_names_exceeded(create(client, &format!("{home}/more")).await, quota);
            assert_names_exceeded(mkdirs(client, &format!("{home}/more")).await, quota);
        }
        let usage = usage(client, "/q").await;
        assert_eq!((usage.quota, usage.file_and_directory_count), (quota, quota));
    }
    // What one group gives back the other one may use.
    delete(&clients[0], &format!("{}/f0", two.homes[0])).await;
    create(&clients[0], &format!("{}/f6", two.homes[1])).await.unwrap();
    assert_names_exceeded(create(&clients[0], &format!("{}/f7", two.homes[0])).await, quota);
    // Without the quota all fit.
    set_quota(&clients[0], "/q", u64::MAX, KEEP).await.unwrap();
    create(&clients[0], &format!("{}/f7", two.homes[0])).await.unwrap();
    two.wait_until_same().await;
    two.end().await;
}

/// A group that has joined, and is no home yet, shares the quotas already.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_quota_is_kept_while_no_other_group_is_a_home() {
    let (first, active) = Cluster::in_sync(1).await;
    first.mkdirs(active, "/q").await;
    let (second, _) = Plan::further_group(&first, SECOND, ELEVENTH, 1).await.in_sync().await;
    let client = first.client(active);
    set_quota(&client, "/q", 3, KEEP).await.unwrap();
    for file in 0..2 {
        create(&client, &format!("/q/f{file}")).await.unwrap();
    }
    assert_names_exceeded(create(&client, "/q/more").await, 3);
    assert_names_exceeded(mkdirs(&client, "/q/more").await, 3);
    delete(&client, "/q/f0").await;
    mkdirs(&client, "/q/more").await.unwrap();
    second.end().await;
    first.end().await;
}

/// Many clients at once, in both groups, until nothing fits any more: not one name is lost to a group that does not need it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_clients_at_once_use_a_quota_up_to_the_last_name() {
    let two = Two::start(1, "/q").await;
    let quota = two.directories + 101;
    set_quota(&two.clients()[0], "/q", quota, KEEP).await.unwrap();
    let mut writers = Vec::new();
    for number in 0..8 {
        let client = two.clients().remove(number % 2);
        let base = format!("{}/w{number}", two.homes[number / 2 % 2]);
        writers.push(tokio::spawn(async move {
            let mut made = 0;
            loop {
                match create(&client, &format!("{base}-{made}")).await {
                    Ok(()) => made += 1,
                    Err(error) => {
                        refused(Err::<(), _>(error), "NSQuotaExceededException");
                        return made;
                    }
                }
            }
        }));
    }
    let mut made = 0;
    for writer in writers {
        made += writer.await.unwrap();
    }
    assert_eq!(made, 101);
    assert_eq!(usage(&two.clients()[1], "/q").await.file_and_directory_count, quota);
    two.wait_until_same().await;
    two.end().await;
}

/// The actives of both groups are killed, one after the other and both at once, while clients make and delete files at the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_limit_is_exceeded_while_actives_are_killed() {
    const LIMIT: u64 = 30;
    let mut two = Two::start(3, "/q").await;
    let quota = two.directories + LIMIT;
    set_quota(&two.clients()[0], "/q", quota, KEEP).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for number in 0..4 {
        let (base, is_over, door) = (two.homes[number % 2].clone(), is_over.clone(), two.door());
        writers.push(tokio::spawn(async move { work_in(&base, number, door, &is_over).await }));
    }
    for groups in [&[1][..], &[2], &[1, 2]] {
        two.kill_actives(groups).await;
    }
    is_over.store(true, Ordering::Release);
    let (mut left, mut made, mut refused) = (0, 0, 0);
    for writer in writers {
        let worked = writer.await.unwrap();
        left += worked.left;
        made += worked.made;
        refused += worked.refused;
    }
    assert!(made > 50 && refused > 10, "{made} made, {refused} refused");
    assert!(left <= LIMIT, "{left} files in a quota that has room for {LIMIT}");
    let active = two.first.wait_for_active(&[]).await;
    let usage = usage(&two.first.client(active), "/q").await;
    assert_eq!(usage.file_and_directory_count, two.directories + left);
    two.wait_until_same().await;
    two.first.wait_until_equal().await;
    two.second.wait_until_equal().await;
    two.end().await;
}

struct Worked {
    made: u64,
    refused: u64,
    /// Files that are there at the end.
    left: u64,
}

/// Makes files until it is refused, deletes half of them, and so on.
async fn work_in(
    base: &str,
    number: usize,
    door: impl Fn(usize) -> SocketAddr,
    is_over: &AtomicBool,
) -> Worked {
    let mut worked = Worked { made: 0, refused: 0, left: 0 };
    let mut names: Vec<String> = Vec::new();
    let (mut at, mut calls) = (number, 0);
    let name = ClientId([number as u8 + 1; 16]);
    while !is_over.load(Ordering::Acquire) {
        let path = format!("{base}/w{number}-{calls}");
        calls += 1;
        match insist::<_, p::CreateResponseProto>(
            &door,
            &mut at,
            name,
            calls,
            "create",
            &create_request(&path, HOLDER),
        )
        .await
        {
            Ok(_) => {
                worked.made += 1;
                names.push(path);
            }
            Err(error) => {
                refused(Err::<(), _>(error), "NSQuotaExceededException");
                worked.refused += 1;
                for path in names.drain(names.len() / 2..) {
                    calls += 1;
                    let request = p::DeleteRequestProto { src: path.clone(), recursive: false };
                    let deleted =
                        insist::<_, p::DeleteResponseProto>(&door, &mut at, name, calls, "delete", &request)
                            .await;
                    assert!(deleted.unwrap().result, "{path}");
                }
            }
        }
    }
    worked.left = names.len() as u64;
    worked
}
