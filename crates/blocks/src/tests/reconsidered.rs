//! Stories of deletions that were right when they were decided, and are not when they would go out.

use super::cluster::*;
use crate::*;
use base::{BlockId, InodeId};

/// The data server that is to be told to delete its replica, and has not been told yet.
fn to_be_told(cluster: &Cluster) -> u16 {
    match &cluster.map.deletions()[..] {
        [(server, _)] => server.uuid().trim_start_matches("uuid-").parse().unwrap(),
        waiting => panic!("one data server is to be told: {waiting:?}"),
    }
}

/// A server was switched off a moment ago, and nobody knows yet whether it comes back.
#[test]
fn no_replica_goes_for_the_sake_of_one_on_a_silent_server() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    let stale_ms = config().stale_interval_ms;
    cluster.pass(stale_ms + 200, &[2, 3]);
    // Of two, the replica on the fuller server goes.
    cluster.beat(2, GIB);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let commands = cluster.pass(500, &[2, 3]);
    assert_eq!(deletions(&commands), [], "the replica on the silent server may be lost");
    let commands = cluster.pass(500, &[1, 2, 3]);
    only_one_told(&commands);
}

/// One of two replicas is to go. Its server has not been told when the other one's server starts anew. It may have lost everything, and it has.
#[test]
pub fn an_order_does_not_go_out_while_the_other_replica_is_not_surely_there() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let goes = to_be_told(&cluster);
    let stays = 3 - goes;
    cluster.start(stays);
    assert!(deletions(&cluster.pass(300, &[1, 2])).is_empty(), "nobody knows what {stays} holds");
    cluster.report(stays, &[]);
    assert!(deletions(&cluster.pass(300, &[1, 2])).is_empty(), "it is the last one");
    assert_eq!(cluster.holders(1), [goes]);
    assert_eq!(cluster.live(1), 1);
}

/// As above, and the other server comes back with its replica: one of the two goes after all.
#[test]
fn an_order_that_was_held_back_is_decided_anew() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let stays = 3 - to_be_told(&cluster);
    cluster.start(stays);
    cluster.pass(300, &[1, 2]);
    cluster.report(stays, &[finalized(block(1, 5))]);
    only_one_told(&cluster.pass(300, &[1, 2]));
}

/// The other one's server is lost, and the broom has not come by.
#[test]
fn an_order_does_not_go_out_when_the_server_of_the_other_replica_is_lost() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let goes = to_be_told(&cluster);
    cluster.speak(3 - goes, |map, id, _| map.give_up_server(id)).unwrap();
    assert!(cluster.heartbeat(goes).is_empty(), "it is the last one");
    cluster.check();
    assert_eq!(cluster.live(1), 1);
}

/// A damaged replica is to go because a good one is there. It is not gone when the good one's server starts anew, and comes back empty.
#[test]
fn a_damaged_replica_stays_while_the_good_one_is_not_surely_there() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 1, &[1]);
    cluster.tell(2, &[received(block(1, 4))]);
    assert_eq!(to_be_told(&cluster), 2);
    cluster.start(1);
    assert!(deletions(&cluster.pass(300, &[1, 2])).is_empty());
    cluster.report(1, &[]);
    assert!(deletions(&cluster.pass(300, &[1, 2])).is_empty(), "its bytes may be all that is left");
    assert_eq!(cluster.map.replicas(BlockId(1)).unwrap().corrupt, 1);
}

/// A full report lacks a replica. The broom has not come by when fewer replicas are wanted. None goes, for none is too much.
#[test]
pub fn a_replica_that_a_full_report_lacks_does_not_count() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.report(1, &[]);
    assert_eq!(cluster.live(1), 2);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    assert!(cluster.map.deletions().is_empty());
    assert!(deletions(&cluster.pass(300, &[1, 2, 3])).is_empty());
}

/// The order was carried out, and no word of it has come. It is queued once more because an early report named the replica. A later report
/// lacks it. If the replica is wanted again before the broom has come by, it is not taken back.
#[test]
fn a_replica_that_a_full_report_lacks_is_not_taken_back() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2, 3]);
    let goes = only_one_told(&cluster.pass(100, &[1, 2, 3]));
    cluster.report(goes, &[finalized(block(1, 5))]);
    cluster.report(goes, &[]);
    cluster.map.set_replication(BlockId(1), 3, cluster.now);
    assert_eq!(cluster.live(1), 2);
}

/// The order was lost. It is not repeated while the other replica is not surely there.
#[test]
pub fn an_order_is_not_repeated_while_the_other_replica_is_not_surely_there() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 1, &[1, 2]);
    let goes = only_one_told(&cluster.pass(100, &[1, 2]));
    let stays = 3 - goes;
    cluster.start(stays);
    cluster.report(goes, &[finalized(block(1, 5))]);
    assert!(deletions(&cluster.pass(300, &[1, 2])).is_empty(), "nobody knows what {stays} holds");
    cluster.report(stays, &[]);
    let copies = transfers(&cluster.pass(300, &[1, 2]));
    assert!(matches!(&copies[..], [(from, 1, to)] if *from == goes && *to == [uuid(stays)]), "{copies:?}");
}

/// The order was lost, and the other replica as well. Then a newcomer claims to hold one.
#[test]
fn an_order_is_not_repeated_for_the_sake_of_what_a_newcomer_claims() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 1, &[1, 2]);
    let goes = only_one_told(&cluster.pass(100, &[1, 2]));
    cluster.speak(3 - goes, |map, id, _| map.give_up_server(id)).unwrap();
    cluster.start(3);
    cluster.report(3, &[finalized(block(1, 5))]);
    cluster.report(goes, &[finalized(block(1, 5))]);
    assert!(deletions(&cluster.pass(300, &[goes, 3])).is_empty(), "it may be the only real one");
}

/// A block that the namespace tells of once more is known anew when its replicas are reported. They do not go.
#[test]
fn a_block_that_is_told_anew_is_not_deleted() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 2, &[1, 2]);
    cluster.map.add_block(block(1, 5), InodeId(16_386), 2, BlockState::Complete, &[], cluster.now);
    cluster.check();
    assert!(deletions(&cluster.pass(100, &[1, 2])).is_empty());
    cluster.report(1, &[finalized(block(1, 5))]);
    cluster.report(2, &[finalized(block(1, 5))]);
    assert!(deletions(&cluster.pass(100, &[1, 2])).is_empty());
    assert_eq!(cluster.live(1), 2);
}
