//! Calls that the retry cache has forgotten are found in the journal.

mod common;

use base::{CallId, CallOrigin, ClientId, Epoch, FsResult, Moment, Sn, Timestamp, TxId};
use common::{Dice, World};
use namespace::{
    Edit, Planned, Reply, RetryLookup,
    older_calls::{self, Noted, OlderCalls, RANGE, SPAN_MAX, Table},
    ops,
};
use std::collections::BTreeMap;

/// An edit of a call, as any; what it changes does not matter here.
fn edit_of(world: &mut World, client: u8, call: i32) -> Edit {
    let path = format!("/d{client}.{call}");
    let request =
        ops::mkdirs::Request { path: path.clone(), permission: 0o755, unmasked: None, create_parent: true };
    let plan = world.plan(|ns, ctx| ops::mkdirs::plan(ns, ctx, &request));
    let Ok(Planned::Edit(mut edit)) = plan else { panic!("{path}: {plan:?}") };
    let origin = edit.origin.as_mut().expect("a client asked for it");
    (origin.client, origin.call) = (ClientId([client; 16]), CallId(call));
    edit.into()
}

fn is_found(calls: &OlderCalls, client: u8, call: i32, at: u64) -> bool {
    calls.places(ClientId([client; 16]), CallId(call)).iter().any(|range| range.contains(&Sn(at)))
}

#[test]
fn what_a_naive_map_knows_is_found_and_what_is_too_old_is_not() {
    let mut world = World::new(0);
    let template = edit_of(&mut world, 1, 1);
    for seed in 1..6 {
        let mut dice = Dice(seed);
        let mut calls = OlderCalls::new(seed, Table::with_room(64), Sn(5));
        let mut known = BTreeMap::new();
        let mut at = 5;
        for n in 0..3_000 {
            // Now and then others make many edits, which leave no call behind: numbers come round several times.
            at += if dice.below(8) == 0 { 1 + dice.below(SPAN_MAX / 40) } else { 1 };
            if dice.below(10) == 0 {
                calls.note(&Noted::no_edit(Sn(at)), Moment::default());
                continue;
            }
            let (client, call) = (dice.below(200) as u8, n);
            let mut edit = template.clone();
            let origin = edit.origin.as_mut().unwrap();
            (origin.client, origin.call) = (ClientId([client; 16]), CallId(call));
            calls.note(&Noted::edit(Sn(at), &edit), Moment::from_ms(n as u64));
            known.insert(at, (client, call));
            assert_eq!(calls.end(), Sn(at));
            assert!(calls.span() <= SPAN_MAX);
            assert!(is_found(&calls, client, call, at), "seed {seed}: entry {at} is not found");
            if n % 100 == 0 {
                for (at, (client, call)) in &known {
                    let expected = Sn(*at) >= calls.from();
                    assert_eq!(is_found(&calls, *client, *call, *at), expected, "seed {seed}: entry {at}");
                }
            }
        }
        assert!(at > 3 * SPAN_MAX, "numbers came round");
        assert!(calls.from() > Sn(SPAN_MAX));
    }
}

#[test]
fn a_table_that_overflows_says_how_far_back_it_goes() {
    let mut world = World::new(0);
    let template = edit_of(&mut world, 1, 1);
    let mut calls = OlderCalls::new(7, Table::with_room(4), Sn(0));
    // 64 slots, and a call in each range.
    for n in 1..=1_000 {
        let mut edit = template.clone();
        edit.origin.as_mut().unwrap().call = CallId(n);
        calls.note(&Noted::edit(Sn(n as u64 * RANGE), &edit), Moment::default());
        let oldest = calls.from().0.div_ceil(RANGE);
        assert!((oldest..=n as u64).all(|n| is_found(&calls, 1, n as i32, n * RANGE)), "after {n}");
    }
    let kept = 1_000 - calls.from().0 / RANGE;
    assert!((32..=64).contains(&kept), "{kept} are kept");
}

#[test]
fn a_new_call_is_hardly_ever_looked_for_in_the_journal() {
    let mut world = World::new(0);
    let mut edit = edit_of(&mut world, 1, 1);
    // Three quarters full, like the real table with its span.
    let buckets = 1 << 10;
    let mut calls = OlderCalls::new(11, Table::with_room(buckets), Sn(0));
    let count = buckets as i32 * 12;
    for n in 1..=count {
        edit.origin.as_mut().unwrap().call = CallId(n);
        calls.note(&Noted::edit(Sn(n as u64), &edit), Moment::default());
    }
    assert_eq!(calls.from(), Sn(1), "nothing had to give way");
    let strangers = (0..200_000).filter(|n| !calls.places(ClientId([2; 16]), CallId(*n)).is_empty()).count();
    assert!(strangers <= 30, "{strangers} of 200,000 new calls were looked for");
}

#[test]
fn the_table_of_a_server_and_the_retry_cache_fit_into_128_mib() {
    let calls = OlderCalls::new(1, Table::with_room(older_calls::BUCKETS), Sn(0));
    // The retry cache at its cap has 61 MB.
    assert!(calls.bytes() + 61_000_000 <= 128 << 20, "{} bytes", calls.bytes());
}

#[test]
fn old_entries_are_forgotten_by_this_members_own_clock() {
    let mut world = World::new(0);
    let mut edit = edit_of(&mut world, 1, 1);
    let mut calls = OlderCalls::new(1, Table::with_room(64), Sn(0));
    for second in 0..100 {
        edit.time = Timestamp::from_ms(1_000_000 + second * 1_000);
        edit.origin.as_mut().unwrap().call = CallId(second as i32);
        calls.note(&Noted::edit(Sn(second + 1), &edit), Moment::from_ms(second * 1_000));
    }
    assert_eq!(calls.window_ms(), 99_000);
    calls.forget_older(Moment::from_ms(55_000));
    // Times are noted every ten seconds: none younger is forgotten.
    assert_eq!(calls.from(), Sn(51));
    assert_eq!(calls.window_ms(), 49_000);
    assert!(!is_found(&calls, 1, 49, 50) && is_found(&calls, 1, 50, 51));
    calls.forget_before(Sn(90));
    assert!(!is_found(&calls, 1, 88, 89) && is_found(&calls, 1, 89, 90));
    // A clock that jumps ahead forgets nothing.
    edit.time = Timestamp::from_ms(99_000_000);
    calls.note(&Noted::edit(Sn(101), &edit), Moment::from_ms(100_000));
    assert_eq!(calls.from(), Sn(90));
}

#[test]
fn an_edit_read_back_answers_its_own_call_and_no_other() -> FsResult<()> {
    let mut world = World::new(0);
    let edit = edit_of(&mut world, 3, 9);
    let mut bytes = Vec::new();
    edit.encode(&mut bytes);
    let read = Edit::decode(&bytes).expect("it was just written");
    let fingerprint = edit.origin.unwrap().fingerprint;
    let call = CallOrigin {
        client_id: ClientId([3; 16]),
        call_id: CallId(9),
        retry_count: 1,
        repeats: 0,
        address: None,
    };
    let answer = older_calls::answer_of(&read, &call, fingerprint);
    assert_eq!(answer, Some(RetryLookup::Hit(Reply::Bool(true))));
    assert_eq!(older_calls::answer_of(&read, &call, fingerprint + 1), Some(RetryLookup::Mismatch));
    let other = CallOrigin { call_id: CallId(10), ..call };
    assert_eq!(older_calls::answer_of(&read, &other, fingerprint), None);
    // It is the answer that the retry cache would give.
    let applied = world.ns.apply(TxId { epoch: Epoch(1), sn: Sn(world.ns.applied().sn.0 + 1) }, &edit);
    assert_eq!(world.ns.retry_lookup(&call, fingerprint), RetryLookup::Hit(applied.reply));
    Ok(())
}
