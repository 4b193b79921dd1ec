//! Questions to members that lack nothing, which get lost.

use super::{super::*, groups::serving, shown_more::pass_by};
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
