//! The ways of messages between groups: to actives that were deposed and live on, and to a group that was away for long.

mod cluster;

use base::GroupId;
use cluster::{Cluster, Plan, way::Way};
use proto::{clover::admin as a, protocol};
use std::time::{Duration, Instant};

const SECOND: GroupId = GroupId(2);

async fn log_of(cluster: &Cluster, member: u32) -> a::GetDirectoryLogResponseProto {
    let client = cluster.client_as(member, protocol::ADMIN, "anybody");
    client.call("getDirectoryLog", &a::GetDirectoryLogRequestProto {}).await.unwrap()
}

fn with_ways(plan: Plan, first: u32, count: u32) -> (Plan, Vec<Way>) {
    let ways: Vec<Way> = (0..count).map(|_| Way::default()).collect();
    let laid = ways.clone();
    let plan = plan
        .adjusted(move |member, config| laid[(member - first) as usize].lay(&mut config.group.coordinator));
    (plan, ways)
}

/// The active of the root group is cut off from its group and from the coordinator. Other groups reach it still. The next one has them all the
/// same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_finds_the_new_root_while_the_old_one_answers() {
    let (plan, ways) = with_ways(Plan::group(3), 1, 3);
    let (first, old) = plan.in_sync().await;
    first.mkdirs(old, "/before").await;
    let (second, _) = Plan::further_group(&first, SECOND, 11, 1).await.in_sync().await;
    cluster::until("a session", async || {
        log_of(&first, old).await.groups.iter().any(|group| group.has_session && group.is_leased)
    })
    .await;
    ways[old as usize - 1].cut();
    first.cables.pull(old);
    let new = first.wait_for_active(&[old]).await;
    let began = Instant::now();
    first.mkdirs(new, "/after").await;
    let mut has_session = false;
    while began.elapsed() < cluster::PATIENCE && !has_session {
        has_session = log_of(&first, new).await.groups.iter().any(|group| group.has_session);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // As soon as the old one can be heard by its group it works.
    ways[old as usize - 1].mend();
    first.cables.plug_in(old);
    cluster::until("the group has a session with the new root", async || {
        log_of(&first, new).await.groups.iter().any(|group| group.has_session)
    })
    .await;
    assert!(has_session, "the group spoke with the deposed active only");
    second.end().await;
    first.end().await;
}

/// The same with the active of the other group.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_root_finds_the_new_active_of_a_group_while_the_old_one_answers() {
    let (first, root) = Cluster::in_sync(2).await;
    first.mkdirs(root, "/before").await;
    let (plan, ways) = with_ways(Plan::further_group(&first, SECOND, 11, 3).await, 11, 3);
    let (second, old) = plan.in_sync().await;
    cluster::until("a session", async || log_of(&second, old).await.is_serving).await;
    ways[(old - 11) as usize].cut();
    second.cables.pull(old);
    let new = second.wait_for_active(&[old]).await;
    let began = Instant::now();
    let mut is_serving = false;
    while began.elapsed() < cluster::PATIENCE && !is_serving {
        is_serving = log_of(&second, new).await.is_serving;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(is_serving, "the root group's active speaks with the deposed active only");
    second.end().await;
    first.end().await;
}

/// The group carries them out in many turns of its writer: one turn for all would hold up everything else of that server, until it ends itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_group_that_lacks_thousands_of_entries_catches_up() {
    let (first, root) = Cluster::in_sync(2).await;
    let (mut second, member) = Plan::further_group(&first, SECOND, 11, 1).await.in_sync().await;
    cluster::until("a session", async || log_of(&second, member).await.is_serving).await;
    second.kill(member).await;
    let count = 12_000;
    let writers: Vec<_> = (0..100)
        .map(|writer| {
            let client = first.client(root);
            tokio::spawn(async move {
                for number in 0..count / 100 {
                    let path = format!("/w/{writer}/{number}");
                    while cluster::try_mkdirs(&client, &path).await.is_err() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    second.restart(member).await;
    second.wait_for_active(&[]).await;
    cluster::until("it has come as far", async || {
        second.server(member).directories_digest() == first.server(root).directories_digest()
    })
    .await;
    second.end().await;
    first.end().await;
}
