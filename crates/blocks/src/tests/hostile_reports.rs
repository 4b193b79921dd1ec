//! Reports that lie: dropped and counted, never the end of the namespace's data.

use super::cluster::*;
use crate::*;
use base::{Block, BlockId, GenerationStamp};

#[test]
fn a_row_said_twice_counts_once_and_a_contradiction_is_dropped() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    let rows =
        [finalized(block(1, 5)), finalized(block(1, 5)), finalized(block(1, 6)), finalized(block(1, 5))];
    let done = cluster.report(1, &rows);
    assert_eq!((done.rows, done.duplicates, done.corrupt, done.needs_sweep), (4, 3, 0, false));
    assert_eq!(cluster.holders(1), [1, 2]);
    assert_eq!(cluster.map.stats().dropped_rows, 3);
}

#[test]
fn wrong_lengths_from_everywhere_delete_nothing() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    for server in 1..=3 {
        assert_eq!(cluster.report(server, &[finalized(block(1, 1 << 47))]).corrupt, 1);
    }
    assert!(cluster.pass(2_000, &[1, 2, 3]).is_empty());
    assert_eq!(cluster.map.facts(BlockId(1)).unwrap().block, block(1, 5));
    for server in 1..=3 {
        assert_eq!(cluster.report(server, &[finalized(block(1, 5))]).corrupt, 0);
    }
    assert_eq!(cluster.holders(1), [1, 2, 3]);
    assert_eq!(cluster.map.stats().corrupt, 0);
}

#[test]
fn unknown_blocks_are_deleted_only_if_the_namespace_has_been_beyond_them() {
    let mut cluster = Cluster::with_servers(config(), 1);
    cluster.map.set_last_allocated(BlockId(50), GenerationStamp(2000));
    let done = cluster.report(1, &[finalized(block(50, 1)), finalized(block(51, 1))]);
    assert_eq!(done.unknown, 1);
    assert_eq!(deletions(&cluster.pass(500, &[1])), [(1, 50)]);
    assert_eq!(cluster.map.stats().postponed, 1);
}

#[test]
fn a_flood_of_rows_about_the_future_is_bounded() {
    let mut cluster = Cluster::with_servers(Config { max_postponed: 10, ..config() }, 1);
    cluster.map.set_last_allocated(BlockId(1), GenerationStamp(2000));
    let rows: Vec<_> = (100..200).map(|id| finalized(block(id, 1))).collect();
    cluster.report(1, &rows);
    let stats = cluster.map.stats();
    assert_eq!((stats.postponed, stats.dropped_rows), (10, 90));
}

#[test]
fn a_stamp_from_the_future_marks_nothing() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.set_last_allocated(BlockId(1), GenerationStamp(2000));
    let future = Block { generation_stamp: GenerationStamp(1 << 39), ..block(1, 5) };
    cluster.tell(1, &[received(future)]);
    assert_eq!(cluster.holders(1), [1, 2]);
    assert_eq!(cluster.map.stats().corrupt, 0);
}

#[test]
fn extreme_numbers_are_survived() {
    let mut cluster = Cluster::with_servers(config(), 1);
    for id in [0, 1, u64::MAX - 1, u64::MAX] {
        let wild = Block { id: BlockId(id), generation_stamp: GenerationStamp(u64::MAX), length: u64::MAX };
        for state in [ReplicaState::Finalized, ReplicaState::BeingWritten, ReplicaState::Temporary] {
            cluster.report(1, &[ReportedReplica { block: wild, state }]);
        }
        cluster.tell(1, &[received(wild), Increment::Receiving(wild), Increment::Deleted(wild)]);
    }
    cluster.pass(500, &[1]);
}

#[test]
fn a_server_has_a_bounded_number_of_storages_and_the_cluster_of_servers() {
    let mut cluster = Cluster::with_servers(Config { max_servers: 2, ..config() }, 2);
    for at in 0..300 {
        let storage = format!("DS-flood-{at}");
        let answer =
            cluster.speak(1, |map, id, now| map.begin_report(id, &storage, StorageType::Disk, 0, now));
        assert_eq!(answer.is_ok(), at < 255);
    }
    let third = Registration {
        uuid: "third".into(),
        ip: "10.0.0.3".into(),
        transfer_port: 1,
        ..Registration::default()
    };
    assert_eq!(
        cluster.map.register(third, session(3), cluster.now),
        Err(RegisterError::TooMany { limit: 2 })
    );
    let nobody = cluster.map.register(Registration::default(), session(4), cluster.now);
    assert_eq!(nobody, Err(RegisterError::Incomplete));
}

/// Nobody told it to delete the replica, and a finished replica does not change.
#[test]
fn a_server_that_contradicts_itself_is_asked_for_a_full_report_at_once() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.add_stored(block(2, 5), 2, &[1, 2]);
    for contradiction in [Increment::Deleted(block(1, 5)), received(block(2, 6))] {
        let rows = [finalized(block(1, 5)), finalized(block(2, 5))];
        cluster.tell(1, std::slice::from_ref(&contradiction));
        assert!(cluster.holders(1) == [2] || cluster.holders(2) == [2], "until then it is believed");
        let commands = cluster.heartbeat(1);
        assert!(matches!(commands[..], [Command::Register]), "{commands:?}");
        // A server that goes on in this way would do nothing else than report in full, so it is asked only once in a
        // while.
        assert!(!matches!(cluster.heartbeat(1)[..], [Command::Register]));
        assert!(!matches!(cluster.heartbeat(2)[..], [Command::Register]), "the other one is not concerned");
        cluster.start(1);
        cluster.report(1, &rows);
        assert_eq!((cluster.holders(1), cluster.holders(2)), (vec![1, 2], vec![1, 2]));
        cluster.pass(1_000, &[1, 2, 3]);
    }
}

#[test]
fn what_was_ordered_is_no_contradiction() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.add_stored(block(2, 5), 3, &[1, 2, 3]);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    cluster.map.remove(&[BlockId(2)]);
    for (server, id) in deletions(&cluster.pass(100, &[1, 2, 3])) {
        cluster.tell(server, &[Increment::Deleted(block(id, 5))]);
    }
    for server in 1..=3 {
        assert!(cluster.heartbeat(server).is_empty());
    }
}
