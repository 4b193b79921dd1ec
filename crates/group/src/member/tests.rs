mod at_random;
mod cluster;
mod company;
mod deaf;
mod deposed_tails;
mod digests;
mod ended;
mod evidence;
mod first_claim;
mod groups;
mod hand_over;
mod hunt;
#[cfg(feature = "broken")]
mod left_out;
mod lost_news;
mod lost_stores;
mod orders;
mod purged;
mod repair;
mod shown_more;
mod world;

use super::*;
use crate::{ChangeFailed, EpochStart, IdSteps, Proposal};
use base::{Durable, EntryKind, TxId};
use bytes::Bytes;

fn me() -> MemberStore {
    MemberStore { member: MemberId(1), generation: 0 }
}

fn member(restored: Restored) -> Member {
    Member::new(Settings::default(), me(), restored, Moment::default(), 7)
}

fn first_view() -> GroupView {
    GroupView::new(&[me()], 1)
}

fn operation(text: &'static str) -> Proposal {
    Proposal { kind: EntryKind::Operation, payload: Bytes::from_static(text.as_bytes()) }
}

const NOW: Moment = Moment::from_ms(10);

/// Makes the effects durable and gives the proof back, as a driver does.
fn settle(member: &mut Member, mut effects: Effects) -> Effects {
    effects.take_entries();
    let proof = effects.release(Durable::attest()).proof.expect("something was made durable");
    member.step(NOW, Input::Durable(proof))
}

fn serving() -> Member {
    let mut member = member(Restored::default());
    let mut effects = member.step(NOW, Input::View { view: first_view(), version: 0 });
    let asked = effects.take_change().unwrap().name();
    let _ = effects.release_at_once();
    let effects = member.step(NOW, Input::Changed { asked, answer: Ok(1) });
    let effects = settle(&mut member, effects);
    let effects = settle(&mut member, effects);
    assert_eq!(effects.release_at_once().role, Some(Role::Serving { epoch: Epoch(1) }));
    member
}

#[test]
fn a_group_of_one_starts() {
    let mut member = member(Restored::default());
    assert_eq!(member.role(), &Role::Following);

    // It asks for the next epoch and says nothing yet.
    let mut effects = member.step(NOW, Input::View { view: first_view(), version: 7 });
    let change = effects.take_change().unwrap();
    assert_eq!((change.expected_version, change.view.epoch), (7, Epoch(1)));
    assert_eq!(change.view.active, Some(MemberId(1)));
    assert_eq!(change.view.in_sync, [me()]);
    let asked = change.name();
    assert_eq!(effects.release_at_once().role, Some(Role::Claiming));

    // Confirmed: the promise first.
    let effects = member.step(NOW, Input::Changed { asked, answer: Ok(8) });
    assert_eq!(effects.promise(), Some(Epoch(1)));
    assert_eq!(member.promised(), Epoch(0));

    // The promise is durable: the epoch's first entry.
    let mut effects = settle(&mut member, effects);
    assert_eq!(member.promised(), Epoch(1));
    let entries = effects.take_entries();
    assert_eq!(entries.len(), 1);
    let start = EpochStart::decode(&entries[0].payload).unwrap();
    assert_eq!((start.epoch, start.previous), (Epoch(1), LogPoint::default()));
    assert_eq!(member.committed(), Sn(0));

    // The entry is durable: it has committed, and the member serves.
    let out = settle(&mut member, effects).release_at_once();
    assert_eq!(out.committed, Some(Sn(1)));
    assert_eq!(out.role, Some(Role::Serving { epoch: Epoch(1) }));
}

#[test]
fn a_level_that_rises_is_written_to_the_view_and_names_the_leader_of_the_next_epoch() {
    let mut member = serving();
    assert_eq!(member.deadline(), None, "a group of one has nothing to tell");
    let mut effects = member.step(NOW, Input::Level(Level(2)));
    assert_eq!(effects.take_change(), None, "not more often than hints are");
    let due = member.deadline().expect("the view is to hear of it");
    let mut effects = member.step(due, Input::Tick);
    let change = effects.take_change().expect("it does");
    assert_eq!(change.view.level, Level(2));
    let _ = member.step(due, Input::Changed { asked: change.name(), answer: Ok(2) });
    assert_eq!(member.deadline(), None, "once");

    let base = member.end();
    let restored = Restored { promised: Epoch(1), base, boot: 3, level: Level(2), ..Restored::default() };
    let mut member = Member::new(Settings::default(), me(), restored, Moment::default(), 7);
    let mut effects = member.step(NOW, Input::View { view: change.view, version: 2 });
    let asked = effects.take_change().unwrap().name();
    let effects = member.step(NOW, Input::Changed { asked, answer: Ok(3) });
    let mut effects = settle(&mut member, effects);
    let start = EpochStart::decode(&effects.take_entries()[0].payload).unwrap();
    assert_eq!(start.leader, Some(MemberLife { store: me(), boot: 3 }));
}

#[test]
fn several_batches_in_flight_commit_in_their_order() {
    let mut member = serving();
    let first = member.step(NOW, Input::Propose(vec![operation("a"), operation("b")]));
    let second = member.step(NOW, Input::Propose(vec![operation("c")]));
    assert_eq!(member.end().id, TxId { epoch: Epoch(1), sn: Sn(4) });
    assert_eq!(member.committed(), Sn(1));
    assert_eq!(settle(&mut member, first).release_at_once().committed, Some(Sn(3)));
    assert_eq!(settle(&mut member, second).release_at_once().committed, Some(Sn(4)));
}

#[test]
fn a_restarted_member_claims_a_new_epoch_though_it_is_named_active() {
    let old = serving();
    let mut view = first_view();
    view.epoch = Epoch(1);
    view.active = Some(MemberId(1));
    let restored = Restored { promised: Epoch(1), base: old.end(), boot: 2, ..Restored::default() };
    let mut member = member(restored);
    let mut effects = member.step(NOW, Input::View { view, version: 1 });
    let change = effects.take_change().unwrap();
    assert_eq!(change.view.epoch, Epoch(2));
    assert_eq!(change.view.in_sync, [me()]);
    assert!(matches!(effects.release_at_once().role, Some(Role::Claiming)));
}

#[test]
fn an_epoch_seen_is_promised_before_the_next_is_claimed() {
    // The old claim was confirmed, the promise did not reach the disk.
    let mut view = first_view();
    view.epoch = Epoch(5);
    let mut member = member(Restored { promised: Epoch(4), ..Restored::default() });
    let mut effects = member.step(NOW, Input::View { view, version: 9 });
    assert_eq!(effects.take_change(), None);
    assert_eq!(effects.promise(), Some(Epoch(5)));
    let mut effects = settle(&mut member, effects);
    assert_eq!(effects.take_change().unwrap().view.epoch, Epoch(6));
}

#[test]
fn a_coordinator_that_has_lost_history_is_not_believed() {
    let mut member = member(Restored { promised: Epoch(3), ..Restored::default() });
    let effects = member.step(NOW, Input::View { view: first_view(), version: 0 });
    let Some(Role::Stopped { reason }) = effects.release_at_once().role else { panic!() };
    assert!(reason.contains("lost history"), "{reason}");
}

#[test]
fn a_log_that_lacks_committed_entries_is_not_offered() {
    let mut view = first_view();
    view.commit_hint = TxId { epoch: Epoch(1), sn: Sn(5) };
    view.epoch = Epoch(1);
    let mut member = member(Restored { promised: Epoch(1), ..Restored::default() });
    let effects = member.step(NOW, Input::View { view, version: 0 });
    assert!(matches!(effects.release_at_once().role, Some(Role::Stopped { .. })));
}

#[test]
fn another_generation_of_the_store_is_not_eligible() {
    let mut view = first_view();
    view.in_sync[0].generation = 1;
    let mut member = member(Restored::default());
    let effects = member.step(NOW, Input::View { view, version: 0 });
    assert!(matches!(effects.release_at_once().role, Some(Role::Stopped { .. })));
}

#[test]
fn an_unknown_answer_is_asked_for_again_with_the_identical_change() {
    let mut member = member(Restored::default());
    let mut effects = member.step(NOW, Input::View { view: first_view(), version: 0 });
    let change = effects.take_change().unwrap();
    let _ = member.step(NOW, Input::Changed { asked: change.name(), answer: Err(ChangeFailed::Unknown) });
    let at = member.deadline().unwrap();
    assert!(member.step(NOW, Input::Tick).take_change().is_none());
    assert_eq!(member.step(at, Input::Tick).take_change(), Some(change));
}

#[test]
fn a_refused_claim_is_in_doubt_until_the_view_is_read() {
    let mut member = member(Restored::default());
    let mut effects = member.step(NOW, Input::View { view: first_view(), version: 0 });
    let asked = effects.take_change().unwrap().name();
    let mut effects = member.step(NOW, Input::Changed { asked, answer: Err(ChangeFailed::BadVersion) });
    assert!(effects.take_outgoing().read_view);
    // Still in doubt: an earlier copy may have been taken. The view that is read next tells.
    assert_eq!(member.role(), &Role::Claiming);
    let at = member.deadline().unwrap();
    assert!(member.step(at, Input::Tick).take_outgoing().read_view);
    let mut others = first_view();
    others.change_id = 99;
    let mut effects = member.step(at, Input::View { view: others, version: 4 });
    assert_eq!(effects.take_change().unwrap().expected_version, 4);
}

/// The coordinator was put back to an older view, which refused the change, and an operator has had the view written again
/// that the change was based on.
#[test]
fn a_change_that_was_refused_is_asked_for_again_when_its_view_is_back() {
    let mut member = member(Restored::default());
    let mut effects = member.step(NOW, Input::View { view: first_view(), version: 3 });
    let change = effects.take_change().unwrap();
    let _ = member.step(NOW, Input::Changed { asked: change.name(), answer: Err(ChangeFailed::BadVersion) });
    // It may also be an older look at the view, told late: the coordinator is not asked the same without end.
    assert!(member.step(NOW, Input::View { view: first_view(), version: 3 }).take_change().is_none());
    let at = member.deadline().expect("it asks again");
    let mut effects = member.step(at, Input::Tick);
    let again = effects.take_change().expect("it is still wanted");
    let _ = effects.take_outgoing();
    assert_eq!((again.expected_version, again.expected_id), (change.expected_version, change.expected_id));
    assert_ne!(again.name(), change.name(), "nothing is left of the first one");
    let mut effects = member.step(NOW, Input::Changed { asked: again.name(), answer: Ok(4) });
    assert_eq!(effects.promise(), Some(Epoch(1)));
    let _ = effects.take_outgoing();
}

/// A copy whose answer was lost may be on its way: then the very same change is asked for.
#[test]
fn a_change_of_which_a_copy_may_be_on_its_way_is_repeated_when_its_view_is_back() {
    let mut member = member(Restored::default());
    let mut effects = member.step(NOW, Input::View { view: first_view(), version: 3 });
    let change = effects.take_change().unwrap();
    let asked = change.name();
    let _ = member.step(NOW, Input::Changed { asked, answer: Err(ChangeFailed::Unknown) });
    let _ = member.step(NOW, Input::Changed { asked, answer: Err(ChangeFailed::BadVersion) });
    let _ = member.step(NOW, Input::View { view: first_view(), version: 3 });
    let at = member.deadline().unwrap();
    assert_eq!(member.step(at, Input::Tick).take_change(), Some(change));
}

#[test]
fn a_refused_claim_that_was_taken_after_all_is_recognised() {
    let mut member = member(Restored::default());
    let mut effects = member.step(NOW, Input::View { view: first_view(), version: 0 });
    let change = effects.take_change().unwrap();
    let answer = Err(ChangeFailed::BadVersion);
    let _ = member.step(NOW, Input::Changed { asked: change.name(), answer });
    let effects = member.step(NOW, Input::View { view: change.view, version: 1 });
    assert_eq!(effects.promise(), Some(Epoch(1)));
}

#[test]
fn proposals_are_given_back_unless_this_member_serves() {
    let mut member = member(Restored::default());
    let effects = member.step(NOW, Input::Propose(vec![operation("a")]));
    assert_eq!(effects.release_at_once().refused, [operation("a")]);
}

#[test]
fn nothing_commits_after_the_disk_has_failed() {
    let mut member = serving();
    let effects = member.step(NOW, Input::Propose(vec![operation("a")]));
    assert!(matches!(member.step(NOW, Input::DiskFailed).release_at_once().role, Some(Role::Stopped { .. })));
    let out = settle(&mut member, effects).release_at_once();
    assert_eq!(out.committed, None);
    assert_eq!(member.committed(), Sn(1));
}

#[test]
fn a_view_of_a_later_epoch_deposes() {
    let mut member = serving();
    let mut view = first_view();
    view.epoch = Epoch(2);
    let out = member.step(NOW, Input::View { view, version: 9 }).take_outgoing();
    assert_eq!(out.role, Some(Role::Following));
    assert!(out.stepped_down.is_some());
    let effects = member.step(NOW, Input::Propose(vec![operation("a")]));
    assert_eq!(effects.release_at_once().refused, [operation("a")]);
}

#[test]
fn the_first_entry_of_an_epoch_reads_back() {
    let clean = EpochStart {
        epoch: Epoch(3),
        previous: LogPoint::default(),
        id_steps: IdSteps::default(),
        is_unclean: false,
        keeps_skipped: false,
        leader: None,
    };
    let both = EpochStart { is_unclean: true, keeps_skipped: true, ..clean };
    let store = MemberStore { member: MemberId(7), generation: 2 };
    let led = EpochStart { leader: Some(MemberLife { store, boot: 9 }), ..both };
    for start in [clean, EpochStart { is_unclean: true, ..clean }, both, led] {
        let bytes = start.encode();
        assert_eq!(EpochStart::decode(&bytes), Some(start));
        for length in 0..bytes.len() {
            assert_eq!(EpochStart::decode(&bytes[..length]), None);
        }
    }
    // A later release may say more about the leader, which is passed over.
    let mut bytes = led.encode().to_vec();
    bytes.extend_from_slice(b"more");
    assert_eq!(EpochStart::decode(&bytes), None, "it says itself how much is added");
    let at = bytes.len() - 6;
    bytes[at] = 4;
    assert_eq!(EpochStart::decode(&bytes), Some(led));
    // This is the record as it was written before there were flags.
    let mut bytes = clean.encode().to_vec();
    bytes.truncate(57);
    bytes[0] = 1;
    assert_eq!(EpochStart::decode(&bytes), Some(clean));
    // A flag from tomorrow says something that this program cannot heed.
    let mut bytes = clean.encode().to_vec();
    bytes[57] = 4;
    assert_eq!(EpochStart::decode(&bytes), None);
}
