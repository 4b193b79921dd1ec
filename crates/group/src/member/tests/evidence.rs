//! Stories of coordinators and stores that were restored from copies, and of what others prove against them.

use super::{
    super::*,
    cluster::{Cluster, settings, store},
    first_claim::{epoch_start, until},
    groups::serving,
};

/// The coordinator was restored from a backup of before member 3 was taken out, all processes begin again, and member 3, which
/// lacks what has committed since, is first. Nobody gives up anything, and the epoch begins with the longest log.
#[test]
fn an_older_view_loses_nothing_that_any_member_holds() {
    let mut cluster = serving(3);
    cluster.propose(1, "all have this");
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(3);
    cluster.pass(600);
    for number in 0..5 {
        cluster.propose(1, &format!("3 lacks {number}"));
    }
    assert_eq!(cluster.view.in_sync, [store(1), store(2)]);
    cluster.kill(1);
    cluster.kill(2);
    (cluster.view, cluster.version) = backup;
    cluster.restart(3);
    cluster.pass(2_000);
    cluster.restart(2);
    cluster.restart(1);
    cluster.pass(5_000);
    let active = cluster.serving().expect("somebody leads");
    assert_eq!(cluster.operations(active).len(), 6);
    assert!((1..=3).all(|id| cluster.members[&id].distrust.is_none()), "no store was given up");
    assert_eq!(cluster.operations(3).len(), 6, "and the one that lacked something has it now");
}

/// The backup is from an earlier epoch than the members have promised: nobody claims, everybody says why, and the operator
/// has the view written anew from what the stores prove.
#[test]
fn a_view_of_an_earlier_epoch_is_repaired_by_order() {
    let mut cluster = serving(3);
    cluster.propose(1, "first");
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(1);
    cluster.pass(600);
    let active = cluster.serving().expect("another leads");
    cluster.propose(active, "second");
    cluster.restart(1);
    cluster.pass(1_000);
    for id in 1..=3 {
        cluster.kill(id);
    }
    (cluster.view, cluster.version) = backup;
    for id in 1..=3 {
        cluster.restart(id);
    }
    cluster.pass(5_000);
    assert_eq!(cluster.serving(), None);
    for id in 1..=3 {
        let trouble = cluster.members[&id].member.status(cluster.now).trouble.expect("it says what is wrong");
        assert!(trouble.contains("lost history") && trouble.contains("repair"), "{trouble}");
    }
    let epoch = cluster.view.epoch;
    let order = |is_confirmed| Order::Repair { without: Vec::new(), is_confirmed };
    cluster.step(2, Input::Operator { ticket: 1, order: order(false) });
    cluster.settle();
    assert!(matches!(&cluster.members[&2].answers[..], [(1, Ok(_))]), "{:?}", cluster.members[&2].answers);
    assert_eq!(cluster.view.epoch, epoch, "looking changes nothing");
    cluster.step(2, Input::Operator { ticket: 2, order: order(true) });
    cluster.pass(3_000);
    let active = cluster.serving().expect("one of the three leads");
    assert_eq!(cluster.operations(active), ["first", "second"]);
    assert!((1..=3).all(|id| cluster.members[&id].distrust.is_none()), "no store was given up");
}

/// A group that runs notices that its coordinator was set back, and one order has the view as it was.
#[test]
fn a_running_group_says_that_its_coordinator_has_gone_back() {
    let mut cluster = serving(3);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(3);
    cluster.pass(600);
    cluster.propose(1, "kept");
    (cluster.view, cluster.version) = backup;
    cluster.version -= 1;
    cluster.view.change_id += 1;
    for _ in 0..5 {
        cluster.read_view(1);
        cluster.pass(1_000);
    }
    assert_eq!(cluster.serving(), Some(1), "it goes on");
    let trouble = cluster.members[&1].member.status(cluster.now).trouble.expect("it says what is wrong");
    assert!(trouble.contains("gone back to version"), "{trouble}");
    let order = Order::Repair { without: Vec::new(), is_confirmed: true };
    cluster.step(1, Input::Operator { ticket: 2, order });
    cluster.pass(100);
    assert_eq!(cluster.view.in_sync, [store(1), store(2)]);
    assert_eq!(cluster.members[&1].member.status(cluster.now).trouble, None);
}

/// Member 2's disk is replaced by a copy of itself that is a few seconds old. The coordinator knows that more has committed.
#[test]
fn a_store_restored_from_a_copy_is_not_elected() {
    let mut cluster = serving(2);
    cluster.propose(1, "in the copy");
    let copy = cluster.members[&2].log.clone();
    for number in 0..3 {
        cluster.propose(1, &format!("2 lacks {number}"));
    }
    cluster.pass(1_500);
    cluster.kill(1);
    cluster.kill(2);
    cluster.node(2).log = copy;
    cluster.restart(2);
    cluster.pass(5_000);
    assert_eq!(cluster.serving(), None, "it lacks what the view knows to have committed");
    assert!(cluster.members[&2].distrust.is_none());
    cluster.restart(1);
    cluster.pass(3_000);
    assert_eq!(cluster.serving(), Some(1));
    assert_eq!(cluster.operations(2).len(), 4);
}

/// A tail that was torn on a claimant with a minimum of one: only the old active has what both had acknowledged.
#[test]
fn a_torn_tail_is_made_good_from_the_old_active() {
    let mut cluster = Cluster::new(2, 2, 1);
    cluster.pass(1_500);
    let active = cluster.serving().expect("one of the two leads");
    let other = 3 - active;
    cluster.propose(active, "both have this");
    cluster.kill(other);
    cluster.node(other).log.pop();
    let log = cluster.members[&other].log.clone();
    cluster.kill(active);
    cluster.restart(active);
    cluster.restart(other);
    let promised = cluster.members[&other].promised;
    let restored = Restored {
        promised,
        base: LogPoint::default(),
        tail: log,
        boot: 9,
        is_suspect: true,
        ..Restored::default()
    };
    let now = cluster.now;
    let node = cluster.node(other);
    (node.boot, node.member) = (9, Member::new(settings(), store(other), restored, now, 1));
    cluster.read_view(other);
    for (one, peer) in [(active, other), (other, active)] {
        cluster.step(one, Input::PeerConnected(MemberId(peer)));
    }
    // The one whose log is whole is slower to claim.
    cluster.now = cluster.now.plus_ms(1);
    cluster.pass(3_000);
    let active = cluster.serving().expect("one of the two leads");
    assert_eq!(cluster.operations(active), ["both have this"]);
}

/// Below the minimum, with the others gone for good, the operator takes them out of the list or lowers the minimum.
#[test]
fn a_survivor_below_the_minimum_is_reconfigured() {
    for (members, in_sync_min) in
        [(vec![MemberId(1), MemberId(2)], 1), (vec![MemberId(1)], 1), (vec![MemberId(2)], 1)]
    {
        let mut cluster = serving(2);
        cluster.propose(1, "kept");
        cluster.kill(1);
        cluster.pass(1_000);
        assert!(matches!(cluster.role(2), Role::Reading { .. }), "{:?}", cluster.role(2));
        let has_itself = members.contains(&MemberId(2));
        cluster.step(2, Input::Operator { ticket: 5, order: Order::Reconfigure { members, in_sync_min } });
        cluster.pass(1_000);
        let answers = cluster.members[&2].answers.clone();
        if has_itself {
            assert_eq!(cluster.serving(), Some(2), "{answers:?}");
            assert_eq!(cluster.operations(2), ["kept"]);
        } else {
            assert!(matches!(&answers[..], [(5, Err(_))]), "{answers:?}");
        }
    }
}

/// All processes have ended, and one begins alone. By the view it is complete, but the view may be an older one: it answers
/// nothing before another one was heard, or somebody says that they are gone.
#[test]
fn who_begins_alone_answers_nothing_on_the_view_alone() {
    for is_ordered in [false, true] {
        let mut cluster = serving(3);
        cluster.propose(1, "all have this");
        (1..=3).for_each(|id| cluster.kill(id));
        cluster.restart(3);
        for gone in [1, 2] {
            cluster.step(3, Input::PeerGone(MemberId(gone)));
        }
        cluster.pass(2_000);
        assert!(matches!(cluster.role(3), Role::Starting { .. }), "{:?}", cluster.role(3));
        let trouble =
            cluster.members[&3].member.status(cluster.now).trouble.expect("it says what it waits for");
        assert!(trouble.contains("answers nothing"), "{trouble}");
        if is_ordered {
            cluster.step(3, Input::Operator { ticket: 7, order: Order::UncleanElect });
            cluster.pass(100);
            assert!(matches!(cluster.role(3), Role::Reading { .. }), "{:?}", cluster.role(3));
            assert!(matches!(&cluster.members[&3].answers[..], [(7, Ok(_))]));
        } else {
            cluster.restart(2);
            cluster.pass(2_000);
            assert!(cluster.serving().is_some(), "{:?}", cluster.role(3));
        }
        assert!(cluster.view.unclean_epoch == Epoch(0), "nothing was given up");
    }
}

/// The view is an older one, and member 3 lacks what has committed since. It answers nothing while it is alone, nor before it has
/// taken over what another one has more.
#[test]
fn who_lacks_something_and_begins_alone_by_an_older_view_does_not_answer_without_it() {
    let mut cluster = serving(3);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(3);
    cluster.pass(600);
    cluster.propose(1, "3 lacks this");
    (1..=2).for_each(|id| cluster.kill(id));
    (cluster.view, cluster.version) = backup;
    cluster.restart(3);
    for gone in [1, 2] {
        cluster.step(3, Input::PeerGone(MemberId(gone)));
    }
    cluster.pass(2_000);
    cluster.restart(2);
    for _ in 0..3_000 {
        let has_it = cluster.members[&3].log.iter().any(|entry| &entry.payload[..] == b"3 lacks this");
        assert!(has_it || !matches!(cluster.role(3), Role::Reading { .. }), "{:?}", cluster.role(3));
        cluster.pass(1);
    }
    let active = cluster.serving().expect("somebody leads");
    assert_eq!(cluster.operations(active), ["3 lacks this"]);
}

/// With a minimum of two, nothing commits in a group of two without both.
#[test]
fn of_two_the_one_that_begins_alone_answers() {
    let mut cluster = serving(2);
    cluster.propose(1, "both have this");
    (1..=2).for_each(|id| cluster.kill(id));
    cluster.restart(2);
    cluster.step(2, Input::PeerGone(MemberId(1)));
    cluster.pass(2_000);
    assert!(matches!(cluster.role(2), Role::Reading { .. }), "{:?}", cluster.role(2));
}

/// A lone member has heard of nobody, however long it leads: nothing is begun, and the coordinator's silence ends nothing.
#[test]
fn who_begins_alone_begins_no_epoch_and_answers_nothing() {
    let mut cluster = serving(3);
    let backup = (cluster.view.clone(), cluster.version);
    cluster.kill(3);
    cluster.pass(600);
    cluster.propose(1, "3 lacks this");
    (1..=2).for_each(|id| cluster.kill(id));
    (cluster.view, cluster.version) = backup;
    cluster.restart(3);
    cluster.step(3, Input::PeerGone(MemberId(1)));
    until(&mut cluster, 5_000, |cluster| matches!(cluster.role(3), Role::Starting { .. }))
        .expect("it claims");
    // The coordinator answers nobody for a while, so the silent ones cannot be taken out.
    cluster.is_deaf = true;
    cluster.pass(10_000);
    cluster.is_deaf = false;
    for gone in [1, 2] {
        cluster.step(3, Input::PeerGone(MemberId(gone)));
    }
    cluster.pass(5_000);
    assert!(matches!(cluster.role(3), Role::Starting { .. }), "{:?}", cluster.role(3));
    assert_eq!(epoch_start(&cluster, 3), Sn(0));
    cluster.restart(2);
    cluster.pass(5_000);
    let active = cluster.serving().expect("one of the two leads");
    assert_eq!(cluster.operations(active), ["3 lacks this"]);
}

/// Another one has said where its log ends, and is gone before it could promise anything. It holds no more than this one: what is here
/// is certain, and is answered.
#[test]
fn who_was_told_that_another_holds_no_more_answers() {
    let mut cluster = serving(3);
    cluster.propose(1, "all have this");
    cluster.pass(100);
    (1..=3).for_each(|id| cluster.kill(id));
    let end = cluster.members[&2].member.end();
    cluster.restart(3);
    let known = crate::Known { promised: Epoch(1), end, committed: end };
    let message = crate::Message::Hello { known };
    cluster.step(3, Input::Message { from: store(2), boot: 9, message });
    for gone in [1, 2] {
        cluster.step(3, Input::PeerGone(MemberId(gone)));
    }
    cluster.pass(3_000);
    assert!(matches!(cluster.role(3), Role::Reading { .. }), "{:?}", cluster.role(3));
}

/// Member 1 has lost with its torn end what member 2 alone holds beside it. It leads, and has just asked member 2 for what it lacks.
fn asks_for_what_a_torn_end_has_lost() -> Cluster {
    let mut cluster = serving(3);
    cluster.propose(1, "all have this");
    cluster.step(1, Input::Operator { ticket: 1, order: Order::HandOver { to: Some(MemberId(2)) } });
    cluster.step(1, Input::Quiet);
    cluster.pass(2_000);
    assert_eq!(cluster.serving(), Some(2));
    cluster.kill(3);
    cluster.pass(600);
    cluster.propose(2, "3 never had this, and 1 loses it");
    assert_eq!(cluster.operations(2).len(), 2, "it was acknowledged");
    cluster.kill(2);
    cluster.kill(1);
    cluster.node(1).log.pop();
    let log = cluster.members[&1].log.clone();
    (1..=3).for_each(|id| cluster.restart(id));
    let node = &cluster.members[&1];
    let (promised, boot) = (node.promised, node.boot);
    let (base, is_suspect) = (LogPoint::default(), true);
    let restored = Restored { promised, base, tail: log, boot, is_suspect, ..Restored::default() };
    cluster.node(1).member = Member::new(settings(), store(1), restored, cluster.now, 1);
    cluster.read_view(1);
    for other in [2, 3] {
        cluster.step(1, Input::PeerConnected(MemberId(other)));
    }
    // Until member 1 leads and asks for what it lacks.
    let asks = |(from, _, to, message): &(MemberStore, u64, MemberId, crate::Message)| {
        let is_fetch = matches!(message, crate::Message::Fetch { .. });
        is_fetch && (from.member, *to) == (MemberId(1), MemberId(2))
    };
    for _ in 0..100_000 {
        if cluster.wire.iter().any(asks) {
            break;
        }
        if let Some((from, boot, to, message)) = cluster.wire.pop_front() {
            cluster.step(to.0, Input::Message { from, boot, message });
        } else {
            cluster.now = cluster.now.plus_ms(1);
            (1..=3).for_each(|id| cluster.step(id, Input::Tick));
        }
    }
    assert!(cluster.wire.iter().any(asks), "{:?}", cluster.role(1));
    cluster
}

/// Member 2 ends before it has handed on what it holds. Member 3, which was not in sync, is no substitute: the entry is waited for.
#[test]
fn what_a_torn_end_has_lost_is_waited_for_when_its_last_holder_ends() {
    let mut cluster = asks_for_what_a_torn_end_has_lost();
    cluster.kill(2);
    cluster.pass(300);
    let trouble = cluster.members[&1].member.status(cluster.now).trouble.expect("it says what it waits for");
    assert!(matches!(cluster.role(1), Role::Starting { .. }) && trouble.contains("torn"), "{trouble}");
    cluster.pass(5_000);
    assert_eq!(cluster.serving(), None, "nobody who is there holds it");
    cluster.restart(2);
    cluster.pass(5_000);
    let active = cluster.serving().expect("the group goes on");
    assert_eq!(cluster.operations(active), ["all have this", "3 never had this, and 1 loses it"]);
}

/// The log of member 2 does not go on from where this one ends, nor from anything that has committed here. That is no reason to ask the
/// same for ever.
#[test]
fn a_longer_log_that_joins_nowhere_is_not_asked_for_for_ever() {
    let mut cluster = asks_for_what_a_torn_end_has_lost();
    for _ in 0..2 {
        let asked = cluster.wire.iter().find_map(|(_, _, _, message)| match message {
            crate::Message::Fetch { epoch, after, .. } => Some((*epoch, *after)),
            _ => None,
        });
        let (epoch, after) = asked.expect("it asks from an earlier entry");
        cluster.wire.clear();
        let unknown = LogPoint { id: base::TxId { epoch: Epoch(1), sn: Sn(99) }, ..LogPoint::default() };
        let message = crate::Message::FetchFailed { epoch, after, committed: unknown, is_gone: false };
        let boot = cluster.members[&2].boot;
        cluster.step(1, Input::Message { from: store(2), boot, message });
    }
    assert!(matches!(cluster.role(1), Role::Following), "{:?}", cluster.role(1));
}

/// The active's log begins later, and the word of what it has committed since is behind that one on its way. A member that took this for a
/// contradiction would wait for an operator for ever.
#[test]
fn a_member_that_has_committed_as_much_as_it_was_told_of_contradicts_nobody() {
    let mut cluster = serving(3);
    cluster.propose(1, "kept");
    cluster.pass(200);
    let told = cluster.members[&1].member.committed();
    assert_eq!(cluster.members[&3].member.committed(), told);
    let (epoch, boot) = (cluster.view.epoch, cluster.members[&1].boot);
    let message = crate::Message::NeedsImage { epoch, unclean: Epoch(0) };
    cluster.step(3, Input::Message { from: store(1), boot, message });
    assert_eq!(cluster.members[&3].member.evidence.contradiction, None);
}
