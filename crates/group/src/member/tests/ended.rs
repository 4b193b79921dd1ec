//! The host of the active says that the active's process is gone: nobody waits for its lease.

use super::{
    cluster::{Cluster, store},
    groups::serving,
};
use crate::{Input, Message, Settings};
use base::{Epoch, MemberId, Moment};

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

fn nobody_claims_before(cluster: &mut Cluster, lease_end: Moment) {
    let version = cluster.version;
    while cluster.version == version {
        cluster.pass(5);
    }
    assert!(lease_end <= cluster.now, "another claims {} ms too early", lease_end.ms_since(cluster.now));
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
    nobody_claims_before(&mut cluster, lease_end);
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

/// The word was wrong: the active is heard again, gets another grant, and counts it.
#[test]
fn a_grant_that_was_given_after_the_word_holds() {
    let mut cluster = serving(3);
    cluster.pass(beat());
    // The word is wrong for once: an address that moved for a moment, or a newer generation that took the number.
    for other in [2, 3] {
        cluster.step(1, Input::PeerGone(MemberId(other)));
        says_ended(&mut cluster, other, 1);
    }
    // The connections are made again at once.
    for other in [2, 3] {
        cluster.step(1, Input::PeerConnected(MemberId(other)));
        cluster.step(other, Input::PeerConnected(MemberId(1)));
    }
    cluster.settle();
    // One beacon passes, is granted and counted; then the network between them is silent.
    cluster.pass(beat() + 5);
    let lease_end = cluster.members[&1].member.lease_end().unwrap();
    assert!(lease_end > cluster.now, "the active counts the new grants");
    cut_off(&mut cluster, 1, &[2, 3]);
    cluster.cut_off.insert(1);
    nobody_claims_before(&mut cluster, lease_end);
}

#[test]
fn an_active_that_is_heard_is_not_deposed() {
    let mut cluster = serving(3);
    cluster.pass(beat());
    for other in [2, 3] {
        says_ended(&mut cluster, other, 1);
    }
    let epoch = cluster.view.epoch;
    cluster.pass(1_000);
    assert_eq!(cluster.view.epoch, epoch, "a healthy active, which everybody hears, was deposed");
}

/// A new life of a member answers a beacon, and its connection breaks before the answer is there.
#[test]
fn a_new_boot_does_not_bring_back_a_grant_of_before_the_break() {
    let mut cluster = serving(2);
    cluster.pass(beat());
    // No change of the view: the member stays in sync.
    cluster.is_deaf = true;
    cluster.kill(2);
    cluster.restart(2);
    cluster.wire.clear();
    while !cluster.wire.iter().any(|(.., message)| matches!(message, Message::Beacon { .. })) {
        cluster.now = cluster.now.plus_ms(1);
        cluster.step(1, Input::Tick);
    }
    let beacons: Vec<_> = cluster.wire.drain(..).collect();
    for (from, boot, to, message) in beacons {
        cluster.step(to.0, Input::Message { from, boot, message });
    }
    // The new process has answered; the connection breaks before any word of it is heard.
    cluster.step(1, Input::PeerGone(MemberId(2)));
    cluster.settle();
    let lease_end = cluster.members[&1].member.lease_end().unwrap();
    assert_eq!(lease_end, Moment::default(), "the grant was asked for before the break");
}

/// Members 2 to 4 have gone on by an order, and none of them has minded that member 1 still answers by the grants of member 5. Member 5 starts again
/// and joins them. The end of their active says nothing of its grant to member 1.
#[test]
fn a_grant_to_somebody_else_is_waited_for() {
    let mut cluster = serving(5);
    cut_off(&mut cluster, 1, &[2, 3, 4]);
    cut_off(&mut cluster, 5, &[2, 3, 4]);
    cluster.cut_off.extend([2, 3, 4]);
    for other in [2, 3, 4] {
        cluster.step(1, Input::PeerGone(MemberId(other)));
    }
    cluster.pass(1_000);
    assert_eq!(cluster.view.in_sync, [store(1), store(5)]);
    cluster.cut_off.clear();
    cluster.cut_off.extend([1, 5]);
    for id in [2, 3, 4] {
        cluster.read_view(id);
    }
    cluster.step(3, Input::Operator { ticket: 9, order: crate::Order::UncleanElect });
    cluster.pass(1_500);
    assert_eq!(cluster.serving(), Some(3), "{:?}", cluster.view);
    let mut leads = 3;
    for _ in 0..2 {
        cluster.kill(leads);
        let before = cluster.view.epoch;
        cluster.pass(1_500);
        leads = cluster.view.active.unwrap().0;
        assert!(cluster.view.epoch > before && [2, 4].contains(&leads), "{:?}", cluster.view);
    }
    let unclean = cluster.view.unclean_epoch;
    assert_eq!(cluster.view.epoch, Epoch(unclean.0 + 2));
    assert!(cluster.members[&1].member.lease_end().unwrap() > cluster.now, "1 and 5 go on by themselves");
    // 5 is cut off from 1, and starts again: 1 hears of neither.
    cut_off(&mut cluster, 1, &[5]);
    cluster.cut.retain(|pair| *pair != (5, leads) && *pair != (leads, 5));
    cluster.cut_off.remove(&5);
    cluster.node(1).is_up = false;
    cluster.kill(5);
    cluster.restart(5);
    cluster.node(1).is_up = true;
    let lease_end = cluster.members[&1].member.lease_end().unwrap();
    while !cluster.view.in_sync.contains(&store(5)) {
        cluster.pass(5);
        assert!(cluster.now < lease_end, "too slow for this story: {:?}", cluster.view);
    }
    cluster.kill(leads);
    says_ended(&mut cluster, 5, leads);
    let version = cluster.version;
    while cluster.version == version {
        cluster.pass(5);
        assert!(cluster.now < lease_end.plus_ms(2_000), "nobody claims");
    }
    assert_eq!(cluster.view.active, Some(MemberId(5)));
    let answers_until = cluster.members[&1].member.lease_end().unwrap();
    assert!(answers_until <= cluster.now, "5 claims {} ms too early", answers_until.ms_since(cluster.now));
}
