//! Stories of orders to delete of which nobody knows whether they are carried out.

use super::cluster::*;
use crate::*;
use base::{Block, BlockId, Epoch, GenerationStamp};

/// Server 1 has two storages. It was ordered to delete the replica of block 1 on the first one.
fn ordered_on_first_storage() -> Cluster {
    let mut cluster = Cluster::with_servers(config(), 2);
    let mut heartbeat = two_storages(1);
    cluster.beat_with(1, &heartbeat);
    cluster.report_of(1, SECOND, &[]);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    heartbeat.storages.iter_mut().for_each(|storage| storage.remaining = 1);
    cluster.beat_with(1, &heartbeat);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert_eq!(cluster.beat_with(1, &heartbeat), [1]);
    cluster
}

/// An order is repeated because an early report names the replica. Both orders are under way when the data server tells of one deletion. If that
/// ended the doubt about both, the block would be copied there again, and the second order would delete the new copy.
#[test]
fn one_word_of_deletion_does_not_end_two_orders() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.beat(1, 1); // 1 is full
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert_eq!(cluster.beat(1, 1), [1], "the first order");
    cluster.report(1, &[finalized(block(1, 5))]); // made before
    let second = cluster.beat(1, GIB * 80);
    cluster.tell(1, &[Increment::Deleted(block(1, 5))]); // the first was carried out
    cluster.sweep();

    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    let copies = transfers(&cluster.pass(200, &[2]));
    if copies.iter().any(|(_, id, to)| *id == 1 && *to == [uuid(1)]) {
        cluster.tell(1, &[received(block(1, 5))]);
    }
    cluster.beat(2, 1); // 2 is full now
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let third = cluster.beat(2, 1);
    assert!(
        second.is_empty() || third.is_empty(),
        "server 1 has an order under way {second:?}, and now server 2 has one too {third:?}: the block is lost"
    );
}

/// The order to delete is under way when the data server moves the replica to another of its storages, as Hadoop's disk balancer does. Its full
/// report tells: the first storage lacks the replica, the second has it. The order stands.
#[test]
fn the_report_of_one_storage_does_not_end_the_doubt_about_a_replica_that_was_moved() {
    let mut cluster = ordered_on_first_storage();

    // Server 2 would be chosen now. One full report, two storages; the broom comes by in between.
    cluster.beat(2, 0);
    cluster.beat_with(1, &two_storages(1));
    cluster.report_of(1, &storage(1), &[]);
    cluster.sweep();
    cluster.report_of(1, SECOND, &[finalized(block(1, 5))]);
    assert!(cluster.beat(2, 0).is_empty(), "both are ordered to go");
}

/// The broom has not come by in between. The replica is not rescued when the order is queued again and the replica wanted once more.
#[test]
fn a_moved_replica_is_not_rescued_before_the_broom_has_come_by() {
    let mut cluster = ordered_on_first_storage();
    cluster.report_of(1, &storage(1), &[]);
    cluster.report_of(1, SECOND, &[finalized(block(1, 5))]);
    cluster.report_of(1, SECOND, &[finalized(block(1, 5))]);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    assert_eq!(cluster.live(1), 1, "the first order may be carried out at any moment");
}

/// Server 1 was ordered to delete its superfluous replica, and the answer was lost. The file is opened for append on server 2, which is lost before
/// anything is written. Server 1 has the last replica and says so: it is asked to begin anew.
#[test]
fn the_last_replica_of_an_unfinished_block_is_not_ignored_for_an_order_that_was_lost() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.beat(1, 1);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert_eq!(cluster.beat(1, 1), [1], "this answer is lost");
    cluster.map.reopen(block(1, 5), &[]);
    cluster.speak(2, |map, id, _| map.give_up_server(id)).unwrap();
    let mut asked = false;
    for _ in 0..10 {
        cluster.report(1, &[finalized(block(1, 5))]);
        let commands = cluster.pass(5_000, &[1, 3]);
        asked |= commands.iter().any(|(of, command)| *of == 1 && matches!(command, Command::Register));
    }
    let may_recover = cluster.map.begin_recovery(BlockId(1), None, cluster.now);
    assert!(asked || may_recover, "server 1 has the block, says so, and nobody listens");
}

/// This server loses its lease for a moment and is elected again; nobody else has led. Hadoop's data servers do not notice: an order that waits in
/// their queue is carried out. A full report, made meanwhile under a permission of the new reign, still names the replica.
#[test]
fn an_order_of_the_reign_before_is_still_under_way_when_the_same_server_leads_again() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.beat(1, 1);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert_eq!(cluster.beat(1, 1), [1]);
    cluster.map.become_listening(cluster.now);
    cluster.map.become_commanding(Epoch(3), cluster.now);
    for server in [1, 2] {
        cluster.beat(server, if server == 1 { 80 * GIB } else { 1 });
        cluster.report(server, &[finalized(block(1, 5))]);
    }
    cluster.sweep();
    cluster.map.tick(cluster.now, &|_| 0);
    assert!(cluster.beat(2, 1).is_empty(), "both are ordered to go");
}

/// A data server is told to register. Hadoop's would put later orders behind that in its queue, and carry them out in its new session, in which they
/// are forgotten. So it gets none before.
#[test]
fn a_data_server_that_was_told_to_register_gets_no_orders_before_it_has() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(2, 5), 1, &[1]);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.beat(1, 1); // it is full
    cluster.tell(1, &[Increment::Deleted(block(2, 5))]); // contradicts what it said before
    let commands = cluster.heartbeat(1);
    assert!(matches!(commands[..], [Command::Register]), "{commands:?}");
    cluster.now = cluster.now.plus_ms(100);
    cluster.beat(1, 1);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let told = cluster.beat(1, 1);
    assert!(told.is_empty(), "it will carry this out after it has registered");
}

/// A replica that is too short is to be deleted. Before it is ordered the data server has a good one on its other storage. That one does not count
/// towards the number that lets it be deleted.
#[test]
fn a_replica_that_is_to_go_does_not_count_for_its_own_deletion() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.beat_with(1, &two_storages(1));
    cluster.report_of(1, SECOND, &[]);
    cluster.add_stored(block(1, 5), 1, &[2]);
    cluster.tell(1, &[received(block(1, 4))]);
    assert_eq!(cluster.map.deletions().len(), 1);
    let increments = [received(block(1, 5))];
    cluster
        .speak(1, |map, id, now| map.incremental_report(id, SECOND, StorageType::Disk, &increments, now))
        .unwrap();
    cluster.speak(2, |map, id, _| map.give_up_server(id)).unwrap();
    let told = cluster.beat_with(1, &two_storages(1));
    assert!(told.is_empty(), "the last good replica is ordered to go");
    cluster.check();
}

/// The namespace tells which replicas a recovery has left, before their servers report them. A full report whose picture was taken before the recovery
/// comes in afterwards, and does not name the replica. The order that was given meanwhile stands.
#[test]
fn a_report_older_than_a_recovery_does_not_end_the_doubt() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.reopen(block(1, 5), &[]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    // Server 1 takes the picture for a full report now, while it recovers the block.
    let picture = [ReportedReplica { block: block(1, 5), state: ReplicaState::UnderRecovery }];
    let recovered = Block { generation_stamp: GenerationStamp(1002), ..block(1, 5) };
    cluster.map.set_last_allocated(BlockId(10), GenerationStamp(1002));
    let places = [cluster.place(1), cluster.place(2)];
    cluster.map.set_pipeline(recovered, &places);
    cluster.beat(1, 1); // it is full, and is chosen
    cluster.map.recovered(recovered, &places, cluster.now);
    cluster.map.commit(recovered, cluster.now);
    cluster.map.complete(BlockId(1), cluster.now);
    assert_eq!(cluster.beat(1, 80 * GIB), [1], "the first order, which is carried out");
    cluster.report(1, &picture);
    cluster.sweep();
    cluster.beat(2, 1); // server 2 would be chosen now
    cluster.tell(1, &[received(recovered)]); // "deleted" comes a moment later
    let second = cluster.beat(2, 1);
    assert!(second.is_empty(), "the only one that is left is ordered to go");
}

/// An order is under way, and is queued once more. The file is opened for append with its stamp and closed with nothing written: the replica is not
/// recorded any more. The next full reports name it. The first order is in doubt all the same.
#[test]
fn a_report_that_names_a_replica_does_not_end_the_doubt_about_it() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.beat(1, 1);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert_eq!(cluster.beat(1, 80 * GIB), [1], "the order that is under way");
    let rows = [finalized(block(1, 5))];
    cluster.report(1, &rows);
    cluster.map.reopen(block(1, 5), &[]);
    cluster.map.commit(block(1, 5), cluster.now);
    cluster.map.complete(BlockId(1), cluster.now);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    cluster.report(1, &rows);
    assert!(cluster.beat(1, 80 * GIB).is_empty(), "it is needed");
    cluster.report(1, &rows);
    assert_eq!(cluster.live(1), 1, "the order may be carried out at any moment");
    cluster.beat(2, 1);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    assert!(cluster.beat(2, 1).is_empty(), "both are ordered to go");
}
