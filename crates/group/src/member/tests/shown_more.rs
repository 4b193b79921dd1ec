//! First claims by an older view, where another member has shown in this life that it holds more.

use super::{
    super::*,
    cluster::{Cluster, store},
    company::{stories, two_of_four_lag},
    first_claim::{begin_again, epoch_start, restart_with_base, until},
    groups::serving,
};
use crate::Message;

/// Lets time pass ms by ms, and gives each message to `see`, which says whether it arrives, and after how many ms.
pub(super) fn pass_by(
    cluster: &mut Cluster,
    ms: u64,
    mut see: impl FnMut(&mut Cluster, u32, u32, &Message) -> Option<u64>,
) {
    let mut late: Vec<(Moment, (MemberStore, u64, MemberId, Message))> = Vec::new();
    for _ in 0..ms {
        cluster.now = cluster.now.plus_ms(1);
        cluster.up().into_iter().for_each(|id| cluster.step(id, Input::Tick));
        let now = cluster.now;
        for (_, (from, boot, to, message)) in late.extract_if(.., |(at, _)| *at <= now) {
            cluster.step(to.0, Input::Message { from, boot, message });
        }
        while let Some((from, boot, to, message)) = cluster.wire.pop_front() {
            match see(cluster, from.member.0, to.0, &message) {
                Some(0) => cluster.step(to.0, Input::Message { from, boot, message }),
                Some(ms) => late.push((now.plus_ms(ms), (from, boot, to, message))),
                None => {}
            }
        }
    }
}

/// All are complete by the older view. 3 lacks what 1 and 2 have committed since.
fn three_lacks_this() -> (Cluster, (GroupView, u64)) {
    let mut cluster = serving(3);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(3);
    cluster.pass(600);
    cluster.propose(1, "3 lacks this");
    (cluster, backup)
}

/// 2 turns up, promises, and ends each time that it is asked for what it holds. 3 is alone again, and begins no epoch.
#[test]
fn a_member_that_has_shown_more_and_ended_is_no_company() {
    let (mut cluster, backup) = three_lacks_this();
    begin_again(&mut cluster, backup, &[3]);
    until(&mut cluster, 5_000, |cluster| cluster.view.active == Some(MemberId(3))).expect("3 claims");
    for _ in 0..3 {
        cluster.restart(2);
        pass_by(&mut cluster, 300, |cluster, _, to, message| {
            if to == 2 && matches!(message, Message::Fetch { .. }) {
                cluster.kill(2);
                return None;
            }
            Some(0)
        });
        assert!(!cluster.up().contains(&2), "it was asked: {}", stories(&cluster));
        assert_eq!(epoch_start(&cluster, 3), Sn(0), "alone it begins no epoch");
        cluster.pass(2_000);
    }
    cluster.restart(2);
    cluster.pass(8_000);
    let active = cluster.serving().expect("one of the two leads");
    assert_eq!(cluster.operations(active), ["3 lacks this"]);
}

/// The connection to 2 breaks, and is made again, while its log is being adopted: the question gets lost.
#[test]
fn a_log_is_asked_for_again_over_a_new_connection() {
    let (mut cluster, backup) = three_lacks_this();
    begin_again(&mut cluster, backup, &[3]);
    until(&mut cluster, 5_000, |cluster| cluster.view.active == Some(MemberId(3))).expect("3 claims");
    cluster.restart(2);
    let mut is_lost = false;
    pass_by(&mut cluster, 3_000, |cluster, _, to, message| {
        if !is_lost && to == 2 && matches!(message, Message::Fetch { .. }) {
            is_lost = true;
            cluster.step(2, Input::PeerConnected(MemberId(3)));
            cluster.step(3, Input::PeerConnected(MemberId(2)));
            return None;
        }
        Some(0)
    });
    assert!(is_lost);
    cluster.pass(5_000);
    let active = cluster.serving().expect("one of the two leads");
    assert_eq!(cluster.operations(active), ["3 lacks this"], "{}", stories(&cluster));
}

/// Four members, minimum 2. 2 and 4 lack what 1 and 3 have committed, and it is torn off the end of 1. 3 has told 2 where its log ends, and
/// its promise takes a while. Those that have answered could commit without it.
#[test]
pub fn a_member_that_has_shown_more_is_waited_for_longer() {
    let (mut cluster, backup) = two_of_four_lag();
    begin_again(&mut cluster, backup, &[]);
    cluster.node(1).log.pop();
    (1..=4).for_each(|id| cluster.restart(id));
    cluster.node(1).member.is_suspect = true;
    for id in [1, 3, 4] {
        cluster.node(id).member.candidacy.no_claim_before = cluster.now.plus_ms(60_000);
    }
    // Its disk takes 500 ms for the promise.
    pass_by(&mut cluster, 6_000, |_, from, _, message| {
        Some(if from == 3 && !matches!(message, Message::Hello { .. }) { 500 } else { 0 })
    });
    cluster.pass(5_000);
    let active = cluster.serving().expect("somebody leads");
    assert_eq!(cluster.operations(active), ["2 and 4 lack this"], "{}", stories(&cluster));
}

/// By the older view, of epoch 1, member 1 leads, and 2 is not complete. Since then 2 was let in; 1 has appended what nobody got; 2 or 3 leads
/// epoch 2, and has acknowledged entries. Power goes, so nobody knows what has committed. 1 begins alone and claims; then 2 turns up.
#[test]
pub fn an_entry_of_an_epoch_proves_that_its_beginning_has_committed() {
    let mut cluster = serving(3);
    cluster.kill(2);
    cluster.pass(700);
    cluster.propose(1, "all have this");
    cluster.pass(1_500);
    let backup = (cluster.view.clone(), cluster.version);
    assert!(!cluster.view.is_eligible(store(2)));
    cluster.restart(2);
    cluster.pass(2_000);
    assert!(cluster.view.is_eligible(store(2)));
    for other in [2, 3] {
        cluster.cut.insert((1, other));
    }
    cluster.propose(1, "nobody else gets this");
    cluster.kill(1);
    cluster.pass(2_000);
    cluster.cut.clear();
    let next = cluster.serving().expect("2 or 3 takes over");
    cluster.propose(next, "2 and 3 have this");
    cluster.pass(100);
    assert_eq!(cluster.operations(next), ["all have this", "2 and 3 have this"]);
    begin_again(&mut cluster, backup, &[1]);
    until(&mut cluster, 5_000, |cluster| cluster.view.active == Some(MemberId(1))).expect("1 claims");
    cluster.pass(500);
    cluster.restart(2);
    cluster.pass(20_000);
    let trouble = cluster.members[&1].member.status(cluster.now).trouble;
    assert!(
        cluster
            .serving()
            .is_none_or(|active| cluster.operations(active)[..] == ["all have this", "2 and 3 have this"]),
        "{}",
        stories(&cluster)
    );
    assert!(cluster.serving().is_some() || trouble.is_some(), "{}", stories(&cluster));
}

/// By the older view 3, which led, and 1 are complete, and 2 is not. 2 and 3 have acknowledged what 1 lacks, and the end of that is torn off 3.
/// 3 claims, and all run. Each epoch that it gave up for 2 left 2 another end of its log, for which the next one was given up.
#[test]
fn a_torn_log_is_whole_with_what_any_member_holds_behind_that_of_the_complete_ones() {
    let mut cluster = serving(3);
    cluster.step(1, Input::Operator { ticket: 1, order: Order::HandOver { to: Some(MemberId(3)) } });
    cluster.step(1, Input::Quiet);
    cluster.pass(3_000);
    assert_eq!(cluster.serving(), Some(3));
    cluster.kill(2);
    cluster.pass(700);
    cluster.propose(3, "1 and 3 have this");
    cluster.pass(1_500);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.restart(2);
    cluster.pass(2_000);
    cluster.kill(1);
    cluster.pass(700);
    cluster.propose(3, "2 and 3 have this");
    assert_eq!(cluster.operations(3).len(), 2, "it was acknowledged");
    begin_again(&mut cluster, backup, &[]);
    cluster.node(3).log.pop();
    (1..=3).for_each(|id| cluster.restart(id));
    cluster.node(3).member.is_suspect = true;
    for id in [1, 2] {
        cluster.node(id).member.candidacy.no_claim_before = cluster.now.plus_ms(60_000);
    }
    let epoch = cluster.view.epoch;
    cluster.pass(10_000);
    assert!(cluster.view.epoch.0 - epoch.0 <= 2, "{}", stories(&cluster));
    let active = cluster.serving().unwrap_or_else(|| panic!("{}", stories(&cluster)));
    assert_eq!(cluster.operations(active), ["1 and 3 have this", "2 and 3 have this"]);
}

/// 1 and 2 have begun epoch 2, and nothing else. By the older view that epoch is still to come; 3 leads it, by order, and its first entry
/// is the very same. That 2 knows it to have committed is no reason not to serve.
#[test]
fn a_first_entry_that_another_knows_already_is_served() {
    let mut cluster = serving(3);
    cluster.pass(1_500);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(3);
    cluster.pass(700);
    cluster.step(1, Input::Operator { ticket: 1, order: Order::HandOver { to: Some(MemberId(2)) } });
    cluster.step(1, Input::Quiet);
    cluster.pass(2_000);
    assert_eq!(cluster.serving(), Some(2));
    let base = cluster.members[&2].log.len();
    begin_again(&mut cluster, backup, &[3]);
    until(&mut cluster, 5_000, |cluster| cluster.view.active == Some(MemberId(3))).expect("3 claims");
    cluster.pass(1_000);
    cluster.step(3, Input::Operator { ticket: 2, order: Order::UncleanElect });
    cluster.pass(1_000);
    assert_eq!(cluster.members[&3].log.last(), cluster.members[&2].log.last(), "{}", stories(&cluster));
    restart_with_base(&mut cluster, 2, base);
    cluster.pass(5_000);
    assert!(cluster.serving().is_some(), "{}", stories(&cluster));
}

/// Four members, minimum 2. The active was elected by an order, and the group has served since. That order does not stand for members that are
/// silent at a later start: 2 and 4 lack what 1 and 3 have committed.
#[test]
pub fn an_order_by_which_a_group_has_served_stands_for_nobody_any_more() {
    let mut cluster = Cluster::new(4, 1, 2);
    cluster.pass(1_500);
    cluster.propose(1, "all have this");
    cluster.pass(1_500);
    let mut backup = (cluster.view.clone(), cluster.version);
    backup.0.unclean_epoch = backup.0.epoch;
    assert_eq!(backup.0.commit_hint.epoch, backup.0.epoch);
    [2, 4].into_iter().for_each(|id| cluster.kill(id));
    cluster.pass(700);
    cluster.propose(1, "2 and 4 lack this");
    let all = cluster.operations(1);
    begin_again(&mut cluster, backup, &[2, 4]);
    cluster.pass(6_000);
    assert_eq!(cluster.serving(), None, "{}", stories(&cluster));
    cluster.restart(3);
    cluster.asked = 0;
    cluster.pass(6_000);
    let active = cluster.serving().expect("three run");
    assert_eq!(cluster.operations(active), all);
}

/// Three members with a minimum of 2 are in sync, and 1 led. 2 was taken out, and then 1 and 3 acknowledged more
/// entries. These are torn off the log of 3. When 2 and 3 run, 3 does not lead without 1, the active of before, which
/// may hold what is missing.
#[test]
fn a_torn_log_waits_for_the_active_of_before() {
    let mut cluster = serving(3);
    cluster.kill(2);
    cluster.pass(700);
    cluster.propose(1, "1 and 3 have this");
    cluster.pass(100);
    assert_eq!(cluster.operations(1).len(), 1);
    let mut view = (cluster.view.clone(), cluster.version);
    // The view has not learnt of it yet.
    view.0.commit_hint = base::TxId::default();
    begin_again(&mut cluster, view, &[2]);
    let torn = cluster.node(3).log.pop().unwrap();
    cluster.restart(3);
    cluster.node(3).member.is_suspect = true;
    cluster.pass(10_000);
    assert_eq!(cluster.serving(), None, "{}", stories(&cluster));
    let trouble = cluster.members[&3].member.status(cluster.now).trouble.unwrap_or_default();
    assert!(trouble.contains("waits until all of 1 answer"), "{trouble}");
    cluster.restart(1);
    cluster.pass(5_000);
    let active = cluster.serving().expect("all run");
    assert!(cluster.members[&active].log.contains(&torn), "{}", stories(&cluster));
}

/// All three are in sync, and what they have acknowledged last is torn off 2 and 3. 1, which led, ends when 3 has claimed. The claim comes
/// to nothing, and leaves 1 in the view: 2 and 3 wait for it.
#[test]
pub fn a_torn_claim_does_not_forget_the_active_of_before() {
    let mut cluster = serving(3);
    cluster.propose(1, "all have this");
    cluster.pass(100);
    assert_eq!(cluster.operations(1).len(), 1);
    let mut view = (cluster.view.clone(), cluster.version);
    // The view has not learnt of it yet.
    view.0.commit_hint = base::TxId::default();
    begin_again(&mut cluster, view, &[]);
    let torn = cluster.node(2).log.pop();
    assert_eq!(cluster.node(3).log.pop(), torn);
    (1..=3).for_each(|id| cluster.restart(id));
    [2, 3].into_iter().for_each(|id| cluster.node(id).member.is_suspect = true);
    for id in [1, 2] {
        cluster.node(id).member.candidacy.no_claim_before = cluster.now.plus_ms(60_000);
    }
    pass_by(&mut cluster, 5_000, |cluster, from, to, message| {
        if (from, to) == (3, 1) && matches!(message, Message::NewEpoch { .. }) {
            cluster.kill(1);
            return None;
        }
        Some(0)
    });
    assert!(!cluster.up().contains(&1), "3 has claimed");
    cluster.pass(10_000);
    assert_eq!(cluster.serving(), None, "nobody who is there holds it: {}", stories(&cluster));
    cluster.restart(1);
    cluster.asked = 0;
    cluster.pass(5_000);
    let active = cluster.serving().unwrap_or_else(|| panic!("{}", stories(&cluster)));
    assert_eq!(cluster.operations(active), ["all have this"]);
}
