//! Stories of what an active has appended that nobody else got, after others have taken over: with a sound coordinator it holds
//! nobody up, and nothing that others have served since is cut off for it.

use super::{
    super::*,
    cluster::Cluster,
    first_claim::{epoch_start, until},
    groups::serving,
};
use crate::Message;

/// Member 3 leads, and appends what nobody else gets. Another takes over, and commits the beginning of its epoch with the third. The
/// view may not have learnt of that commit yet.
fn deposed_tail_comes_back(hint_is_lost: bool) -> (Cluster, Vec<String>) {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    cluster.step(1, Input::Operator { ticket: 1, order: Order::HandOver { to: Some(MemberId(3)) } });
    cluster.step(1, Input::Quiet);
    cluster.pass(3_000);
    assert_eq!(cluster.serving(), Some(3));
    for other in [1, 2] {
        cluster.cut.insert((3, other));
    }
    cluster.propose(3, "never acknowledged");
    cluster.kill(3);
    until(&mut cluster, 2_000, |cluster| cluster.serving().is_some()).expect("another takes over");
    let active = cluster.serving().unwrap();
    cluster.cut.clear();
    // The other one has heard what has committed, and the view has not.
    cluster.pass(if hint_is_lost { 100 } else { 1_500 });
    let other = 3 - active;
    assert!(cluster.members[&other].member.committed() >= epoch_start(&cluster, active));
    let before = cluster.operations(active);
    assert_eq!(before, ["kept"]);
    (cluster, before)
}

/// Until somebody serves, for 20 s at most. This member answers everything but questions for entries.
fn hands_nothing_on(cluster: &mut Cluster, id: u32) {
    let end = cluster.now.plus_ms(20_000);
    while cluster.now < end && cluster.serving().is_none() {
        cluster.now = cluster.now.plus_ms(1);
        (1..=3).for_each(|id| cluster.step(id, Input::Tick));
        while let Some((from, boot, to, message)) = cluster.wire.pop_front() {
            let is_handing_on = matches!(message, Message::Fetched { .. } | Message::FetchFailed { .. });
            if from.member != MemberId(id) || !is_handing_on {
                cluster.step(to.0, Input::Message { from, boot, message });
            }
        }
    }
}

/// Then the new active ends, the standby is silent but runs, and the new active and member 3 begin again. What the standby knows to have
/// committed must stay.
#[test]
fn what_a_silent_standby_knows_to_have_committed_is_not_cut_off_for_a_deposed_tail() {
    for hint_is_lost in [false, true] {
        let (mut cluster, _) = deposed_tail_comes_back(hint_is_lost);
        let active = cluster.serving().unwrap();
        let silent = 3 - active;
        let committed =
            cluster.members[&silent].log[..cluster.members[&silent].member.committed().0 as usize].to_vec();
        // The standby's process stands still; the active ends, and begins again with the deposed one.
        for other in [active, 3] {
            cluster.cut.insert((silent, other));
            cluster.cut.insert((other, silent));
        }
        cluster.kill(active);
        cluster.restart(active);
        cluster.restart(3);
        cluster.pass(6_000);
        cluster.cut.clear();
        cluster.pass(6_000);
        let log = &cluster.members[&cluster.serving().expect("somebody leads")].log;
        assert_eq!(
            log[..committed.len()],
            committed[..],
            "hint lost {hint_is_lost}: what has committed stays"
        );
        let troubles: Vec<_> =
            (1..=3).filter_map(|id| cluster.members[&id].member.status(cluster.now).trouble).collect();
        assert_eq!(troubles, Vec::<String>::new());
    }
}

/// The same, and all lose power together. An active has served reads, and refused calls, with the deposed tail gone.
#[test]
fn a_deposed_tail_does_not_come_back_after_another_has_served_without_it() {
    for hint_is_lost in [false, true] {
        let (mut cluster, before) = deposed_tail_comes_back(hint_is_lost);
        (1..=3).for_each(|id| cluster.kill(id));
        (1..=3).for_each(|id| cluster.restart(id));
        cluster.pass(6_000);
        let active = cluster.serving().expect("somebody leads");
        assert_eq!(cluster.operations(active), before, "hint lost {hint_is_lost}");
    }
}

/// The same, and the coordinator refuses every change for a minute, in which the group answers reads and refuses calls.
#[test]
fn a_deposed_tail_does_not_come_back_after_a_minute_of_reads() {
    let (mut cluster, before) = deposed_tail_comes_back(true);
    cluster.refuses = true;
    cluster.pass(60_000);
    assert!(cluster.serving().is_some());
    (1..=3).for_each(|id| cluster.kill(id));
    cluster.refuses = false;
    (1..=3).for_each(|id| cluster.restart(id));
    cluster.asked = 0;
    cluster.pass(6_000);
    let active = cluster.serving().expect("somebody leads");
    assert_eq!(cluster.operations(active), before);
}

/// The coordinator is sound. Member 3, deposed, holds a tail that nobody needs, promises, and never hands the tail on. 1 and 2 are
/// complete and have begun anew.
#[test]
fn a_member_that_does_not_hand_on_a_tail_that_nobody_needs_holds_nobody_up() {
    let (mut cluster, before) = deposed_tail_comes_back(true);
    (1..=3).for_each(|id| cluster.kill(id));
    (1..=3).for_each(|id| cluster.restart(id));
    hands_nothing_on(&mut cluster, 3);
    assert!(cluster.serving().is_some(), "{:?}", cluster.view);
    assert_eq!(cluster.operations(cluster.serving().unwrap()), before);
}

/// The same, and what member 3 hands on takes 300 ms a piece: 4 MiB at 14 MB/s.
#[test]
fn a_slow_member_with_a_tail_that_nobody_needs_holds_nobody_up() {
    let (mut cluster, _) = deposed_tail_comes_back(true);
    (1..=3).for_each(|id| cluster.kill(id));
    (1..=3).for_each(|id| cluster.restart(id));
    let began = cluster.now;
    let mut late: Vec<(Moment, (MemberStore, u64, MemberId, Message))> = Vec::new();
    while cluster.now < began.plus_ms(30_000) && cluster.serving().is_none() {
        cluster.now = cluster.now.plus_ms(1);
        (1..=3).for_each(|id| cluster.step(id, Input::Tick));
        let now = cluster.now;
        for (_, (from, boot, to, message)) in late.extract_if(.., |(at, _)| *at <= now) {
            cluster.step(to.0, Input::Message { from, boot, message });
        }
        while let Some((from, boot, to, message)) = cluster.wire.pop_front() {
            if from.member == MemberId(3) && matches!(message, Message::Fetched { .. }) {
                late.push((now.plus_ms(300), (from, boot, to, message)));
            } else {
                cluster.step(to.0, Input::Message { from, boot, message });
            }
        }
    }
    assert!(cluster.serving().is_some());
}

/// A torn end: the claimant is suspect and has begun anew, and a deposed member that is not complete promises and never hands on.
#[test]
fn a_suspect_claimant_is_not_held_up_by_a_tail_that_nobody_needs() {
    let (mut cluster, before) = deposed_tail_comes_back(true);
    (1..=3).for_each(|id| cluster.kill(id));
    (1..=3).for_each(|id| cluster.restart(id));
    for id in [1, 2] {
        cluster.node(id).member.is_suspect = true;
    }
    hands_nothing_on(&mut cluster, 3);
    assert!(cluster.serving().is_some(), "{:?} {:?}", cluster.role(1), cluster.role(2));
    assert_eq!(cluster.operations(cluster.serving().unwrap()), before);
}
