//! Replicas that the namespace does not have: what a deletion left, or what a namespace has lost.

use super::cluster::*;
use crate::*;
use base::{Block, BlockId, Epoch, GenerationStamp};

const SKIPPED: std::ops::RangeInclusive<BlockId> = BlockId(1_001)..=BlockId(2_000);

fn rows(ids: impl IntoIterator<Item = u64>) -> Vec<ReportedReplica> {
    ids.into_iter().map(|id| finalized(block(id, 10))).collect()
}

/// Two servers; the namespace has given out ids to 1000, skipped as many, and knows the first twenty.
fn cluster() -> Cluster {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.map.set_unknown_replicas(&[SKIPPED], false, cluster.now);
    cluster.map.set_last_allocated(BlockId(2_000), GenerationStamp(5_000));
    for id in 1..=20 {
        cluster.add_stored(block(id, 10), 2, &[1, 2]);
    }
    cluster
}

fn held(cluster: &Cluster) -> (u64, u64) {
    let held = cluster.map.stats().held;
    (held.replicas, held.bytes)
}

/// Blocks ordered to be deleted within a while, on server 1.
fn deleted(cluster: &mut Cluster) -> Vec<u64> {
    deletions(&cluster.pass(200, &[1])).into_iter().map(|(_, id)| id).collect()
}

#[test]
fn a_replica_whose_id_was_skipped_is_never_deleted_for_being_unknown() {
    let mut cluster = cluster();
    let done = cluster.report(1, &rows((1..=20).chain([50, 1_001, 1_500, 2_000])));
    assert_eq!(done.unknown, 4);
    cluster.tell(1, &[received(block(1_700, 10))]);
    assert_eq!(deleted(&mut cluster), [50], "50 was given out, and deleted");
    let stats = cluster.map.stats();
    assert_eq!((stats.skipped.replicas, stats.skipped.bytes), (4, 40));

    // No order releases them, and no takeover.
    cluster.map.allow_deletions(cluster.now);
    cluster.map.become_listening(cluster.now);
    cluster.map.become_commanding(Epoch(2), cluster.now);
    cluster.heartbeat(1);
    cluster.report(1, &rows((1..=20).chain([1_001, 1_500, 1_700, 2_000])));
    assert_eq!(deleted(&mut cluster), []);
    assert_eq!(cluster.map.stats().skipped.replicas, 4, "said anew, and not counted twice");
}

/// A standby hears of a block before it reads of it. Then the one that was active dies, and its last entries with it.
#[test]
fn a_replica_that_waited_for_the_namespace_is_not_deleted_when_its_id_is_skipped() {
    let mut cluster = Cluster::with_servers(config(), 1);
    cluster.map.set_last_allocated(BlockId(1_000), GenerationStamp(5_000));
    cluster.tell(1, &[received(block(1_004, 10))]);
    assert_eq!(cluster.map.stats().postponed, 1);
    cluster.map.set_unknown_replicas(&[SKIPPED], false, cluster.now);
    cluster.map.set_last_allocated(BlockId(2_000), GenerationStamp(6_000));
    assert_eq!(deleted(&mut cluster), []);
    assert_eq!((cluster.map.stats().postponed, cluster.map.stats().skipped.replicas), (0, 1));
}

#[test]
pub fn after_a_loss_nothing_unknown_is_deleted_until_the_log_allows_it() {
    let mut cluster = cluster();
    cluster.map.set_unknown_replicas(&[SKIPPED], true, cluster.now);
    cluster.report(1, &rows(1..=24));
    cluster.tell(1, &[received(block(30, 10))]);
    assert_eq!(deleted(&mut cluster), []);
    assert_eq!(held(&cluster), (5, 50));
    cluster.map.allow_deletions(cluster.now);
    assert_eq!(held(&cluster), (5, 50), "that order is the log's");

    // Replicas of blocks that the new active's own entries remove are deleted as ever.
    cluster.map.remove(&[BlockId(20)]);
    assert_eq!(deleted(&mut cluster), [20]);
    cluster.report(1, &rows(1..=24));
    assert_eq!(deleted(&mut cluster), [20], "nobody has held that back");

    // The next active is told by the log, and holds back what it hears of itself.
    cluster.map.become_listening(cluster.now);
    assert_eq!(held(&cluster), (0, 0));
    cluster.map.become_commanding(Epoch(2), cluster.now);
    cluster.heartbeat(1);
    cluster.report(1, &rows((1..=19).chain(21..=24)));
    assert_eq!((held(&cluster), deleted(&mut cluster)), ((4, 40), vec![]));

    cluster.map.set_unknown_replicas(&[SKIPPED], false, cluster.now);
    assert_eq!(deleted(&mut cluster), [21, 22, 23, 24]);
    assert_eq!(held(&cluster), (0, 0));
}

/// The entry that gave a block its newest stamp is lost. Its replicas are not what the namespace says, but they hold what
/// was acknowledged, and an old one that comes back does not make them worthless.
#[test]
fn after_a_loss_replicas_with_newer_stamps_stay() {
    let mut cluster = cluster();
    cluster.map.set_unknown_replicas(&[SKIPPED], true, cluster.now);
    cluster.map.set_replication(BlockId(20), 1, cluster.now);
    deleted(&mut cluster);
    cluster.map.set_replication(BlockId(20), 1, cluster.now);
    let newer = Block { generation_stamp: GenerationStamp(4_000), length: 15, ..block(19, 10) };
    cluster.map.set_replication(BlockId(19), 1, cluster.now);
    let keeps = |cluster: &mut Cluster| {
        let mut said = rows(1..=18);
        said.push(finalized(newer));
        cluster.report(1, &said);
        cluster.report(2, &rows(1..=20));
        deletions(&cluster.pass(200, &[1, 2])).into_iter().filter(|(_, id)| *id == 19).count()
    };
    assert_eq!(keeps(&mut cluster), 0);
    cluster.map.set_unknown_replicas(&[SKIPPED], false, cluster.now);
    assert_eq!(deletions(&cluster.pass(200, &[1, 2])), [(1, 19)]);
}

#[test]
fn too_many_unknown_replicas_at_once_wait_for_somebody_who_looks() {
    let mut cluster = cluster();
    cluster.report(1, &rows(1..=120));
    assert_eq!(deleted(&mut cluster).len(), 100, "a hundred are always few");
    assert!(cluster.map.take_events().held_back.is_empty());
    // A second report on the same day: together they are too many.
    cluster.report(1, &rows((1..=20).chain([200])));
    assert_eq!((deleted(&mut cluster), held(&cluster)), (vec![], (1, 10)));
    let warnings = cluster.map.take_events().held_back;
    assert_eq!(warnings, [HeldBack { server: "10.0.0.1:9866".into(), unknown: 101, replicas: 121 }]);
    assert_eq!(cluster.map.stats().servers_over_share, 1);
    cluster.tell(1, &[received(block(201, 10))]);
    assert_eq!(
        (deleted(&mut cluster), held(&cluster)),
        (vec![], (2, 20)),
        "nothing of this server's goes any more"
    );

    // The other server has nothing to do with it.
    cluster.report(2, &rows((1..=20).chain([300])));
    assert_eq!(deletions(&cluster.pass(200, &[2])), [(2, 300)]);

    cluster.map.allow_deletions(cluster.now);
    assert_eq!((deleted(&mut cluster), held(&cluster)), (vec![200, 201], (0, 0)));
    assert_eq!(cluster.map.stats().servers_over_share, 0);
    // Replicas that were not noted, for lack of room or because the entry came too late, may go with the next report.
    cluster.report(1, &rows(1..=400));
    assert_eq!(deleted(&mut cluster).len(), 380);
}

#[test]
fn a_share_of_a_large_server_is_more_than_a_hundred() {
    let config = Config { unknown_min: 3, unknown_share: 0.25, ..config() };
    let mut cluster = Cluster::with_servers(config, 1);
    cluster.map.set_last_allocated(BlockId(1_000), GenerationStamp(5_000));
    for id in 1..=30 {
        cluster.add_stored(block(id, 10), 1, &[1]);
    }
    cluster.report(1, &rows(1..=40));
    assert_eq!(deleted(&mut cluster).len(), 10, "10 of 40 are a quarter");
    cluster.report(1, &rows((1..=30).chain([50])));
    assert_eq!(deleted(&mut cluster), [], "11 of 41 are more");
}

/// A tree with most of all files is deleted, and the active dies before it has told anybody.
#[test]
fn what_the_namespace_has_removed_is_no_surprise_however_much_it_is() {
    let mut cluster = Cluster::with_servers(config(), 1);
    for id in 1..=400 {
        cluster.add_stored(block(id, 10), 1, &[1]);
    }
    cluster.map.become_listening(cluster.now);
    let removed: Vec<_> = (1..=390).map(BlockId).collect();
    cluster.map.remove(&removed);
    cluster.map.become_commanding(Epoch(2), cluster.now);
    cluster.heartbeat(1);
    cluster.report(1, &rows(1..=400));
    assert_eq!(deleted(&mut cluster).len(), 390);
    assert!(cluster.map.take_events().held_back.is_empty());
}

#[test]
fn what_there_is_no_room_for_is_counted() {
    let mut cluster = Cluster::with_servers(Config { max_held: 10, ..config() }, 1);
    cluster.map.set_last_allocated(BlockId(1_000), GenerationStamp(5_000));
    cluster.map.set_unknown_replicas(&[], true, cluster.now);
    for _ in 0..2 {
        cluster.report(1, &rows(1..=30));
        assert_eq!(held(&cluster), (30, 300), "said twice, and counted once");
    }
    cluster.map.set_unknown_replicas(&[], false, cluster.now);
    for round in 0..3 {
        assert_eq!(deleted(&mut cluster).len(), 10, "round {round}");
        cluster.report(1, &rows(11 + 10 * round..=30));
    }
}

#[test]
fn a_storage_that_is_lost_holds_nothing() {
    let mut cluster = cluster();
    cluster.map.set_unknown_replicas(&[SKIPPED], true, cluster.now);
    cluster.report(1, &rows(1..=24));
    cluster.tell(1, &[Increment::Deleted(block(21, 10))]);
    assert_eq!(held(&cluster), (3, 30), "its server says that one is gone");
    cluster.pass(3_000, &[2]);
    assert_eq!((cluster.map.stats().dead_servers, held(&cluster)), (1, (0, 0)));
}
