//! The first claim of groups of which not all come back: who is waited for, for how long, and what another one's log is taken for.

use super::{
    super::*,
    cluster::{Cluster, store},
    first_claim::begin_again,
};
use crate::Message;

/// The view and all members, for the text of a failure.
pub fn stories(cluster: &Cluster) -> String {
    let each: Vec<_> = (1..=cluster.members.len() as u32)
        .map(|id| {
            let node = &cluster.members[&id];
            let status = node.member.status(cluster.now);
            format!(
                "{id}: up {} {:?} end {} trouble {:?}",
                node.is_up, status.role, status.end, status.trouble
            )
        })
        .collect();
    format!("{:?}\n{}", cluster.view, each.join("\n"))
}

/// A group of so many with a minimum of two. All but 1, which leads, and 2 have ended, and "kept" has committed since.
fn two_of(count: u32) -> Cluster {
    let mut cluster = Cluster::new(count, 1, 2);
    cluster.pass(1_500);
    for gone in 3..=count {
        cluster.kill(gone);
        cluster.pass(700);
    }
    cluster.propose(1, "kept");
    cluster.pass(100);
    cluster
}

/// Four members with a minimum of two, all complete by the older view. 2 and 4 lack what 1 and 3 have committed since.
pub fn two_of_four_lag() -> (Cluster, (GroupView, u64)) {
    let mut cluster = Cluster::new(4, 1, 2);
    cluster.pass(1_500);
    assert_eq!(cluster.view.in_sync.len(), 4);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(2);
    cluster.kill(4);
    cluster.pass(700);
    cluster.propose(1, "2 and 4 lack this");
    assert_eq!(cluster.operations(1).len(), 1);
    (cluster, backup)
}

/// Kills everybody and starts these; the others' addresses refuse.
fn begin(cluster: &mut Cluster, members: &[u32]) {
    let view = (cluster.view.clone(), cluster.version);
    begin_again(cluster, view, members);
}

/// The members that run wait and say why, and no epoch is begun. Then an order to `id` makes them serve the entries
/// that had committed.
fn wait_for_company_and_serve_by_order(cluster: &mut Cluster, id: u32) {
    let trouble = cluster.members[&id].member.status(cluster.now).trouble;
    assert!(trouble.as_ref().is_some_and(|text| text.contains("Start another one")), "{}", stories(cluster));
    let (serving, begun) = (cluster.serving(), super::first_claim::epoch_start(cluster, id));
    assert_eq!((serving, begun), (None, Sn(0)), "{}", stories(cluster));
    cluster.step(id, Input::Operator { ticket: 3, order: Order::UncleanElect });
    cluster.pass(5_000);
    let active = cluster.serving().unwrap_or_else(|| panic!("{}", stories(cluster)));
    assert_eq!(cluster.operations(active), ["kept"]);
    assert!(cluster.view.unclean_epoch == Epoch(0), "nothing was given up");
}

/// Sound coordinator. Four members, minimum 2; 3 and 4 are gone for good, 1 (active) and 2 have everything and are in sync. Both lose
/// power; 2 is first to claim, which makes 1 an exile. By an older view 3 and 4 might hold more: a third member, or an order, is needed.
#[test]
fn two_of_four_wait_for_a_third_member_or_an_order() {
    let two_run = || {
        let mut cluster = two_of(4);
        assert_eq!(cluster.view.in_sync, [store(1), store(2)]);
        begin(&mut cluster, &[1, 2]);
        cluster.node(1).member.candidacy.no_claim_before = cluster.now.plus_ms(2_000);
        cluster.pass(30_000);
        cluster
    };
    wait_for_company_and_serve_by_order(&mut two_run(), 2);
    let mut cluster = two_run();
    cluster.restart(4);
    cluster.pass(2_000);
    assert!(cluster.serving().is_some(), "{}", stories(&cluster));
}

/// In a group of five, member 2 begins alone a second before member 1.
#[test]
fn the_standby_begins_a_second_before_the_old_active() {
    let mut cluster = two_of(5);
    begin(&mut cluster, &[2]);
    cluster.pass(1_000);
    cluster.restart(1);
    cluster.pass(30_000);
    wait_for_company_and_serve_by_order(&mut cluster, 2);
}

/// Sound coordinator. Four members, minimum 2, in sync are 1 and 2; 4 lags (a junior). 2 and 3 are gone for good, and 1 and 4 begin.
#[test]
fn a_complete_member_and_a_junior_of_four_serve_by_order() {
    let mut cluster = two_of(4);
    begin(&mut cluster, &[1, 4]);
    cluster.pass(30_000);
    wait_for_company_and_serve_by_order(&mut cluster, 1);
}

/// Sound coordinator, three members, minimum 2. 1 begins again and hears the others say hello; then both end. 1 holds all that
/// has committed and has witnesses: it answers reads below the minimum, and can be made a group of one by order.
#[test]
fn one_that_has_heard_the_others_answers_reads_below_the_minimum() {
    let mut cluster = super::groups::serving(3);
    cluster.propose(1, "kept");
    cluster.pass(100);
    begin(&mut cluster, &[1, 2, 3]);
    cluster.settle();
    cluster.kill(2);
    cluster.kill(3);
    cluster.pass(10_000);
    assert!(cluster.members[&1].member.evidence.known().len() == 2, "both were heard");
    cluster.step(1, Input::Operator { ticket: 5, order: Order::UncleanElect });
    cluster.pass(5_000);
    let answers = &cluster.members[&1].answers;
    assert!(matches!(cluster.role(1), Role::Reading { .. }), "{}\n{answers:?}", stories(&cluster));
}

/// Adoption over a link that takes 300 ms for each piece, one after the other.
#[test]
fn a_long_tail_over_a_slow_link_is_adopted_in_time_in_proportion_to_its_length() {
    let mut took = Vec::new();
    for pieces in [1u64, 2, 3, 4, 6] {
        let mut cluster = super::groups::serving(3);
        cluster.propose(1, "kept");
        cluster.pass(1_500);
        for other in [2, 3] {
            cluster.cut.insert((1, other));
        }
        let big = "x".repeat(1 << 20);
        for _ in 0..pieces * 4 {
            cluster.propose(1, &big);
        }
        cluster.kill(1);
        cluster.wire.clear();
        cluster.cut.clear();
        // 2 and 3 have taken 1 out but nothing has committed since: both end before.
        cluster.view.in_sync = vec![store(2), store(3)];
        cluster.view.active = Some(MemberId(2));
        cluster.version += 1;
        begin(&mut cluster, &[1, 2, 3]);
        let began = cluster.now;
        let mut free_at = began;
        let mut asked = 0;
        let mut late: Vec<(Moment, (MemberStore, u64, MemberId, Message))> = Vec::new();
        while cluster.now < began.plus_ms(120_000) && cluster.serving().is_none() {
            cluster.now = cluster.now.plus_ms(1);
            (1..=3).for_each(|id| cluster.step(id, Input::Tick));
            let now = cluster.now;
            for (_, (from, boot, to, message)) in late.extract_if(.., |(at, _)| *at <= now) {
                cluster.step(to.0, Input::Message { from, boot, message });
            }
            while let Some((from, boot, to, message)) = cluster.wire.pop_front() {
                if matches!(message, Message::Fetch { .. }) {
                    asked += 1;
                }
                if from.member == MemberId(1) && matches!(message, Message::Fetched { .. }) {
                    free_at = free_at.max(now).plus_ms(300);
                    late.push((free_at, (from, boot, to, message)));
                } else {
                    cluster.step(to.0, Input::Message { from, boot, message });
                }
            }
        }
        took.push((pieces, cluster.now.ms_since(began), asked, cluster.serving()));
    }
    assert!(took.iter().all(|(pieces, ms, ..)| *ms < 2_000 + 600 * pieces), "{took:?}");
}

/// Lets time pass ms by ms, without the pauses that `pass` takes in one step.
pub fn tick(cluster: &mut Cluster, ms: u64) {
    for _ in 0..ms {
        cluster.now = cluster.now.plus_ms(1);
        for id in cluster.up() {
            cluster.step(id, Input::Tick);
        }
        cluster.settle();
    }
}

/// Lets time pass, with this delay for each message from `from` to `to`, in order; ends when somebody serves. Says how many epochs began.
pub fn with_delay(cluster: &mut Cluster, ms: u64, from: u32, to: u32, delay_ms: u64) -> u64 {
    let mut late: std::collections::VecDeque<(Moment, (MemberStore, u64, MemberId, Message))> =
        Default::default();
    let epoch = cluster.view.epoch.0;
    for _ in 0..ms {
        if cluster.serving().is_some() {
            break;
        }
        cluster.now = cluster.now.plus_ms(1);
        cluster.up().into_iter().for_each(|id| cluster.step(id, Input::Tick));
        let now = cluster.now;
        while late.front().is_some_and(|(at, _)| *at <= now) {
            let (_, (from, boot, to, message)) = late.pop_front().unwrap();
            cluster.step(to.0, Input::Message { from, boot, message });
        }
        while let Some((who, boot, whom, message)) = cluster.wire.pop_front() {
            if who.member.0 == from && whom.0 == to {
                late.push_back((now.plus_ms(delay_ms), (who, boot, whom, message)));
            } else {
                cluster.step(whom.0, Input::Message { from: who, boot, message });
            }
        }
    }
    cluster.view.epoch.0 - epoch
}

/// Sound coordinator, a takeover that is no first claim, below the minimum. 1 and 2 are complete; 2 has begun an epoch without the tail
/// that 1 holds, and nobody committed in it. 1 claims; 2 runs, is an exile, and its answers take `delay` ms. 1 passes 2 over, begins, and then a
/// grant that 2 sent before it got the first entry tells of 2's old end.
fn a_claim_past_an_exile(delay: u64) -> (u64, Option<u32>, u64) {
    let mut cluster = super::groups::serving(3);
    cluster.propose(1, "kept");
    cluster.step(1, Input::Operator { ticket: 1, order: Order::HandOver { to: Some(MemberId(3)) } });
    cluster.step(1, Input::Quiet);
    cluster.pass(3_000);
    assert_eq!(cluster.serving(), Some(3));
    // Only 1 gets this.
    cluster.cut.insert((3, 2));
    cluster.propose(3, "1 has this, and 2 lacks it");
    assert_eq!(cluster.operations(3), ["kept"]);
    // 1's process stands still, 3 ends, and 2 takes over.
    for (a, b) in [(1, 2), (2, 1), (1, 3), (3, 1)] {
        cluster.cut.insert((a, b));
    }
    cluster.kill(3);
    cluster.node(1).member.candidacy.no_claim_before = cluster.now.plus_ms(5_000);
    for _ in 0..3_000 {
        cluster.pass(1);
        if cluster.view.active == Some(MemberId(2))
            && cluster.members[&2].log.len() > cluster.members[&1].log.len() - 1
        {
            break;
        }
    }
    cluster.pass(1_000);
    assert!(!cluster.view.in_sync.contains(&store(1)), "{}", stories(&cluster));
    // 2 ends and begins again; 1 is the first to claim.
    cluster.kill(2);
    cluster.cut.clear();
    cluster.restart(2);
    cluster.node(2).member.candidacy.no_claim_before = cluster.now.plus_ms(60_000);
    let now = cluster.now;
    cluster.node(1).member.candidacy.no_claim_before = now;
    let began = cluster.now;
    let epochs = with_delay(&mut cluster, 30_000, 2, 1, delay);
    (epochs, cluster.serving(), cluster.now.ms_since(began))
}

#[test]
fn an_ordinary_claim_below_the_minimum_is_not_given_up_for_what_was_passed_over() {
    let all: Vec<_> = [0, 5, 20, 30, 45, 60, 80, 100, 120]
        .into_iter()
        .map(|delay| (delay, a_claim_past_an_exile(delay)))
        .collect();
    assert!(all.iter().all(|(_, (epochs, serving, _))| *epochs == 1 && serving.is_some()), "{all:?}");
}

/// Older coordinator, four members, minimum 2. 2 and 4 lack what 1 and 3 have committed, and run alone for a while. Then 3 turns up.
#[test]
fn two_of_four_that_lag_begin_nothing_before_a_third_member_is_heard() {
    for delay in [0, 5, 30, 60, 100] {
        let (mut cluster, backup) = two_of_four_lag();
        begin_again(&mut cluster, backup, &[2, 4]);
        cluster.pass(10_000);
        assert_eq!(super::first_claim::epoch_start(&cluster, 2), Sn(0), "{}", stories(&cluster));
        assert_eq!(super::first_claim::epoch_start(&cluster, 4), Sn(0), "{}", stories(&cluster));
        cluster.restart(3);
        with_delay(&mut cluster, 1_500, 3, 2, delay);
        cluster.pass(8_000);
        let active = cluster.serving().unwrap_or_else(|| panic!("delay {delay} {}", stories(&cluster)));
        assert_eq!(cluster.operations(active), ["2 and 4 lack this"], "delay {delay}");
    }
}

/// In a group of four that serves, an order to lead without the others does no harm.
#[test]
fn a_group_of_four_with_an_order_to_leave_two_out() {
    let mut cluster = two_of(4);
    begin(&mut cluster, &[1, 4]);
    cluster.pass(5_000);
    cluster.step(1, Input::Operator { ticket: 9, order: Order::UncleanElect });
    cluster.settle();
    cluster.pass(5_000);
    assert!(cluster.serving().is_some(), "{} {:?}", stories(&cluster), cluster.members[&1].answers);
    assert_eq!(cluster.operations(1), ["kept"]);
}

/// In a group of four, an order repairs the view and leaves out the two members that are silent.
#[test]
fn repair_that_leaves_out_the_silent_leads_to_a_group_that_serves() {
    let mut cluster = two_of(4);
    begin(&mut cluster, &[1, 4]);
    for id in [1, 4] {
        cluster.node(id).member.candidacy.no_claim_before = cluster.now.plus_ms(3_000);
    }
    cluster.pass(1_500);
    let without = vec![MemberId(2), MemberId(3)];
    cluster.step(1, Input::Operator { ticket: 3, order: Order::Repair { without, is_confirmed: true } });
    cluster.settle();
    cluster.pass(20_000);
    assert!(cluster.serving().is_some(), "{} {:?}", stories(&cluster), cluster.members[&1].answers);
    assert!(matches!(cluster.members[&1].answers[..], [(3, Ok(_))]), "{:?}", cluster.members[&1].answers);
}

/// Sound coordinator, four members, minimum 2. All lose power, 1, 2 and 4 are back. Which of them claims first is chance.
#[test]
fn three_of_four_serve_whichever_begins_first() {
    let mut stuck = Vec::new();
    for shift in 0..20u64 {
        let mut cluster = two_of(4);
        let view = (cluster.view.clone(), cluster.version);
        begin_again(&mut cluster, view, &[4]);
        let (first, second) = if shift < 10 { (1, 2) } else { (2, 1) };
        cluster.restart(first);
        cluster.pass(10 * (shift % 10));
        cluster.restart(second);
        cluster.pass(10_000);
        if cluster.serving().is_none() {
            stuck.push((first, 10 * (shift % 10)));
        }
    }
    assert!(stuck.is_empty(), "{stuck:?}");
}

/// Sound coordinator, four members, minimum 2. All begin and say hello; 3 and 4 end before anybody claims. 1 and 2 run, are complete and
/// hold all. 2 claims. They serve, with or without an order.
#[test]
fn two_complete_members_of_four_that_have_heard_all_serve_or_take_an_order() {
    let mut cluster = two_of(4);
    begin(&mut cluster, &[1, 2, 3, 4]);
    cluster.node(1).member.candidacy.no_claim_before = cluster.now.plus_ms(2_000);
    cluster.settle();
    cluster.kill(3);
    cluster.kill(4);
    cluster.pass(10_000);
    cluster.step(2, Input::Operator { ticket: 5, order: Order::UncleanElect });
    cluster.pass(10_000);
    assert!(cluster.serving().is_some(), "{} {:?}", stories(&cluster), cluster.members[&2].answers);
}

/// Sound coordinator, five members, everybody complete: all lose power, and some do not come back. With a minimum of two, two that are
/// silent may hold more; with a minimum of three they may not.
#[test]
fn as_many_of_five_must_come_back_as_leave_fewer_silent_than_the_minimum() {
    let served = |minimum: u32, back: &[u32]| {
        let mut cluster = Cluster::new(5, 1, minimum);
        cluster.pass(1_500);
        cluster.propose(1, "kept");
        cluster.pass(100);
        begin(&mut cluster, back);
        cluster.pass(15_000);
        cluster.serving().is_some()
    };
    for back in [[1, 2, 3], [2, 3, 4], [3, 4, 5]] {
        assert!(!served(2, &back[..2]), "{back:?}");
        assert!(!served(2, &back), "{back:?}");
        assert!(served(3, &back), "{back:?}");
    }
    for back in [[1, 2, 3, 4], [2, 3, 4, 5]] {
        assert!(served(2, &back), "{back:?}");
    }
}
