//! Stories of data servers with two storages, between which they move replicas, and of which one fails, while a deletion is under way.

use super::cluster::*;
use crate::*;
use base::BlockId;

/// Server 1 has two storages. Block 1 is on the first of them, and on another server.
fn cluster() -> Cluster {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.beat_with(1, &two_storages(1));
    cluster.report_of(1, SECOND, &[]);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster
}

/// Server 1 is the one that is told to delete its replica, because it is full.
fn order_first(cluster: &mut Cluster) {
    let mut full = two_storages(1);
    full.storages.iter_mut().for_each(|storage| storage.remaining = 1);
    cluster.beat_with(1, &full);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert_eq!(deletions(&cluster.pass(100, &[1, 2])), [(1, 1)]);
}

fn live_and_excess(cluster: &Cluster) -> (usize, usize) {
    cluster.map.replicas(BlockId(1)).map(|it| (it.live, it.excess)).unwrap()
}

/// The data server moves the replica to its second storage before the order arrives, and the word that the first one has lost it does not say
/// that the order is carried out.
#[test]
fn a_deletion_on_another_storage_does_not_end_the_doubt() {
    let mut cluster = cluster();
    order_first(&mut cluster);
    cluster.tell_of(1, SECOND, &[received(block(1, 5))]);
    cluster.tell(1, &[Increment::Deleted(block(1, 5))]);
    cluster.report_of(1, SECOND, &[finalized(block(1, 5))]);
    assert_eq!(live_and_excess(&cluster), (1, 1), "it is to go, and does not count again");
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    assert_eq!(live_and_excess(&cluster), (1, 1), "not even if it is needed");
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.tell_of(1, SECOND, &[Increment::Deleted(block(1, 5))]);
    assert_eq!(live_and_excess(&cluster), (1, 0));
}

/// The order has not gone out when the replica is moved. It stays one that is to go.
#[test]
fn a_replica_that_is_to_go_may_be_moved_before() {
    let mut cluster = cluster();
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let goes = match &cluster.map.deletions()[..] {
        [(server, _)] => server.uuid().to_string(),
        waiting => panic!("{waiting:?}"),
    };
    assert_eq!(goes, uuid(2), "the one with less room");
    let mut cluster = self::cluster();
    let mut full = two_storages(1);
    full.storages.iter_mut().for_each(|storage| storage.remaining = 1);
    cluster.beat_with(1, &full);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    cluster.tell_of(1, SECOND, &[received(block(1, 5))]);
    assert_eq!(live_and_excess(&cluster), (1, 1));
    assert_eq!(deletions(&cluster.pass(100, &[1, 2])), [(1, 1)]);
    cluster.tell_of(1, SECOND, &[Increment::Deleted(block(1, 5))]);
    assert_eq!(live_and_excess(&cluster), (1, 0));
}

/// A replica with rotten bytes is moved: its bytes are no better on the other storage.
#[test]
fn a_damaged_replica_that_is_moved_stays_damaged() {
    let mut cluster = cluster();
    cluster.map.report_bad(block(1, 5), &uuid(1), None, cluster.now);
    cluster.tell_of(1, SECOND, &[received(block(1, 5))]);
    let replicas = cluster.map.replicas(BlockId(1)).unwrap();
    assert_eq!((replicas.live, replicas.corrupt), (1, 1));
}

/// The order is under way when the storage fails. Nothing will be reported of it any more, so the data server is asked to begin anew. Then it
/// may receive the block again.
#[test]
fn a_storage_that_fails_does_not_leave_the_deletion_in_doubt_for_ever() {
    let mut cluster = cluster();
    order_first(&mut cluster);
    let mut failed = two_storages(1);
    failed.storages[0].state = StorageState::Failed;
    let answer = cluster.speak(1, |map, id, now| map.heartbeat(id, &failed, now)).unwrap();
    assert!(matches!(answer[..], [Command::Register]), "{answer:?}");
    cluster.sweep();

    // Another server has a new storage, which takes the number of the one that failed. What is there counts.
    let second = StorageReport { id: "DS-other".into(), ..heartbeat_of(3).storages[0].clone() };
    let mut heartbeat = heartbeat_of(3);
    heartbeat.storages.push(second);
    cluster.speak(3, |map, id, now| map.heartbeat(id, &heartbeat, now)).unwrap();
    let increments = [received(block(1, 5))];
    let said = cluster
        .speak(3, |map, id, now| map.incremental_report(id, "DS-other", StorageType::Disk, &increments, now));
    said.unwrap();
    cluster.check();
    cluster.map.set_replication(BlockId(1), 3, cluster.now);

    cluster.start(1);
    cluster.report_of(1, SECOND, &[]);
    let copies = transfers(&cluster.pass(300, &[1, 2, 3]));
    assert!(matches!(&copies[..], [(_, 1, to)] if *to == [uuid(1)]), "{copies:?}");
}

/// The order is under way when the storage fails. The replica had been moved, and the order is carried out there a moment later: a report
/// made in between does not have it count.
#[test]
fn a_storage_that_fails_does_not_end_the_doubt_about_a_replica_on_another() {
    let mut cluster = cluster();
    order_first(&mut cluster);
    let mut failed = two_storages(1);
    failed.storages[0].state = StorageState::Failed;
    cluster.speak(1, |map, id, now| map.heartbeat(id, &failed, now)).unwrap();
    cluster.report_of(1, SECOND, &[finalized(block(1, 5))]);
    assert_eq!(live_and_excess(&cluster).0, 1);
    assert!(deletions(&cluster.pass(300, &[2])).is_empty());
}
