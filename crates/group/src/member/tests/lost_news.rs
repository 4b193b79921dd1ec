//! Questions to members that lack nothing, which get lost.

use super::{super::*, cluster::store, first_claim::restart_with_base, groups::serving, shown_more::pass_by};
use crate::Message;

/// 3 holds all entries, and its acknowledgements got lost. Over a new connection it is asked whether it does, and that
/// gets lost as well: it was claiming at that moment. No edit comes that would be sent to it.
#[test]
fn a_member_that_lacks_nothing_is_let_in_although_the_question_was_lost() {
    let mut cluster = serving(3);
    cluster.propose(1, "3 has this");
    cluster.cut.insert((3, 1));
    cluster.propose(1, "3 has this, and cannot say so");
    cluster.pass(1_500);
    assert!(!cluster.view.in_sync.iter().any(|store| store.member == MemberId(3)), "3 was taken out");

    cluster.cut.clear();
    cluster.step(1, Input::PeerConnected(MemberId(3)));
    cluster.step(3, Input::PeerConnected(MemberId(1)));
    let mut is_lost = false;
    pass_by(&mut cluster, 3_000, |_, _, to, message| {
        let is_question = matches!(message, Message::Append(append) if append.entries.is_empty());
        if to == 3 && is_question && !is_lost {
            is_lost = true;
            return None;
        }
        Some(0)
    });
    assert!(is_lost, "3 was asked");
    assert!(cluster.view.in_sync.iter().any(|store| store.member == MemberId(3)), "3 is in sync again");
}

/// An active has asked for a member's removal, and the coordinator has refused it, for another member leads by now. Then an
/// older read of the view comes in, late: the one that the removal was based on.
#[test]
fn a_change_that_was_refused_is_not_asked_for_again_at_once_when_an_old_view_is_told_late() {
    let mut cluster = serving(3);
    let (view, version) = (cluster.view.clone(), cluster.version);
    (cluster.version, cluster.view.change_id) = (version + 1, 77);
    cluster.holds_answers = true;
    cluster.kill(3);
    cluster.pass(1_500);
    let (_, asked, answer) = cluster.held.pop().expect("it is to be removed");
    assert_eq!(answer, Err(crate::ChangeFailed::BadVersion));
    let before = cluster.asked;
    // No view is read meanwhile.
    cluster.is_deaf = true;
    cluster.step(1, Input::Changed { asked, answer });
    cluster.step(1, Input::View { view, version });
    cluster.pass(90);
    assert_eq!(cluster.asked, before, "nothing has changed since it was refused");
    cluster.pass(50);
    assert_eq!(cluster.asked, before + 1);
}

/// All have purged their first entries. A word of member 3 from when it still lacked them is told once more, long after it has
/// acknowledged everything, in the same life and epoch.
fn a_late_word_of_a_member_that_has_everything(message: fn(Epoch, LogPoint) -> Message) {
    let mut cluster = serving(3);
    for number in 0..5 {
        cluster.propose(1, &format!("edit {number}"));
    }
    cluster.pass(100);
    let long_ago = cluster.members[&3].log[1].point();
    for id in 1..=3 {
        cluster.kill(id);
    }
    for id in 1..=3 {
        restart_with_base(&mut cluster, id, 4);
        cluster.purged.insert(id, Sn(4));
    }
    cluster.pass(2_000);
    let active = cluster.serving().expect("all are there");
    let other = if active == 3 { 2 } else { 3 };
    assert_eq!(cluster.view.in_sync.len(), 3);
    cluster.propose(active, "more");
    cluster.pass(50);
    let (asked, epoch) = (cluster.asked, cluster.members[&active].member.promised());
    let boot = cluster.members[&other].boot;
    cluster.step(active, Input::PeerConnected(MemberId(other)));
    cluster.step(active, Input::Message { from: store(other), boot, message: message(epoch, long_ago) });
    cluster.pass(500);
    cluster.propose(active, "after");
    cluster.pass(500);
    assert_eq!(cluster.operations(other).last().map(String::as_str), Some("after"));
    assert_eq!(cluster.view.in_sync.len(), 3);
    assert!(cluster.asked <= asked + 1, "the view learns what has committed, and nothing else");
}

#[test]
fn a_late_word_that_entries_are_missing_takes_nobody_out() {
    a_late_word_of_a_member_that_has_everything(|epoch, end| Message::Mismatch {
        epoch,
        end,
        committed: end,
    });
}

#[test]
fn a_late_word_that_the_logs_contradict_each_other_takes_nobody_out() {
    a_late_word_of_a_member_that_has_everything(|epoch, end| Message::Contradiction {
        epoch,
        end,
        committed: LogPoint { chain: base::Chain(1), ..end },
    });
}

/// An answer to a beacon of long ago, after its connection was made anew: the stream would go on from there.
#[test]
fn a_late_word_about_the_end_of_a_log_takes_nobody_out() {
    a_late_word_of_a_member_that_has_everything(|epoch, end| Message::Grant {
        epoch,
        round: 1,
        is_granted: false,
        is_ready: true,
        end,
        committed: end,
        data_servers: 0,
    });
}
