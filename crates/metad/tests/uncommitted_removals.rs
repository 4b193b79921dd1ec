//! An active has applied removals that may never commit. Until they have committed, no data server is told to delete a
//! replica.

mod cluster;

use cluster::{
    Cluster, PATIENCE, Plan,
    files::{DataServer, HOLDER, create_request, files, finished, located, numbered},
};
use proto::hdfs::{self as p, datanode as d};
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

/// An active that is cut off may answer for so long.
const LEASE_MS: u64 = 5_000;
/// Hadoop's number for a file that takes the place of another.
const OVERWRITE: u32 = 3;

/// Files of one block each, and what would take it from them.
const PATHS: [&str; 3] = ["/deleted", "/overwritten", "/cut"];

/// Asks for all of it at once. The answers are not waited for.
fn remove(cluster: &Cluster, member: u32) {
    let delete = p::DeleteRequestProto { src: "/deleted".into(), ..p::DeleteRequestProto::default() };
    let overwrite =
        p::CreateRequestProto { create_flag: OVERWRITE, ..create_request("/overwritten", HOLDER) };
    let cut = p::TruncateRequestProto { src: "/cut".into(), new_length: 0, client_name: HOLDER.into() };
    let client = files(cluster, member);
    tokio::spawn(async move {
        let _ = tokio::join!(
            client.call_as::<_, p::DeleteResponseProto>(numbered(50), "delete", &delete),
            client.call_as::<_, p::CreateResponseProto>(numbered(51), "create", &overwrite),
            client.call_as::<_, p::TruncateResponseProto>(numbered(52), "truncate", &cut),
        );
    });
}

/// The blocks that the answer to one heartbeat orders to be deleted.
async fn deleted(cluster: &Cluster, server: &DataServer, member: u32) -> Vec<u64> {
    let commands = server.heartbeat(cluster, member).await.cmds;
    let orders = commands.into_iter().filter_map(|command| command.blk_cmd);
    let invalidate = d::block_command_proto::Action::Invalidate as i32;
    let orders = orders.filter(|order| order.action == invalidate);
    orders.flat_map(|order| order.blocks).map(|block| block.block_id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_removal_that_never_commits_deletes_nothing() {
    let timing = group::Settings { lease_ms: LEASE_MS, ..group::Settings::default() };
    let (mut cluster, active) = Plan::group(3).timed(timing).in_sync().await;
    let server = DataServer::register(&cluster, 3).await;
    let mut blocks = BTreeSet::new();
    for (path, call) in PATHS.into_iter().zip([10, 20, 30]) {
        finished(&cluster, &server, &files(&cluster, active), path, call).await;
        blocks.insert(located(&files(&cluster, active), path).await.blocks[0].b.block_id);
    }
    cluster.wait_until_equal().await;
    assert_eq!(deleted(&cluster, &server, active).await, [0; 0]);

    // The others hear nothing of what the active does now, and it does not know that yet.
    let (before, began) = (cluster.server(active).digest().0.sn, Instant::now());
    cluster.cables.pull(active);
    remove(&cluster, active);
    while cluster.server(active).digest().0.sn.0 < before.0 + PATHS.len() as u64 {
        assert!(began.elapsed() < PATIENCE, "the active does not apply what it is asked for");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..10 {
        assert_eq!(deleted(&cluster, &server, active).await, [0; 0], "nothing of it has committed");
    }
    assert!(cluster.server(active).replica().may_answer(), "its orders would have been obeyed");

    // It dies so. The files are there as before, and their blocks.
    cluster.kill(active).await;
    let next = cluster.wait_for_active(&[active]).await;
    for path in PATHS {
        let found = located(&files(&cluster, next), path).await;
        assert_eq!((found.file_length, found.blocks[0].locs.len()), (77, 1), "{path}");
        assert!(blocks.contains(&found.blocks[0].b.block_id));
    }

    // The files are removed again, and this time another member hears of it: now all replicas go.
    cluster.wait_in_sync(next, 2).await;
    remove(&cluster, next);
    let (mut gone, began) = (BTreeSet::new(), Instant::now());
    while gone != blocks {
        assert!(began.elapsed() < PATIENCE, "{gone:?} of {blocks:?} were ordered to be deleted");
        gone.extend(deleted(&cluster, &server, next).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    cluster.end().await;
}
