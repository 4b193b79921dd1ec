//! Stories of groups of several members.

use super::{
    super::*,
    cluster::{Cluster, store},
};
use crate::{EpochStart, IdSteps, member::candidate::EPOCHS_SKIPPED};

pub fn serving(count: u32) -> Cluster {
    let mut cluster = Cluster::new(count, 1, 1.max(2.min(count)));
    cluster.pass(1_500);
    let status = cluster.members[&1].member.status(cluster.now);
    assert_eq!(cluster.serving(), Some(1), "{status:#?}");
    cluster
}

#[test]
fn juniors_are_let_in_one_after_the_other() {
    let cluster = serving(4);
    assert_eq!(cluster.view.in_sync, [store(1), store(2), store(3), store(4)]);
    assert_eq!(cluster.view.exiles, []);
}

#[test]
fn what_the_active_commits_everybody_applies() {
    let mut cluster = serving(3);
    for number in 0..10 {
        cluster.propose(1, &format!("edit {number}"));
    }
    assert_eq!(cluster.operations(1).len(), 10);
    cluster.pass(10);
    assert_eq!(cluster.operations(2), cluster.operations(1));
    assert_eq!(cluster.operations(3), cluster.operations(1));
    assert_eq!(cluster.members[&3].committed.len(), cluster.members[&1].log.len());
}

#[test]
fn a_standby_follows_within_half_a_second_and_loses_nothing() {
    let mut cluster = serving(4);
    cluster.propose(1, "kept");
    cluster.kill(1);
    cluster.pass(450);
    let active = cluster.serving().expect("one of the three follows");
    assert_ne!(active, 1);
    assert_eq!(cluster.operations(active), ["kept"]);
    cluster.propose(active, "after");
    assert_eq!(cluster.operations(active), ["kept", "after"]);
    assert_eq!(cluster.view.active, Some(MemberId(active)));

    // The old active comes back, is a junior at first, and is let in.
    cluster.restart(1);
    cluster.pass(1_000);
    assert!(cluster.view.in_sync.contains(&store(1)), "{:?}", cluster.view);
    assert_eq!(cluster.operations(1), ["kept", "after"]);
}

/// The view has told a claimant that its claim was taken, and it has asked for the next change already, when the answer to
/// the claim arrives at last. Taken for the answer to the removal, it would let entries commit that a member lacks which
/// the coordinator still calls complete.
#[test]
fn a_late_answer_to_a_claim_confirms_no_removal() {
    let mut cluster = serving(3);
    cluster.kill(1);
    cluster.holds_answers = true;
    let claimant = (0..600).find_map(|_| {
        cluster.pass(1);
        cluster.held.first().map(|(member, ..)| *member)
    });
    let claimant = claimant.expect("somebody claims");
    let (_, claim, taken) = cluster.held.remove(0);
    cluster.read_view(claimant);
    let other = 5 - claimant;
    cluster.kill(other);
    cluster.pass(20);
    assert_eq!(cluster.held.len(), 1, "the claimant has asked for the removal of {other}");

    let answer = Input::Changed { asked: claim, answer: taken };
    cluster.step(claimant, answer);
    let view = cluster.members[&claimant].member.view().cloned().expect("it has read the view");
    assert!(view.in_sync.contains(&store(other)), "the removal is not confirmed: {view:?}");

    // Its own answer confirms it, however often it comes.
    let (_, removal, made) = cluster.held.remove(0);
    for _ in 0..2 {
        cluster.step(claimant, Input::Changed { asked: removal, answer: made });
    }
    let view = cluster.members[&claimant].member.view().cloned().expect("it has read the view");
    assert_eq!(view, cluster.view);
}

#[test]
fn four_actives_in_a_row_fall() {
    let mut cluster = serving(4);
    for round in 0..4 {
        let active = cluster.serving().expect("somebody leads");
        cluster.propose(active, &format!("round {round}"));
        cluster.kill(active);
        cluster.pass(600);
        cluster.restart(active);
        cluster.pass(1_000);
    }
    let active = cluster.serving().expect("somebody leads");
    assert_eq!(cluster.operations(active), ["round 0", "round 1", "round 2", "round 3"]);
}

#[test]
fn a_deposed_active_commits_nothing_and_knows_it_soon() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    for other in [2, 3] {
        cluster.cut.insert((1, other));
        cluster.cut.insert((other, 1));
    }
    cluster.propose(1, "nobody else has this");
    let lease_end = cluster.members[&1].member.lease_end().unwrap();
    assert_eq!(cluster.operations(1), ["kept"]);
    // Its watch may never fire: what it may still do rests on its own lease, which ends before another claims.
    let before = cluster.version;
    while cluster.version == before {
        cluster.pass(10);
    }
    assert!(lease_end <= cluster.now || cluster.view.active == Some(MemberId(1)));
    cluster.pass(1_000);
    cluster.cut.clear();
    cluster.pass(2_000);
    let active = cluster.serving().expect("somebody leads");
    let operations = cluster.operations(active);
    assert_eq!(operations.first().map(String::as_str), Some("kept"));
    for id in [1, 2, 3] {
        assert_eq!(cluster.operations(id), operations);
    }
}

#[test]
fn a_cut_off_log_is_rebuilt_where_it_was_applied() {
    let mut cluster = serving(3);
    for other in [2, 3] {
        cluster.cut.insert((1, other));
        cluster.cut.insert((other, 1));
    }
    cluster.step(1, Input::Propose(vec![super::cluster::edit("lost")]));
    cluster.kill(1);
    cluster.pass(600);
    let active = cluster.serving().expect("another leads");
    cluster.propose(active, "kept");
    cluster.cut.clear();
    cluster.restart(1);
    cluster.pass(1_000);
    assert_eq!(cluster.operations(1), ["kept"]);
    assert!(cluster.members[&1].distrust.is_none());
}

#[test]
fn an_epoch_is_handed_over_at_once() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    cluster.step(1, Input::Operator { ticket: 7, order: Order::HandOver { to: Some(MemberId(3)) } });
    assert!(matches!(cluster.role(1), Role::HandingOver { .. }));
    cluster.step(1, Input::Quiet);
    cluster.settle();
    assert_eq!(cluster.serving(), Some(3), "{:?}", cluster.role(3));
    assert_eq!(cluster.operations(3), ["kept"]);
    assert_eq!(cluster.members[&1].answers.len(), 1);
    assert!(!cluster.members[&1].rebuild);
    cluster.pass(1_000);
    assert!(cluster.view.in_sync.contains(&store(1)));
    assert_eq!(cluster.serving(), Some(3));
}

#[test]
fn an_epoch_is_handed_to_whoever_can_serve_at_once() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    // The higher number would be chosen otherwise; it says so with its next grant.
    cluster.step(3, Input::Ready(false));
    cluster.pass(200);
    cluster.step(1, Input::Operator { ticket: 7, order: Order::HandOver { to: None } });
    cluster.step(1, Input::Quiet);
    cluster.settle();
    assert_eq!(cluster.serving(), Some(2));
    // An order that names a member is obeyed, and so is one that finds nobody better.
    cluster.pass(1_000);
    cluster.step(2, Input::Operator { ticket: 8, order: Order::HandOver { to: Some(MemberId(3)) } });
    cluster.step(2, Input::Quiet);
    cluster.settle();
    assert_eq!(cluster.serving(), Some(3));
}

#[test]
fn whoever_can_serve_at_once_takes_over_first() {
    for unready in [2, 3] {
        let mut cluster = serving(3);
        cluster.propose(1, "kept");
        cluster.step(unready, Input::Ready(false));
        cluster.kill(1);
        cluster.pass(1_000);
        assert_eq!(cluster.serving(), Some(5 - unready));
    }
    // It is only a wish: alone, it leads all the same.
    let mut cluster = serving(3);
    cluster.step(2, Input::Ready(false));
    cluster.step(3, Input::Ready(false));
    cluster.kill(1);
    cluster.pass(1_000);
    assert!(cluster.serving().is_some());
}

#[test]
fn below_the_minimum_nothing_commits_until_another_is_back() {
    let mut cluster = serving(2);
    cluster.propose(1, "both have it");
    cluster.kill(2);
    cluster.pass(300);
    assert_eq!(cluster.view.exiles, [store(2)]);
    assert!(!cluster.members[&1].member.is_writable());
    cluster.propose(1, "waits");
    cluster.pass(300);
    assert_eq!(cluster.operations(1), ["both have it"]);
    cluster.restart(2);
    cluster.pass(600);
    assert_eq!(cluster.operations(1), ["both have it", "waits"]);
    assert_eq!(cluster.operations(2), ["both have it", "waits"]);
}

#[test]
fn members_come_and_go_while_the_group_serves() {
    let mut cluster = serving(3);
    let members = vec![MemberId(1), MemberId(2)];
    let order = Order::Reconfigure { members: members.clone(), in_sync_min: 2 };
    cluster.step(1, Input::Operator { ticket: 1, order });
    cluster.pass(200);
    assert_eq!((&cluster.view.members, &cluster.view.in_sync), (&members, &vec![store(1), store(2)]));
    assert!(cluster.members[&1].answers[0].1.is_ok());
    let members = vec![MemberId(1), MemberId(2), MemberId(3)];
    let order = Order::Reconfigure { members: members.clone(), in_sync_min: 2 };
    cluster.step(1, Input::Operator { ticket: 2, order });
    cluster.pass(1_000);
    assert_eq!(cluster.view.in_sync.len(), 3);
}

#[test]
fn a_removal_that_would_leave_too_few_is_refused() {
    let mut cluster = serving(2);
    let order = Order::Reconfigure { members: vec![MemberId(1)], in_sync_min: 1 };
    cluster.step(1, Input::Operator { ticket: 1, order });
    cluster.pass(300);
    assert!(
        cluster.members[&1].answers.iter().all(|(_, answer)| answer.is_ok()),
        "one is enough when one is asked for"
    );
    assert_eq!(cluster.view.members, [MemberId(1)]);
}

#[test]
fn all_restart_and_go_on() {
    let mut cluster = serving(4);
    cluster.propose(1, "kept");
    for id in 1..=4 {
        cluster.kill(id);
    }
    for id in 1..=4 {
        cluster.restart(id);
    }
    cluster.pass(1_500);
    let active = cluster.serving().expect("somebody leads");
    cluster.propose(active, "after");
    cluster.pass(10);
    for id in 1..=4 {
        assert_eq!(cluster.operations(id), ["kept", "after"]);
    }
}

#[test]
fn nobody_follows_without_an_order_when_the_complete_ones_are_gone() {
    let mut cluster = Cluster::new(3, 1, 1);
    cluster.cut.insert((1, 3));
    cluster.pass(1_000);
    cluster.propose(1, "3 lacks it");
    cluster.kill(1);
    cluster.kill(2);
    cluster.pass(5_000);
    assert_eq!(cluster.serving(), None);
    cluster.step(3, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.pass(100);
    assert_eq!(cluster.serving(), Some(3), "{:?}", cluster.role(3));
    assert_eq!(cluster.operations(3), [""; 0]);
}

#[test]
fn who_restarts_with_a_shorter_lease_waits_for_the_longer_one_that_it_gave() {
    let mut cluster = serving(3);
    let (short, long) = (cluster.settings, 10_000);
    // A rolling restart has brought the group to longer leases ...
    cluster.settings.lease_ms = long;
    for member in [2, 3, 1] {
        cluster.kill(member);
        cluster.pass(600);
        cluster.restart(member);
        cluster.pass(long + 1_000);
    }
    let active = cluster.serving().expect("somebody leads");
    let others: Vec<u32> = cluster.up().into_iter().filter(|member| *member != active).collect();
    let epoch = cluster.view.epoch;
    // ... and while the active is cut off from the others, they are brought back to shorter ones.
    for other in &others {
        cluster.cut.extend([(active, *other), (*other, active)]);
    }
    let lease_end = cluster.members[&active].member.lease_end().expect("others are eligible");
    assert!(lease_end > cluster.now.plus_ms(5_000));
    cluster.settings = short;
    for other in &others {
        cluster.kill(*other);
        cluster.restart(*other);
    }
    while cluster.view.epoch == epoch {
        cluster.pass(20);
        assert!(cluster.now < lease_end.plus_ms(long), "it is not waited for ever");
    }
    assert!(
        cluster.now >= lease_end,
        "the next was elected {} ms too early",
        lease_end.ms_since(cluster.now)
    );

    // The new active has waited; from here on a restart waits no longer than leases are now.
    cluster.pass(2_000);
    assert_eq!(cluster.view.lease_ms, short.lease_ms);
}

#[test]
fn a_lease_of_one_ends_before_another_can_claim() {
    let mut cluster = serving(3);
    cluster.pass(200);
    let end = cluster.members[&1].member.lease_end().unwrap();
    assert!(end > cluster.now);
    cluster.kill(1);
    let version = cluster.version;
    while cluster.version == version {
        cluster.pass(5);
    }
    assert!(cluster.now > end);
}

#[test]
fn after_an_unclean_election_the_one_that_knows_more_is_renewed() {
    let mut cluster = Cluster::new(3, 1, 1);
    cluster.cut.insert((1, 3));
    cluster.pass(1_000);
    for number in 0..5 {
        cluster.propose(1, &format!("3 lacks {number}"));
    }
    cluster.kill(1);
    cluster.kill(2);
    cluster.pass(1_000);
    cluster.step(3, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.pass(1_000);
    assert_eq!(cluster.serving(), Some(3));
    cluster.restart(2);
    cluster.pass(1_000);
    assert_eq!(cluster.serving(), Some(3), "the new line goes on");
    // This restart has forgotten what had committed, so its log could be cut to the new line.
    assert_eq!(cluster.operations(2), cluster.operations(3));
    cluster.cut.clear();
    // This one remembers, and is not believed.
    let log = cluster.members[&1].log.clone();
    cluster.restart(1);
    let base = log.last().unwrap().point();
    let restored = Restored { promised: Epoch(1), base, boot: 9, ..Restored::default() };
    let now = cluster.now;
    let node = cluster.node(1);
    (node.boot, node.member) = (9, Member::new(Settings::default(), store(1), restored, now, 1));
    cluster.read_view(1);
    cluster.pass(1_000);
    assert_eq!(cluster.serving(), Some(3), "the new line goes on");
    assert!(cluster.members[&1].needs_image || cluster.members[&1].distrust.is_some());
}

#[test]
fn an_order_that_changes_nothing_is_answered() {
    let mut cluster = serving(3);
    let order = Order::Reconfigure { members: vec![MemberId(1), MemberId(2), MemberId(3)], in_sync_min: 2 };
    let version = cluster.version;
    cluster.step(1, Input::Operator { ticket: 5, order });
    cluster.pass(100);
    let answers = &cluster.members[&1].answers;
    assert!(matches!(&answers[..], [(5, Ok(text))] if text.contains("already")), "{answers:?}");
    assert_eq!(cluster.version, version);
}

#[test]
fn a_member_that_is_back_in_a_moment_goes_out_and_in_once() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    cluster.pass(100);
    let asked = cluster.asked;
    // Its new life is in the coordinator's records before the active has heard of it.
    cluster.kill(2);
    cluster.restart(2);
    cluster.pass(1_000);
    assert_eq!(cluster.view.in_sync, [store(1), store(2), store(3)]);
    assert_eq!((cluster.asked - asked, cluster.not_made), (2, 0), "one change takes it out, one lets it in");
}

#[test]
fn what_a_process_said_before_its_end_does_not_let_it_in_again() {
    let mut cluster = serving(3);
    cluster.pass(100);
    let (asked, end) = (cluster.asked, cluster.members[&2].member.end());
    cluster.kill(2);
    // It was on its way when the process ended.
    let committed = end;
    let message = crate::Message::Grant {
        epoch: Epoch(1),
        round: 1,
        is_granted: true,
        is_ready: true,
        end,
        committed,
        data_servers: 0,
    };
    cluster.step(1, Input::Message { from: store(2), boot: 1, message });
    cluster.pass(200);
    assert_eq!(cluster.view.in_sync, [store(1), store(3)]);
    assert_eq!(cluster.asked - asked, 1);
}

#[test]
fn a_change_that_the_coordinator_refuses_is_asked_for_now_and_then() {
    let mut cluster = serving(3);
    for pair in [(1, 3), (3, 1)] {
        cluster.cut.insert(pair);
    }
    cluster.pass(400);
    assert_eq!(cluster.view.in_sync, [store(1), store(2)]);
    // Another process has begun with the third one's store, which goes on all the same.
    cluster.records.insert(3, 9);
    cluster.cut.clear();
    cluster.pass(1_000);
    assert_eq!(cluster.view.in_sync, [store(1), store(2)]);
    assert!((3..=12).contains(&cluster.not_made), "{} times", cluster.not_made);
    cluster.records.clear();
    cluster.pass(200);
    assert_eq!(cluster.view.in_sync, [store(1), store(2), store(3)]);

    // Nobody is let out either, and an order is answered.
    cluster.refuses = true;
    cluster.not_made = 0;
    cluster.kill(3);
    cluster.pass(1_000);
    assert!((3..=12).contains(&cluster.not_made), "{} times", cluster.not_made);
    cluster.refuses = false;
    cluster.pass(200);
    assert_eq!(cluster.view.in_sync, [store(1), store(2)]);
    cluster.refuses = true;
    let order = Order::Reconfigure { members: vec![MemberId(1), MemberId(2)], in_sync_min: 2 };
    cluster.step(1, Input::Operator { ticket: 4, order });
    cluster.pass(300);
    let answers = &cluster.members[&1].answers;
    assert!(matches!(&answers[..], [(4, Err(text))] if text.contains("refused")), "{answers:?}");
}

/// Member 3 has nothing of what the two others have committed, and they are gone.
fn all_complete_ones_are_gone(in_sync_min: u32) -> Cluster {
    let mut cluster = Cluster::new(3, 2, in_sync_min);
    for pair in [(1, 3), (2, 3)] {
        cluster.cut.insert(pair);
    }
    cluster.pass(1_500);
    for number in 0..5 {
        cluster.propose(1, &format!("3 lacks {number}"));
    }
    assert_eq!(cluster.operations(1).len(), 5);
    cluster.kill(1);
    cluster.kill(2);
    cluster.pass(1_000);
    cluster
}

#[test]
fn an_order_to_lead_does_not_lie_in_wait() {
    let mut cluster = all_complete_ones_are_gone(1);
    // Somebody has changed the view meanwhile, so somebody is there.
    cluster.version += 1;
    let epoch = cluster.view.epoch;
    cluster.step(3, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.pass(5_000);
    assert_eq!((cluster.serving(), cluster.view.epoch), (None, epoch));
    let answers = &cluster.members[&3].answers;
    assert!(matches!(&answers[..], [(9, Err(text))] if text.contains("another member")), "{answers:?}");

    // Given again, it waits for the end of what another's word has earned it, and hears a complete member in that time.
    let (mut view, version) = (cluster.view.clone(), cluster.version + 1);
    view.epoch = Epoch(epoch.0 + 1);
    view.active = Some(MemberId(2));
    (cluster.view, cluster.version) = (view, version);
    cluster.read_view(3);
    cluster.step(3, Input::Operator { ticket: 10, order: Order::UncleanElect });
    let message = crate::Message::PreVote { epoch };
    cluster.step(3, Input::Message { from: store(2), boot: 2, message });
    cluster.pass(5_000);
    assert_eq!((cluster.serving(), cluster.version), (None, version));
    let answers = &cluster.members[&3].answers;
    assert!(matches!(&answers[1..], [(10, Err(text))] if text.contains("complete")), "{answers:?}");
}

/// With a minimum of one, whoever claims first after a start waits for all others, or for this order.
fn lead_without_the_others(cluster: &mut Cluster, id: u32) {
    cluster.pass(1_000);
    let role = cluster.role(id);
    assert_eq!(role, Role::Following, "it waits for those who are silent");
    let trouble = cluster.members[&id].member.status(cluster.now).trouble;
    assert!(trouble.as_ref().is_some_and(|text| text.contains("silent")), "{trouble:?}");
    cluster.step(id, Input::Operator { ticket: 77, order: Order::UncleanElect });
    let answers = &cluster.members[&id].answers;
    assert!(matches!(&answers.last(), Some((77, Ok(text))) if text.contains("without")), "{answers:?}");
}

#[test]
fn who_was_elected_uncleanly_leads_again_after_a_restart() {
    let mut cluster = all_complete_ones_are_gone(1);
    cluster.step(3, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.pass(100);
    assert_eq!(cluster.serving(), Some(3));
    let last = cluster.members[&3].log.last().unwrap();
    let start = EpochStart::decode(&last.payload).expect("the first entry of its epoch");
    let epochs = IdSteps::default().times(cluster.view.epoch.0);
    assert_eq!(start.id_steps, IdSteps::UNCLEAN_MIN.plus(epochs), "ids of all that is lost are passed over");
    assert!(start.is_unclean);
    cluster.kill(3);
    cluster.restart(3);
    lead_without_the_others(&mut cluster, 3);
    cluster.pass(1_500);
    assert_eq!(cluster.serving(), Some(3), "{:?}", cluster.role(3));
    assert!(cluster.members[&3].distrust.is_none());
    let last = cluster.members[&3].log.last().unwrap();
    let start = EpochStart::decode(&last.payload).expect("the first entry of its epoch");
    assert!(!start.is_unclean, "that is told already, by the entry before");
    // By the operator's word for the silent ones, again.
    assert_eq!(start.id_steps, IdSteps::default().times(EPOCHS_SKIPPED));
}

/// The claim is the coordinator's, and the process ends before it hears so. When it begins again it is elected like any
/// other: nothing in that life tells of the order.
#[test]
fn who_ends_between_an_unclean_claim_and_its_first_entry_marks_the_next_epoch() {
    let mut cluster = all_complete_ones_are_gone(1);
    cluster.loses_answers = true;
    cluster.step(3, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.pass(50);
    assert_eq!(cluster.view.active, Some(MemberId(3)), "it was made");
    assert!(cluster.members[&3].log.is_empty());
    cluster.kill(3);
    cluster.loses_answers = false;
    cluster.restart(3);
    lead_without_the_others(&mut cluster, 3);
    cluster.pass(1_500);
    assert_eq!(cluster.serving(), Some(3), "{:?}", cluster.role(3));
    assert!(cluster.view.epoch > cluster.view.unclean_epoch);
    let last = cluster.members[&3].log.last().unwrap();
    let start = EpochStart::decode(&last.payload).expect("the first entry of its epoch");
    assert!(start.is_unclean, "whoever reads the log learns of it");
    // Both orders went on by 64 epochs, and its log tells of neither.
    let epochs = IdSteps::default().times(cluster.view.epoch.0);
    assert_eq!(start.id_steps, IdSteps::UNCLEAN_MIN.times(2).plus(epochs));
}

#[test]
fn who_knows_more_than_an_unclean_election_has_left_begins_anew() {
    // Nothing can commit before a second member is in sync, so no image will ever be newer than what this one knows.
    let mut cluster = all_complete_ones_are_gone(2);
    cluster.step(3, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.pass(500);
    assert!(matches!(cluster.role(3), Role::Reading { .. }), "{:?}", cluster.role(3));
    cluster.cut.clear();
    let log = cluster.members[&2].log.clone();
    cluster.restart(2);
    let base = log.last().unwrap().point();
    let restored = Restored { promised: Epoch(1), base, boot: 9, ..Restored::default() };
    let now = cluster.now;
    let node = cluster.node(2);
    (node.boot, node.member) = (9, Member::new(Settings::default(), store(2), restored, now, 1));
    cluster.read_view(2);
    cluster.pass(1_000);
    let reason = cluster.members[&2].distrust.clone().expect("it gives up what it has");
    assert!(reason.contains("an operator"), "{reason}");
}

/// Member 2 knows entries to have committed up to a point far before the active's base. So the active streams from its
/// disk, and the entry from which the stream goes on is another than member 2 has.
#[test]
fn who_knows_of_a_line_that_was_given_up_long_ago_begins_anew() {
    let mut cluster = all_complete_ones_are_gone(1);
    cluster.step(3, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.pass(500);
    assert_eq!(cluster.serving(), Some(3));
    for number in 0..20 {
        cluster.propose(3, &format!("after the election {number}"));
    }
    cluster.kill(3);
    // Both remember what had committed.
    let remembers = |cluster: &mut Cluster, id: u32| {
        let (now, promised) = (cluster.now, cluster.members[&id].promised);
        let base = cluster.members[&id].log.last().unwrap().point();
        cluster.restart(id);
        let restored = Restored { promised, base, boot: 9, ..Restored::default() };
        let member = Member::new(Settings::default(), store(id), restored, now, 1);
        let node = cluster.node(id);
        (node.boot, node.member) = (9, member);
        cluster.read_view(id);
        base.id.sn
    };
    let active_base = remembers(&mut cluster, 3);
    lead_without_the_others(&mut cluster, 3);
    cluster.pass(1_500);
    assert_eq!(cluster.serving(), Some(3), "{:?}", cluster.role(3));
    cluster.cut.clear();
    let base = remembers(&mut cluster, 2);
    assert!(base < active_base, "{base}, {active_base}");
    cluster.pass(2_000);
    assert_eq!(cluster.serving(), Some(3), "the new line goes on");
    assert!(cluster.members[&2].distrust.is_some(), "{:?}", cluster.role(2));
}

/// Member 3 was ordered to lead although it lacks what has committed, and the coordinator does not answer.
fn ordered_in_vain() -> Cluster {
    let mut cluster = all_complete_ones_are_gone(1);
    cluster.is_deaf = true;
    cluster.step(3, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.pass(500);
    assert_eq!((cluster.serving(), cluster.role(3)), (None, Role::Claiming));
    assert!(cluster.members[&3].answers.is_empty(), "nobody knows yet");
    cluster
}

fn a_complete_member_speaks(cluster: &mut Cluster) {
    let (epoch, boot) = (cluster.view.epoch, cluster.members[&1].boot);
    cluster.step(3, Input::Message { from: store(1), boot, message: crate::Message::PreVote { epoch } });
}

#[test]
fn an_unclean_claim_without_an_answer_is_repeated_until_there_is_one() {
    let mut cluster = ordered_in_vain();
    cluster.is_deaf = false;
    cluster.pass(1_000);
    assert_eq!(cluster.serving(), Some(3));
    let answers = &cluster.members[&3].answers;
    assert!(matches!(&answers[..], [(9, Ok(_))]), "{answers:?}");

    // It was made at once, and only the answer got lost.
    let mut cluster = all_complete_ones_are_gone(1);
    cluster.loses_answers = true;
    let epoch = cluster.view.epoch;
    cluster.step(3, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.pass(50);
    cluster.loses_answers = false;
    cluster.pass(3_000);
    assert_eq!(
        (cluster.serving(), cluster.view.epoch),
        (Some(3), Epoch(epoch.0 + EPOCHS_SKIPPED)),
        "made once"
    );
    let last =
        cluster.members[&3].log.iter().rfind(|entry| entry.kind == base::EntryKind::EpochStart).unwrap();
    let start = EpochStart::decode(&last.payload).unwrap();
    assert_eq!(start.id_steps, IdSteps::UNCLEAN_MIN.plus(IdSteps::default().times(cluster.view.epoch.0)));
}

#[test]
fn an_unclean_claim_is_not_repeated_once_a_complete_member_is_heard() {
    let mut cluster = ordered_in_vain();
    let version = cluster.version;
    a_complete_member_speaks(&mut cluster);
    let answers = cluster.members[&3].answers.clone();
    assert!(matches!(&answers[..], [(9, Err(text))] if text.contains("not tried again")), "{answers:?}");
    cluster.is_deaf = false;
    cluster.pass(10_000);
    assert_eq!((cluster.serving(), cluster.version), (None, version), "nothing is lost");

    // The complete one leads, and the other follows it.
    cluster.cut.clear();
    cluster.restart(1);
    lead_without_the_others(&mut cluster, 1);
    cluster.pass(3_000);
    assert_eq!(cluster.serving(), Some(1), "{:?}", cluster.view);
    assert_eq!(cluster.role(3), Role::Following);
    cluster.propose(1, "more");
    cluster.pass(1_000);
    assert_eq!(cluster.operations(3), cluster.operations(1));
}

#[test]
fn an_unclean_claim_that_was_taken_all_the_same_is_lived_up_to() {
    let mut cluster = all_complete_ones_are_gone(1);
    cluster.loses_answers = true;
    // The view is not read either.
    cluster.step(3, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.pass(20);
    let epoch = cluster.view.epoch;
    assert_eq!(cluster.view.active, Some(MemberId(3)));
    a_complete_member_speaks(&mut cluster);
    cluster.loses_answers = false;
    cluster.pass(3_000);
    assert_eq!((cluster.serving(), cluster.view.epoch), (Some(3), epoch), "nobody else may lead");
}

#[test]
fn an_order_that_became_void_can_be_given_again() {
    let mut cluster = ordered_in_vain();
    a_complete_member_speaks(&mut cluster);
    cluster.is_deaf = false;
    cluster.pass(2_000);
    assert_eq!(cluster.serving(), None);
    cluster.step(3, Input::Operator { ticket: 10, order: Order::UncleanElect });
    cluster.pass(1_000);
    assert_eq!(cluster.serving(), Some(3), "{:?}", cluster.role(3));
    let answers = &cluster.members[&3].answers;
    assert!(matches!(&answers[..], [(9, Err(_)), (10, Ok(_))]), "{answers:?}");
}
