//! The host of the active says that the active's process is gone: nobody waits for its lease.

use super::{
    cluster::{Cluster, store},
    groups::serving,
};
use crate::{Input, Message, Settings};
use base::{MemberId, Moment};

/// The time that a grant still has once the process is gone, with some for rivals.
fn soon_ms() -> u64 {
    let settings = Settings::default();
    settings.grant_ends_ms() + 2 * settings.rank_backoff_ms
}

fn says_ended(cluster: &mut Cluster, to: u32, of: u32) {
    let boot = cluster.node(of).boot;
    cluster.step(to, Input::PeerEnded { store: store(of), boot });
}

fn cut_off(cluster: &mut Cluster, member: u32, others: &[u32]) {
    for other in others {
        cluster.cut.insert((member, *other));
        cluster.cut.insert((*other, member));
    }
}

fn beat() -> u64 {
    Settings::default().beacon_ms
}

#[test]
fn a_process_that_has_ended_is_replaced_before_its_lease_is_over() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    cluster.pass(beat());
    cluster.kill(1);
    says_ended(&mut cluster, 2, 1);
    says_ended(&mut cluster, 3, 1);
    cluster.pass(soon_ms());
    let successor = cluster.serving().expect("nobody waits for the lease");
    assert_eq!(cluster.operations(successor), ["kept"]);
    let takeovers = cluster.members[&successor].member.status(cluster.now).last_takeovers;
    assert_eq!(takeovers.last().unwrap().trigger, "process gone");
}

/// It may live behind a network that has had enough of this connection.
pub fn a_connection_that_broke_ends_no_grant() {
    let mut cluster = serving(3);
    cluster.pass(beat());
    cut_off(&mut cluster, 1, &[2, 3]);
    cluster.cut_off.insert(1);
    let lease_end = cluster.members[&1].member.lease_end().unwrap();
    for other in [2, 3] {
        cluster.step(other, Input::PeerGone(MemberId(1)));
    }
    let version = cluster.version;
    while cluster.version == version {
        cluster.pass(5);
    }
    assert!(lease_end <= cluster.now, "another claims {} ms too early", lease_end.ms_since(cluster.now));
}

#[test]
fn a_break_is_no_end() {
    a_connection_that_broke_ends_no_grant();
}

#[test]
fn the_end_of_an_earlier_life_ends_no_grant_of_this_one() {
    let mut cluster = serving(3);
    cluster.kill(1);
    cluster.pass(1_000);
    let active = cluster.serving().unwrap();
    cluster.restart(1);
    cluster.pass(1_000);
    cluster
        .step(active, Input::Operator { ticket: 1, order: crate::Order::HandOver { to: Some(MemberId(1)) } });
    cluster.step(active, Input::Quiet);
    cluster.settle();
    cluster.pass(500);
    assert_eq!((cluster.serving(), cluster.node(1).boot), (Some(1), 2));
    let newer = base::MemberStore { generation: 1, ..store(1) };
    for (store, boot) in [(store(1), 1), (newer, 2)] {
        for other in [2, 3] {
            cluster.step(other, Input::PeerEnded { store, boot });
        }
    }
    let epoch = cluster.view.epoch;
    cut_off(&mut cluster, 1, &[2, 3]);
    cluster.pass(soon_ms());
    assert_eq!(cluster.view.epoch, epoch, "nobody claims while the grant to this life holds");
}

/// The next life of the active's store has begun, and so the one that had the grant has ended.
#[test]
fn a_later_life_of_the_active_is_word_enough() {
    let mut cluster = serving(3);
    cluster.pass(beat());
    cluster.kill(1);
    cluster.restart(1);
    for other in [2, 3] {
        cluster.step(other, Input::PeerEnded { store: store(1), boot: 1 });
    }
    cluster.pass(soon_ms() + beat());
    assert!(matches!(cluster.serving(), Some(2 | 3)), "{:?}", cluster.serving());
}

/// Member 3 was elected by an order, and need not have minded the grants by which the active before it still answers reads. So nobody's grant ends
/// early in its reign, nor in the one after it.
#[test]
fn the_end_of_one_that_leads_by_an_order_ends_no_grant() {
    let mut cluster = Cluster::new(3, 1, 1);
    cut_off(&mut cluster, 1, &[2, 3]);
    cluster.pass(1_000);
    cluster.propose(1, "the others lack it");
    cluster.kill(1);
    cluster.pass(1_000);
    cluster.step(3, Input::Operator { ticket: 9, order: crate::Order::UncleanElect });
    cluster.pass(1_000);
    assert_eq!((cluster.serving(), cluster.view.in_sync.len()), (Some(3), 2));
    let epoch = cluster.view.epoch;
    cluster.pass(beat());
    cluster.kill(3);
    says_ended(&mut cluster, 2, 3);
    cluster.pass(soon_ms());
    assert_eq!(cluster.view.epoch, epoch, "nobody claims before the lease is over");
    cluster.pass(1_000);
    assert_eq!(cluster.serving(), Some(2));
}

/// A firewall that rejects connections tells the others that the process is gone, and it is not. The same firewall ends the active's own
/// connections when it sends its next beacon, and then it counts no grant that it had.
#[test]
fn where_connections_are_rejected_the_active_stops_counting_before_another_claims() {
    let mut cluster = serving(3);
    cluster.pass(beat());
    cut_off(&mut cluster, 1, &[2, 3]);
    cluster.cut_off.insert(1);
    for other in [2, 3] {
        says_ended(&mut cluster, other, 1);
    }
    let version = cluster.version;
    let rejected_at = cluster.now;
    let mut has_noticed = false;
    while cluster.version == version {
        cluster.pass(5);
        if !has_noticed && cluster.now.ms_since(rejected_at) >= 2 * beat() - 5 {
            has_noticed = true;
            cluster.step(1, Input::PeerGone(MemberId(2)));
            cluster.step(1, Input::PeerGone(MemberId(3)));
        }
        assert!(cluster.now.ms_since(rejected_at) < 400, "somebody claims");
    }
    assert!(has_noticed, "nobody claims before the active can have noticed");
    assert!(cluster.members[&1].member.lease_end() <= Some(Moment::default()), "its grants are void");
}

/// The answer to a beacon that was sent before the break comes after it.
pub fn a_grant_of_before_the_break_counts_no_more() {
    let mut cluster = serving(3);
    cluster.pass(beat() - 1);
    while cluster.wire.is_empty() {
        cluster.now = cluster.now.plus_ms(1);
        cluster.step(1, Input::Tick);
    }
    // The beacon is under way. Both answer it, and their connections break before the answers are there.
    let beacons: Vec<_> = cluster.wire.drain(..).collect();
    for (from, boot, to, message) in beacons {
        cluster.step(to.0, Input::Message { from, boot, message });
    }
    for other in [2, 3] {
        cluster.step(1, Input::PeerGone(MemberId(other)));
    }
    let answers =
        cluster.wire.iter().filter(|(.., message)| matches!(message, Message::Grant { .. })).count();
    assert_eq!(answers, 2);
    cluster.settle();
    let lease_end = |cluster: &Cluster| cluster.members[&1].member.lease_end().unwrap();
    assert_eq!(lease_end(&cluster), Moment::default(), "the grants are of before the break");
    cluster.pass(2 * beat());
    assert!(lease_end(&cluster) > cluster.now, "the next beacon brings new ones");
}

#[test]
fn a_break_voids_the_grants_of_before() {
    a_grant_of_before_the_break_counts_no_more();
}
