//! Stories of orders to delete that are under way, or lost.

use super::cluster::*;
use crate::*;
use base::BlockId;

/// A report that was made before the deletion shows the replica once more, and the order is repeated. The repetition has not gone out when
/// the replica is wanted again: it cannot be taken back, because the first order is carried out already.
#[test]
pub fn a_deletion_that_was_ordered_is_not_taken_back_with_its_repetition() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.set_replication(BlockId(1), 1, cluster.now);
    let told: Vec<u16> = deletions(&cluster.pass(300, &[1, 2, 3])).iter().map(|(of, _)| *of).collect();
    let [first, second] = told[..] else { panic!("two are told to delete theirs: {told:?}") };
    cluster.report(first, &[finalized(block(1, 5))]);
    cluster.tell(second, &[Increment::Deleted(block(1, 5))]);

    // Were it taken back, the replica would count, and with the next change of the number the only real one would go in its place.
    cluster.map.set_replication(BlockId(1), 3, cluster.now);
    cluster.check();
    assert_eq!(cluster.map.replicas(BlockId(1)).unwrap().live, 1, "what is gone does not count");
    let commands = cluster.pass(300, &[1, 2, 3]);
    assert!(
        deletions(&commands).is_empty(),
        "the only real one stays, and nothing is repeated: {commands:?}"
    );
    let asked = |(server, command): &(u16, Command)| *server == first && matches!(command, Command::Register);
    assert!(commands.iter().any(asked), "what the other server has is asked: {commands:?}");
}

/// The replica is chosen while its data server reports in full. The report still names it, and is no reason to forget it. The answer with the
/// order is long under way, and the next report, which was made before it arrived, names the replica again.
#[test]
fn a_report_that_was_made_before_the_order_arrived_does_not_have_the_replica_count_again() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    let waiting = cluster.map.deletions();
    let goes: u16 = waiting[0].0.uuid().trim_start_matches("uuid-").parse().unwrap();
    cluster.report(goes, &[finalized(block(1, 5))]);
    cluster.map.sweep(100, cluster.now);
    cluster.check();
    assert_eq!(deletions(&cluster.pass(100, &[1, 2, 3])), [(goes, 1)]);
    // Now another one would be chosen.
    let stays = [1, 2, 3].into_iter().find(|server| *server != goes).unwrap();
    let mut heartbeat = heartbeat_of(stays);
    heartbeat.storages.iter_mut().for_each(|storage| storage.remaining = 1);
    cluster.speak(stays, |map, id, now| map.heartbeat(id, &heartbeat, now)).unwrap();
    cluster.report(goes, &[finalized(block(1, 5))]);
    cluster.check();
    let again = deletions(&cluster.pass(300, &[1, 2, 3]));
    assert!(again.iter().all(|order| *order == (goes, 1)), "the two others stay: {again:?}");
    cluster.tell(goes, &[Increment::Deleted(block(1, 5))]);
    assert_eq!(cluster.holders(1).len(), 2);
}

/// The bytes of the one replica are rotten, and its deletion was ordered. A report names it before the order has arrived. The good one must
/// not go in its place.
#[test]
fn a_damaged_replica_whose_deletion_was_ordered_does_not_count_again() {
    let mut cluster = Cluster::with_servers(config(), 2);
    cluster.add_stored(block(1, 5), 1, &[1, 2]);
    cluster.map.report_bad(block(1, 5), &uuid(2), None, cluster.now);
    assert_eq!(deletions(&cluster.pass(100, &[1, 2])), [(2, 1)]);
    cluster.report(2, &[finalized(block(1, 5))]);
    cluster.check();
    let again = deletions(&cluster.pass(300, &[1, 2]));
    assert!(again.iter().all(|order| *order == (2, 1)), "the good one stays: {again:?}");
    assert_eq!(cluster.holders(1), [1]);
}

/// The order is lost, and then the others are lost. The last replica must not be ordered to go once more. Its data server is asked to begin
/// anew, and then the replica counts.
#[test]
pub fn a_replica_that_is_needed_again_is_not_ordered_to_go_once_more() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2, 3]);
    let lost = deletions(&cluster.pass(100, &[1, 2, 3]));
    let [(last, 1)] = lost[..] else { panic!("one of three goes: {lost:?}") };
    let mut commands = cluster.pass(3_000, &[last]);
    cluster.report(last, &[finalized(block(1, 5))]);
    commands.extend(cluster.pass(100, &[last]));
    assert!(deletions(&commands).is_empty(), "{commands:?}");
    assert!(commands.iter().any(|(_, command)| matches!(command, Command::Register)), "{commands:?}");
    cluster.start(last);
    cluster.report(last, &[finalized(block(1, 5))]);
    cluster.check();
    assert_eq!(cluster.map.replicas(BlockId(1)).map(|it| (it.live, it.excess)), Some((1, 0)));
}

/// The order is lost, and is queued again when a report names the replica. Then the data server begins anew: what is queued must not go out
/// for a replica that counts again.
#[test]
fn a_repeated_order_does_not_outlive_the_session() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 2, &[1, 2, 3]);
    let lost = deletions(&cluster.pass(100, &[1, 2, 3]));
    let [(goes, 1)] = lost[..] else { panic!("one of three goes: {lost:?}") };
    cluster.report(goes, &[finalized(block(1, 5))]);
    cluster.start(goes);
    cluster.check();
    cluster.report(goes, &[finalized(block(1, 5))]);
    let told = deletions(&cluster.pass(300, &[1, 2, 3]));
    assert_eq!(told.len(), 1, "{told:?}");
    cluster.check();
}

/// While its deletion is under way, no copy is sent to a data server: it would refuse the copy, or delete it.
#[test]
fn no_copy_goes_where_a_deletion_is_under_way() {
    let mut cluster = Cluster::with_servers(config(), 3);
    cluster.add_stored(block(1, 5), 3, &[1, 2, 3]);
    cluster.map.set_replication(BlockId(1), 2, cluster.now);
    let told = deletions(&cluster.pass(100, &[1, 2, 3]));
    let [(goes, 1)] = told[..] else { panic!("one of three goes: {told:?}") };
    cluster.map.set_replication(BlockId(1), 3, cluster.now);
    assert!(transfers(&cluster.pass(300, &[1, 2, 3])).is_empty());
    cluster.tell(goes, &[Increment::Deleted(block(1, 5))]);
    let copies = transfers(&cluster.pass(300, &[1, 2, 3]));
    assert!(matches!(&copies[..], [(_, 1, targets)] if *targets == [uuid(goes)]), "{copies:?}");
}
