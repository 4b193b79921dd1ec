//! A data server between metadata servers of several groups, each of which only plays its part: who hears of what, and
//! whose orders are obeyed about which blocks.

mod played;

use blockstore::VolumeIndex;
use datad::DataServer;
use played::{
    Metadata, block, eventually, http, invalidate, recovery, register_again, serve, start, store_block,
};
use proto::hdfs::datanode::received_deleted_block_info_proto::BlockStatus;
use rpc::Server;
use std::{path::Path, sync::Arc, time::Duration};

const ONE: &str = "BP-77-127.0.0.1-1700000000000";
const OTHER: &str = "BP-78-127.0.0.1-1700000000000";

fn active(pool: &str) -> (Arc<Metadata>, Server) {
    let metadata = Arc::new(Metadata::of("CID-one", pool));
    let rpc = serve(&metadata, "127.0.0.1:0");
    (metadata, rpc)
}

/// Returns when each of these has its first full report.
async fn start_with(root: &Path, all: &[&(Arc<Metadata>, Server)]) -> DataServer {
    let addresses: Vec<&Server> = all.iter().map(|(_, rpc)| rpc).collect();
    let server = start(root, &addresses).await;
    eventually("all have a full report", || all.iter().all(|(metadata, _)| has_report(metadata))).await;
    server
}

fn has_report(metadata: &Metadata) -> bool {
    !metadata.log.lock().full.is_empty()
}

fn has_block(server: &DataServer, pool: &str, id: u64) -> bool {
    server.state().pool(pool).unwrap().store.read(&block(pool, id)).is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_group_hears_of_its_own_pool_alone() {
    let root = tempfile::tempdir().unwrap();
    let (one, other) = (active(ONE), active(OTHER));
    let server = start_with(root.path(), &[&one, &other]).await;
    store_block(&server, ONE, 5);
    store_block(&server, OTHER, 5);
    store_block(&server, OTHER, 6);
    let (one, other) = (&one.0, &other.0);
    eventually("the one is told of its block", || one.changed(5, BlockStatus::Received)).await;
    eventually("the other of both of its own", || {
        other.changed(5, BlockStatus::Received) && other.changed(6, BlockStatus::Received)
    })
    .await;
    for pool in server.state().pools() {
        pool.reporter.request_full_report();
        let corrupt = block(&pool.id, 9).block;
        let node = server.state().identity.to_info_proto();
        pool.reporter.notify_corrupt(datad::reporter::Corrupt {
            block: corrupt,
            node,
            storage_id: String::new(),
        });
    }
    for (metadata, pool, count) in [(one, ONE, 1), (other, OTHER, 2)] {
        eventually("all reports have come", || {
            let log = metadata.log.lock();
            log.full.len() > 1 && !log.damaged.is_empty()
        })
        .await;
        let log = metadata.log.lock();
        assert_eq!(log.pools.iter().collect::<Vec<_>>(), [pool], "no report names another pool");
        assert_eq!(log.full.last().unwrap().reports[0].number_of_blocks, Some(count));
        assert_eq!(log.damaged.len(), 1);
        assert_eq!(log.registered.len(), 1);
    }
    assert!(!one.changed(6, BlockStatus::Received) && !one.changed(6, BlockStatus::Receiving));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_tells_the_figures_of_the_volume_and_the_pools_own_use() {
    let root = tempfile::tempdir().unwrap();
    let (one, other) = (active(ONE), active(OTHER));
    let server = start_with(root.path(), &[&one, &other]).await;
    store_block(&server, ONE, 5);
    store_block(&server, OTHER, 5);
    store_block(&server, OTHER, 6);
    // Six bytes, and a meta file with one sum.
    let size = 6 + 7 + 4;
    for ((metadata, _), own) in [(&one, size), (&other, 2 * size)] {
        eventually("a heartbeat tells of all", || {
            let log = metadata.log.lock();
            let report = &log.heartbeats.last().unwrap().reports[0];
            (report.dfs_used(), report.block_pool_used()) == (3 * size, own)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_about_the_pool_of_another_group_is_not_carried_out() {
    let root = tempfile::tempdir().unwrap();
    let (one, other) = (active(ONE), active(OTHER));
    let server = start_with(root.path(), &[&one, &other]).await;
    for id in [5, 6] {
        store_block(&server, ONE, id);
        store_block(&server, OTHER, id);
    }
    let here = server.state().identity.to_info_proto();
    let (one, other) = (&one.0, &other.0);
    // Both pools have a block 5. The one's active has no say about that of the other, be it to delete or to recover it.
    one.log.lock().commands.extend([
        invalidate(OTHER, 5),
        recovery(OTHER, 5, 1_002, vec![here]),
        invalidate(ONE, 6),
    ]);
    eventually("the order about its own is carried out", || one.changed(6, BlockStatus::Deleted)).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(has_block(&server, OTHER, 5) && has_block(&server, OTHER, 6));
    assert!(has_block(&server, ONE, 5) && !has_block(&server, ONE, 6));
    assert!(one.log.lock().recovered.is_empty() && other.log.lock().recovered.is_empty());
    let facts = server.state().pool(OTHER).unwrap().store.facts(OTHER, block(OTHER, 5).block.id).unwrap();
    assert_eq!(facts.block.generation_stamp.0, 1_001);

    other.log.lock().commands.push(invalidate(OTHER, 5));
    eventually("the group's own order is carried out", || other.changed(5, BlockStatus::Deleted)).await;
    assert!(has_block(&server, ONE, 5));
}

/// The members of two groups stand in any order in the configuration. Each group has an active, and both are obeyed.
#[tokio::test(flavor = "multi_thread")]
async fn each_group_has_its_own_leader() {
    let root = tempfile::tempdir().unwrap();
    let standby = |pool| {
        let metadata = Arc::new(Metadata { is_active: false, ..Metadata::of("CID-one", pool) });
        let rpc = serve(&metadata, "127.0.0.1:0");
        (metadata, rpc)
    };
    let all = [standby(OTHER), active(ONE), active(OTHER), standby(ONE)];
    let server = start_with(root.path(), &all.each_ref()).await;
    for (pool, leader) in [(ONE, &all[1]), (OTHER, &all[2])] {
        let pool = server.state().pool(pool).unwrap();
        eventually("a group has a leader", || pool.leadership.active().is_some()).await;
        let obeyed = pool.member(pool.leadership.active().unwrap());
        assert_eq!(obeyed.client.address(), leader.1.local_addr().to_string());
    }
    store_block(&server, ONE, 5);
    store_block(&server, OTHER, 5);
    for (metadata, _) in &all {
        eventually("all members are told", || metadata.changed(5, BlockStatus::Received)).await;
    }
    all[0].0.log.lock().commands.push(invalidate(OTHER, 5));
    all[1].0.log.lock().commands.push(invalidate(ONE, 5));
    eventually("the active is obeyed", || all[3].0.changed(5, BlockStatus::Deleted)).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(has_block(&server, OTHER, 5), "a standby is not obeyed, nor the active of another group");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_group_hears_of_its_own_blocks_when_a_volume_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let (one, other) = (active(ONE), active(OTHER));
    let server = start_with(root.path(), &[&one, &other]).await;
    store_block(&server, ONE, 5);
    store_block(&server, OTHER, 6);
    server.state().volumes.fail_volume(VolumeIndex(0), "pulled out");
    let (one, other) = (&one.0, &other.0);
    eventually("both are told", || {
        one.changed(5, BlockStatus::Deleted) && other.changed(6, BlockStatus::Deleted)
    })
    .await;
    assert!(!one.changed(6, BlockStatus::Deleted) && !other.changed(5, BlockStatus::Deleted));
    assert!(http(&server, "/health").await.contains("no volume left"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metadata_server_of_another_cluster_is_refused_and_the_others_go_on() {
    let root = tempfile::tempdir().unwrap();
    let (one, other) = (active(ONE), active(OTHER));
    start_with(root.path(), &[&one]).await.shutdown().await;

    let foreign = Metadata::new("CID-other");
    *foreign.pool.lock() = "BP-79-127.0.0.1-1700000000000".into();
    let foreign = (foreign.clone(), serve(&foreign, "127.0.0.1:0"));
    let server = start(root.path(), &[&foreign.1, &one.1, &other.1]).await;
    eventually("the two have a full report", || has_report(&other.0) && one.0.log.lock().full.len() > 1)
        .await;
    let address = foreign.1.local_addr();
    let mut health = String::new();
    for _ in 0..500 {
        health = http(&server, "/health").await;
        if health.contains("refused_by") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for part in [
        "HTTP/1.1 200",
        &format!("refused_by_{address}"),
        "clusterID is CID-one",
        "the metadata server's is CID-other",
    ] {
        assert!(health.contains(part), "{part} in: {health}");
    }
    assert!(!root.path().join("data/current/BP-79-127.0.0.1-1700000000000").exists());
    assert!(foreign.0.log.lock().registered.is_empty());
    store_block(&server, OTHER, 5);
    eventually("the other is told", || other.0.changed(5, BlockStatus::Received)).await;
    let end = tokio::time::timeout(Duration::from_millis(100), server.wait_ended()).await;
    assert!(end.is_err(), "one that refuses does not end the server");
}

/// Somebody has formatted it under the same cluster id. Its blocks are those of the old pool no more.
#[tokio::test(flavor = "multi_thread")]
async fn a_metadata_server_that_was_formatted_anew_is_refused_until_a_restart() {
    let root = tempfile::tempdir().unwrap();
    let (one, other) = (active(ONE), active(OTHER));
    let server = start_with(root.path(), &[&one, &other]).await;
    store_block(&server, ONE, 5);
    store_block(&server, OTHER, 5);
    let anew = "BP-80-127.0.0.1-1700000000000";
    *one.0.pool.lock() = anew.into();
    one.0.log.lock().commands.push(register_again());
    let mut health = String::new();
    for _ in 0..500 {
        health = http(&server, "/health").await;
        if health.contains("refused_by") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let said = format!("its block pool is {anew}, and was {ONE}: it was formatted anew");
    for part in [
        "HTTP/1.1 200",
        "\"state\":\"serving in part\"",
        &said,
        &format!("\"pools_alone\":\"{ONE}\""),
        "\"pools\":\"1 of 2\"",
    ] {
        assert!(health.contains(part), "{part} in: {health}");
    }
    assert!(server.state().pool(anew).is_err() && has_block(&server, ONE, 5));
    store_block(&server, OTHER, 6);
    eventually("the other goes on", || other.0.changed(6, BlockStatus::Received)).await;
    server.shutdown().await;

    let server = start(root.path(), &[&one.1, &other.1]).await;
    eventually("the new pool is served", || server.state().pool(anew).is_ok()).await;
    eventually("and reported as empty", || {
        let log = one.0.log.lock();
        log.full
            .last()
            .is_some_and(|full| full.block_pool_id == anew && full.reports[0].number_of_blocks == Some(0))
    })
    .await;
    eventually("the other's as it was", || {
        other.0.log.lock().full.last().unwrap().reports[0].number_of_blocks == Some(2)
    })
    .await;
    let of_old = root.path().join(format!("data/current/{ONE}/current/finalized/subdir0/subdir0/blk_5"));
    assert!(of_old.is_file(), "the replicas of the old pool stay");
}
