//! Stories of what an active has appended that nobody else got, after others have taken over: with a sound coordinator it holds
//! nobody up, and nothing that others have served since is cut off for it.

use super::{
    super::*,
    cluster::Cluster,
    company::{stories, tick, with_delay},
    first_claim::{epoch_start, restart_with_base, until},
    groups::serving,
};
use crate::Message;

/// Member 3 leads, and appends what nobody else gets. Another takes over, and commits the beginning of its epoch with the third. The
/// view may not have learnt of that commit yet. Also says which member leads then.
fn deposed_tail(hint_is_lost: bool) -> (Cluster, u32) {
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
    assert_eq!(cluster.operations(active), ["kept"]);
    (cluster, active)
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
        let (mut cluster, active) = deposed_tail(hint_is_lost);
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

/// All three members lose power together. An active has served reads, and refused calls, while the deposed tail was
/// gone.
#[test]
fn a_deposed_tail_does_not_come_back_after_another_has_served_without_it() {
    for hint_is_lost in [false, true] {
        let (mut cluster, _) = deposed_tail(hint_is_lost);
        (1..=3).for_each(|id| cluster.kill(id));
        (1..=3).for_each(|id| cluster.restart(id));
        cluster.pass(6_000);
        let active = cluster.serving().expect("somebody leads");
        assert_eq!(cluster.operations(active), ["kept"], "hint lost {hint_is_lost}");
    }
}

/// The coordinator refuses every change for a minute, in which the group answers reads and refuses calls. Then all
/// members lose power.
#[test]
fn a_deposed_tail_does_not_come_back_after_a_minute_of_reads() {
    let (mut cluster, _) = deposed_tail(true);
    cluster.refuses = true;
    cluster.pass(60_000);
    assert!(cluster.serving().is_some());
    (1..=3).for_each(|id| cluster.kill(id));
    cluster.refuses = false;
    (1..=3).for_each(|id| cluster.restart(id));
    cluster.asked = 0;
    cluster.pass(6_000);
    let active = cluster.serving().expect("somebody leads");
    assert_eq!(cluster.operations(active), ["kept"]);
}

/// The coordinator is sound. Member 3, deposed, holds a tail that nobody needs, promises, and never hands the tail on. 1 and 2 are
/// complete and have begun anew.
#[test]
fn a_member_that_does_not_hand_on_a_tail_that_nobody_needs_holds_nobody_up() {
    let (mut cluster, _) = deposed_tail(true);
    (1..=3).for_each(|id| cluster.kill(id));
    (1..=3).for_each(|id| cluster.restart(id));
    hands_nothing_on(&mut cluster, 3);
    assert!(cluster.serving().is_some(), "{:?}", cluster.view);
    assert_eq!(cluster.operations(cluster.serving().unwrap()), ["kept"]);
}

/// After a loss of power, each piece of the log that member 3 hands on takes 300 ms: 4 MiB at 14 MB/s.
#[test]
fn a_slow_member_with_a_tail_that_nobody_needs_holds_nobody_up() {
    let (mut cluster, _) = deposed_tail(true);
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
    let (mut cluster, _) = deposed_tail(true);
    (1..=3).for_each(|id| cluster.kill(id));
    (1..=3).for_each(|id| cluster.restart(id));
    for id in [1, 2] {
        cluster.node(id).member.is_suspect = true;
    }
    hands_nothing_on(&mut cluster, 3);
    assert!(cluster.serving().is_some(), "{:?} {:?}", cluster.role(1), cluster.role(2));
    assert_eq!(cluster.operations(cluster.serving().unwrap()), ["kept"]);
}

/// Sound coordinator. A deposed member with a tail begins late, and its process begins again and again, each time with its links cut after
/// its answer. The group of 1 and 2 serves without it.
#[test]
fn a_deposed_tail_that_comes_and_goes_holds_nobody_up() {
    let (mut cluster, _) = deposed_tail(true);
    (1..=3).for_each(|id| cluster.kill(id));
    cluster.restart(1);
    cluster.restart(2);
    let began = cluster.now;
    let mut served = None;
    for round in 0..200 {
        cluster.restart(3);
        cluster.cut.clear();
        tick(&mut cluster, 3 + round % 7);
        cluster.cut.extend([(3, 1), (3, 2)]);
        tick(&mut cluster, 40);
        cluster.kill(3);
        tick(&mut cluster, 1);
        if served.is_none() && cluster.serving().is_some() {
            served = Some(cluster.now.ms_since(began));
        }
    }
    assert!(served.is_some_and(|ms| ms < 4_000), "{served:?} {}", stories(&cluster));
}

/// Sound coordinator. All three run, 3 is a deposed member that is not complete and stands still: its address does not refuse. It answers
/// promises late, each time. That costs no second epoch.
#[test]
fn a_slow_member_that_is_not_complete() {
    let mut took = Vec::new();
    for delay in [0, 100, 200, 240, 260, 300, 500, 900, 1_100] {
        let (mut cluster, _) = deposed_tail(true);
        (1..=3).for_each(|id| cluster.kill(id));
        (1..=3).for_each(|id| cluster.restart(id));
        cluster.node(2).member.candidacy.no_claim_before = cluster.now.plus_ms(60_000);
        let began = cluster.now;
        let epochs = with_delay(&mut cluster, 20_000, 3, 1, delay);
        took.push((delay, cluster.now.ms_since(began), epochs, cluster.serving()));
    }
    assert!(
        took.iter().all(|(_, ms, epochs, serving)| *ms < 2_000 && *epochs == 1 && serving.is_some()),
        "{took:?}"
    );
}

/// Sound coordinator. All lose power. The beginning of the epoch that has served is torn off one of the two complete members, which is the
/// first to claim; the other has it whole. The deposed tail goes on from where the torn log ends.
fn a_torn_claim(torn_is_active: bool, base_of_other: bool) -> String {
    let (mut cluster, active) = deposed_tail(true);
    let other = 3 - active;
    let (torn, whole) = if torn_is_active { (active, other) } else { (other, active) };
    let start = cluster.members[&whole].log.last().unwrap().clone();
    assert_eq!(start.kind, base::EntryKind::EpochStart);
    assert!(
        cluster.members[&whole].member.committed() >= start.id.sn,
        "it has committed, and reads were answered"
    );
    (1..=3).for_each(|id| cluster.kill(id));
    assert_eq!(cluster.node(torn).log.pop().unwrap(), start);
    for id in 1..=3 {
        cluster.restart(id);
    }
    if base_of_other {
        let base = cluster.members[&whole].log.len() - 1;
        cluster.kill(whole);
        restart_with_base(&mut cluster, whole, base);
    }
    cluster.node(torn).member.is_suspect = true;
    cluster.node(whole).member.candidacy.no_claim_before = cluster.now.plus_ms(60_000);
    cluster.pass(10_000);
    let Some(serving) = cluster.serving() else { return format!("nobody serves {}", stories(&cluster)) };
    let held = cluster.members[&serving].log.get(start.id.sn.0 as usize - 1) == Some(&start);
    format!("operations {:?} start kept {held}", cluster.operations(serving))
}

#[test]
fn a_torn_claimant_does_not_take_a_deposed_tail_before_what_a_complete_member_holds() {
    for torn_is_active in [false, true] {
        for base_of_other in [false, true] {
            assert_eq!(
                a_torn_claim(torn_is_active, base_of_other),
                "operations [\"kept\"] start kept true",
                "torn is active {torn_is_active}, other has a checkpoint {base_of_other}"
            );
        }
    }
}

/// Sound coordinator, minimum 2 of three. 1 claims first after a power cut; 2 runs and is in sync, and the deposed 3 turns up after 1 has begun
/// its epoch and before that has committed (2's disk is slow). It is not waited for.
#[test]
fn a_deposed_tail_turns_up_between_the_first_entry_and_its_commit() {
    let (mut cluster, _) = deposed_tail(true);
    (1..=3).for_each(|id| cluster.kill(id));
    cluster.restart(1);
    cluster.restart(2);
    cluster.node(2).member.candidacy.no_claim_before = cluster.now.plus_ms(60_000);
    let began = cluster.now;
    // Each acknowledgement of member 2 takes 200 ms, as on a busy disk.
    let mut late: std::collections::VecDeque<(Moment, (MemberStore, u64, MemberId, Message))> =
        Default::default();
    let mut is_back = false;
    while cluster.now < began.plus_ms(20_000) && cluster.serving().is_none() {
        cluster.now = cluster.now.plus_ms(1);
        cluster.up().into_iter().for_each(|id| cluster.step(id, Input::Tick));
        if !is_back && epoch_start(&cluster, 1) > Sn(0) {
            cluster.restart(3);
            is_back = true;
        }
        let now = cluster.now;
        while late.front().is_some_and(|(at, _)| *at <= now) {
            let (_, (from, boot, to, message)) = late.pop_front().unwrap();
            cluster.step(to.0, Input::Message { from, boot, message });
        }
        while let Some((who, boot, whom, message)) = cluster.wire.pop_front() {
            if who.member.0 == 2 && matches!(message, Message::Appended { .. }) {
                late.push_back((now.plus_ms(200), (who, boot, whom, message)));
            } else {
                cluster.step(whom.0, Input::Message { from: who, boot, message });
            }
        }
    }
    let ms = cluster.now.ms_since(began);
    assert!(is_back);
    assert!(cluster.serving().is_some() && ms < 1_500, "{ms} ms {}", stories(&cluster));
    assert_eq!(cluster.operations(cluster.serving().unwrap()), ["kept"]);
}

/// Sound coordinator, minimum 2 of three. 1 has just begun and is a first claimant below the minimum that has witnesses: 2 is heard, and cannot be let in, for
/// the coordinator refuses changes. 1 answers reads, also when the deposed 3 turns up.
#[test]
fn reads_below_the_minimum_are_not_given_up_for_a_deposed_tail() {
    let (mut cluster, _) = deposed_tail(false);
    // Only 1 stays in sync; 2 is an exile.
    cluster.kill(2);
    cluster.pass(3_000);
    (1..=3).for_each(|id| cluster.kill(id));
    cluster.restart(1);
    let ended = until(&mut cluster, 5_000, |cluster| {
        cluster.view.active == Some(MemberId(1)) && matches!(cluster.role(1), Role::Starting { .. })
    });
    ended.expect("1 claims");
    cluster.refuses = true;
    cluster.restart(2);
    for _ in 0..3_000 {
        if matches!(cluster.role(1), Role::Reading { .. }) {
            break;
        }
        cluster.pass(1);
    }
    assert!(matches!(cluster.role(1), Role::Reading { .. }), "{}", stories(&cluster));
    cluster.asked = 0;
    cluster.restart(3);
    let epoch = cluster.view.epoch;
    for _ in 0..3_000 {
        cluster.asked = 0;
        cluster.pass(1);
        assert!(matches!(cluster.role(1), Role::Reading { .. }), "{:?} {}", epoch, stories(&cluster));
    }
}
