//! Stories of orders to repair a view and of members that contradict each other.

use super::{
    super::*,
    cluster::{Cluster, store},
    groups::serving,
};

/// The coordinator goes back while a claim is on its way.
#[test]
fn a_claimant_whose_coordinator_went_back_leads_after_the_repair() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(3);
    cluster.pass(600);
    cluster.kill(1);
    (cluster.is_deaf, cluster.holds_answers) = (true, true);
    while cluster.held.is_empty() {
        cluster.pass(1);
    }
    let (_, asked, _) = cluster.held.remove(0);
    (cluster.is_deaf, cluster.holds_answers) = (false, false);
    (cluster.view, cluster.version) = backup;
    cluster.step(2, Input::Changed { asked, answer: Err(crate::ChangeFailed::BadVersion) });
    cluster.pass(6_000);
    let status = cluster.members[&2].member.status(cluster.now);
    assert!(status.trouble.is_some_and(|trouble| trouble.contains("gone back to version")));
    let order = Order::Repair { without: vec![MemberId(1), MemberId(3)], is_confirmed: true };
    cluster.step(2, Input::Operator { ticket: 2, order });
    cluster.pass(3_000);
    assert_eq!(cluster.view.active, Some(MemberId(2)), "{:?}", cluster.members[&2].answers);
    cluster.restart(3);
    cluster.pass(3_000);
    assert_eq!(cluster.serving(), Some(2), "{:?}", cluster.view);
    assert_eq!(cluster.operations(3), ["kept"]);
}

/// The coordinator has forgotten the epoch that is led.
#[test]
fn an_active_of_a_forgotten_epoch_has_the_view_as_it_was() {
    let mut cluster = serving(3);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(1);
    cluster.pass(1_000);
    let active = cluster.serving().expect("another leads");
    (cluster.view, cluster.version) = backup;
    for _ in 0..5 {
        cluster.read_view(active);
        cluster.pass(1_000);
    }
    assert_eq!(cluster.serving(), Some(active));
    let order = Order::Repair { without: Vec::new(), is_confirmed: true };
    cluster.step(active, Input::Operator { ticket: 2, order });
    cluster.pass(100);
    assert_eq!(cluster.serving(), Some(active));
    assert_eq!(cluster.members[&active].member.status(cluster.now).trouble, None);
}

/// Member 3 was cut off from the others for long; what it heard of them is old.
#[test]
fn a_repair_rests_on_no_old_news() {
    let mut cluster = serving(3);
    cluster.propose(1, "all have this");
    for other in [1, 2] {
        cluster.cut.insert((3, other));
        cluster.cut.insert((other, 3));
    }
    cluster.pass(3_000);
    for number in 0..5 {
        cluster.propose(1, &format!("3 lacks {number}"));
    }
    cluster.pass(3_000);
    assert_eq!(cluster.serving(), Some(1));
    let view = cluster.view.clone();
    let order = Order::Repair { without: Vec::new(), is_confirmed: true };
    cluster.step(3, Input::Operator { ticket: 2, order });
    cluster.pass(3_000);
    assert_eq!(cluster.view.in_sync, view.in_sync);
}

/// The coordinator is older than the removal of member 3, which begins first. Member 2's log is complete, and it does not know
/// what has committed.
#[test]
fn an_epoch_begun_from_less_does_not_win_by_its_number() {
    for wait in [0, 1_500, 5_000] {
        let mut cluster = serving(3);
        cluster.propose(1, "all have this");
        let backup = (cluster.view.clone(), cluster.version);
        cluster.kill(3);
        cluster.pass(600);
        for number in 0..5 {
            cluster.propose(1, &format!("3 lacks {number}"));
        }
        cluster.kill(1);
        cluster.kill(2);
        (cluster.view, cluster.version) = backup;
        cluster.restart(3);
        for gone in [1, 2] {
            cluster.step(3, Input::PeerGone(MemberId(gone)));
        }
        cluster.pass(2_000);
        assert!(
            matches!(cluster.role(3), Role::Starting { .. }),
            "it lacks what has committed, and answers nothing"
        );
        cluster.restart(2);
        cluster.pass(wait);
        cluster.restart(1);
        cluster.pass(5_000);
        let active = cluster.serving().expect("somebody leads");
        assert_eq!(cluster.operations(active).len(), 6, "{wait}");
    }
}

/// Member 1 holds what has committed on it and on member 2. Then the coordinator and the store of member 2 were replaced by copies
/// of before, and 2 and 3 went on without that, so that nobody has given it up. Member 1 is not reached yet.
fn two_lines() -> Cluster {
    let mut cluster = serving(3);
    cluster.propose(1, "all have this");
    cluster.pass(100);
    cluster.kill(3);
    cluster.pass(600);
    for number in 0..5 {
        cluster.propose(1, &format!("1 and 2 have {number}"));
    }
    for other in [2, 3] {
        cluster.cut.insert((1, other));
        cluster.cut.insert((other, 1));
    }
    cluster.kill(2);
    cluster.node(2).log = cluster.members[&3].log.clone();
    cluster.view.in_sync = vec![store(2), store(3)];
    cluster.view.exiles = Vec::new();
    cluster.view.commit_hint = Default::default();
    cluster.view.active = None;
    cluster.version += 10;
    cluster.view.change_id += 1;
    cluster.read_view(1);
    cluster.restart(2);
    cluster.restart(3);
    cluster.pass(3_000);
    assert_ne!(cluster.serving().expect("2 or 3 leads"), 1);
    cluster
}

/// Brings messages, at most so many.
fn bring(cluster: &mut Cluster, at_most: usize) {
    for number in 0.. {
        let Some((from, boot, to, message)) = cluster.wire.pop_front() else { return };
        assert!(number < at_most, "without end: {message:?}");
        if !cluster.cut.contains(&(from.member.0, to.0)) {
            cluster.step(to.0, Input::Message { from, boot, message });
        }
    }
}

fn reach_member_1(cluster: &mut Cluster) {
    cluster.cut.clear();
    for other in [2, 3] {
        cluster.step(other, Input::PeerConnected(MemberId(1)));
        cluster.step(1, Input::PeerConnected(MemberId(other)));
    }
    bring(cluster, 200);
    for _ in 0..40 {
        cluster.now = cluster.now.plus_ms(50);
        for id in cluster.up() {
            cluster.step(id, Input::Tick);
        }
        bring(cluster, 200);
    }
}

/// Member 1 is not behind, though the others' log is longer, and though it parts from its own many entries before their epoch.
#[test]
pub fn a_contradiction_is_told_without_haste_and_costs_nobody_its_store() {
    for epochs_more in 0..2 {
        let mut cluster = two_lines();
        let active = cluster.serving().expect("2 or 3 leads");
        for number in 0..20 {
            cluster.propose(active, &format!("2 and 3 have {number}"));
        }
        for _ in 0..epochs_more {
            cluster.kill(active);
            cluster.pass(1_000);
            cluster.restart(active);
            cluster.pass(2_000);
        }
        reach_member_1(&mut cluster);
        let trouble = cluster.members[&1].member.status(cluster.now).trouble.expect("it says what is wrong");
        assert!(trouble.contains("no unclean election explains it"), "{trouble}");
        assert!(!cluster.members[&1].needs_image, "{epochs_more}: it is not behind");
        assert!((1..=3).all(|id| cluster.members[&id].distrust.is_none()), "no store was given up");
        assert_ne!(cluster.serving().expect("2 or 3 leads"), 1);
    }
}

/// It waits for the other one, which is gone for good.
#[test]
fn the_only_survivor_with_a_torn_tail_can_be_ordered_to_lead() {
    let mut cluster = serving(2);
    cluster.propose(1, "kept");
    cluster.kill(1);
    let promised = cluster.members[&2].promised;
    let log = cluster.members[&2].log.clone();
    let restored = Restored {
        promised,
        base: LogPoint::default(),
        tail: log,
        boot: 9,
        is_suspect: true,
        ..Restored::default()
    };
    let now = cluster.now;
    let node = cluster.node(2);
    (node.boot, node.member) = (9, Member::new(Settings::default(), store(2), restored, now, 1));
    cluster.read_view(2);
    cluster.pass(3_000);
    let trouble = cluster.members[&2].member.status(cluster.now).trouble.expect("it says what it waits for");
    assert!(trouble.contains("is torn") && trouble.contains("unclean-elect 2"), "{trouble}");
    cluster.step(2, Input::Operator { ticket: 3, order: Order::UncleanElect });
    cluster.pass(3_000);
    assert!(cluster.view.active == Some(MemberId(2)) && cluster.view.unclean_epoch > Epoch(0));
}

/// After two lines of entries nobody claims, and no order makes one of them the view without naming who is left out.
#[test]
fn what_has_committed_on_a_member_that_was_heard_is_not_left_out_silently() {
    let mut cluster = two_lines();
    let active = cluster.serving().expect("2 or 3 leads");
    for number in 0..20 {
        cluster.propose(active, &format!("2 and 3 have {number}"));
    }
    reach_member_1(&mut cluster);
    for id in [2, 3] {
        cluster.kill(id);
        cluster.restart(id);
    }
    cluster.pass(5_000);
    assert_eq!(cluster.serving(), None);
    let longest = [2, 3].into_iter().max_by_key(|id| cluster.members[id].member.end().id).expect("two");
    let order = |without| Order::Repair { without, is_confirmed: true };
    cluster.step(longest, Input::Operator { ticket: 1, order: order(Vec::new()) });
    cluster.pass(1_000);
    let answers = &cluster.members[&longest].answers;
    assert!(
        matches!(&answers[..], [(1, Err(text))] if text.contains("has another entry there")),
        "{answers:?}"
    );
    cluster.step(longest, Input::Operator { ticket: 2, order: order(vec![MemberId(1)]) });
    cluster.pass(3_000);
    let active = cluster.serving().expect("one of the longest logs leads");
    assert_eq!(cluster.operations(active).len(), 21);
    assert!(cluster.members[&1].distrust.is_some(), "what it held was given up by order");
}

/// A greeting of before, from a connection that has ended, arrives after the newer one, and one of a store that was given up.
#[test]
fn late_news_takes_back_nothing_that_was_proved() {
    let mut cluster = serving(3);
    let committed = cluster.members[&3].member.end();
    let later = crate::Known { promised: Epoch(9), end: committed, committed };
    let renewed = MemberStore { generation: 1, ..store(3) };
    let of_renewed = crate::Known { promised: Epoch(2), ..crate::Known::default() };
    let hello = |from, known| Input::Message { from, boot: 1, message: crate::Message::Hello { known } };
    let known = |cluster: &Cluster| cluster.members[&2].member.status(cluster.now).known[&MemberId(3)];
    cluster.step(2, hello(store(3), later));
    cluster.step(2, hello(store(3), crate::Known::default()));
    let (_, proved) = known(&cluster);
    assert_eq!((proved.promised, proved.committed), (Epoch(9), committed));
    cluster.step(2, hello(renewed, of_renewed));
    cluster.step(2, hello(store(3), later));
    assert_eq!(known(&cluster), (renewed, of_renewed));
}
