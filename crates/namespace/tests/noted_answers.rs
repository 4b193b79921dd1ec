//! Notes in the journal of calls that were answered and have changed nothing.

mod common;

use base::{CallOrigin, ClientId, CopyOfCall, Level, Sn};
use common::{World, bytes_of};
use namespace::{
    Edit, Planned, RetryLookup,
    older_calls::{self, Noted, OlderCalls, Table},
    ops::{note_answer, raise_level},
};

fn world() -> World {
    let mut world = World::new(0);
    let planned = world.plan(|ns, ctx| raise_level::plan(ns, ctx, Level::NOTED_ANSWERS));
    let Ok(Planned::Edit(edit)) = planned else { panic!("{planned:?}") };
    world.apply(edit);
    world
}

fn copy(retry_count: i32, repeats: u32) -> CallOrigin {
    CallOrigin { retry_count, repeats, ..World::new(0).origin() }
}

fn note(world: &World, origin: CallOrigin) -> Option<Edit> {
    note_answer::plan(&world.ns, &world.context(Some(origin))).map(Into::into)
}

fn noted(retry_count: u32, repeats: u32) -> RetryLookup {
    RetryLookup::Noted(CopyOfCall { retry_count, repeats })
}

#[test]
fn a_note_changes_the_retry_cache_and_nothing_else() {
    let mut world = world();
    let (digest, content) = (world.ns.digest(), world.ns.content_digest());
    let edit = note(&world, copy(2, 1)).expect("there are older copies");
    assert_eq!(Edit::decode(&bytes_of(&edit)), Ok(edit.clone()));
    let applied = world.apply(edit);
    assert_eq!(applied.block_changes, []);
    assert_eq!(world.ns.content_digest(), content);
    assert_ne!(world.ns.digest(), digest, "members that lack it are found out");
    for restarted in [false, true] {
        let known = world.ns.retry_lookup(&copy(0, 0), 42);
        assert_eq!(known, noted(2, 1), "{restarted}");
        assert!([copy(0, 9), copy(2, 0), copy(2, 1)].iter().all(|late| known.forbids(late)));
        assert!(![copy(2, 2), copy(3, 0), copy(-1, 0)].iter().any(|later| known.forbids(later)));
        assert_eq!(known.into_result(&copy(3, 0)), Ok(None), "it is planned");
        assert_eq!(world.ns.retry_lookup(&copy(3, 0), 43), RetryLookup::Mismatch);
        world.restart_from_image();
    }
    world.check_replay();
}

#[test]
fn the_first_copy_of_a_call_and_copies_that_are_not_counted_leave_no_note() {
    let world = world();
    for origin in [copy(0, 0), copy(-1, 0), copy(-1, 2)] {
        assert_eq!(note(&world, origin), None, "{origin:?}");
    }
    assert!(note(&world, copy(0, 1)).is_some(), "a member has sent it twice");
    assert_eq!(
        note_answer::plan(&world.ns, &world.context(None)),
        None,
        "the service itself asks for something"
    );
}

#[test]
fn below_its_level_nothing_is_noted() {
    let below = Level(Level::NOTED_ANSWERS.0 - 1);
    let mut world = World::new(0);
    world.ns = world.ns.beginning_at(below);
    assert_eq!(note(&world, copy(2, 1)), None);
}

#[test]
fn a_note_is_found_in_the_journal_when_the_retry_cache_has_forgotten_it() {
    let world = world();
    let edit = note(&world, copy(1, 0)).expect("there are older copies");
    assert_eq!(older_calls::answer_of(&edit, &copy(0, 0), 42), Some(noted(1, 0)));
    assert_eq!(older_calls::answer_of(&edit, &copy(0, 0), 43), Some(RetryLookup::Mismatch));
    let other = CallOrigin { client_id: ClientId([9; 16]), ..copy(0, 0) };
    assert_eq!(older_calls::answer_of(&edit, &other, 42), None);
    let mut calls = OlderCalls::new(1, Table::with_room(2), Sn(0));
    calls.note(&Noted::edit(Sn(1), &edit), Default::default());
    let origin = copy(0, 0);
    let places = calls.places(origin.client_id, origin.call_id);
    assert!(places.iter().any(|range| range.contains(&Sn(1))), "{places:?}");
}

#[test]
fn a_note_that_says_nothing_is_refused() {
    let world = world();
    let mut bytes = bytes_of(&note(&world, copy(1, 0)).expect("there are older copies"));
    let length = bytes.len();
    assert_eq!(bytes[length - 3..], [40, 1, 0]);
    bytes[length - 2] = 0;
    assert!(Edit::decode(&bytes).is_err());
}
