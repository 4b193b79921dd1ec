//! The search finds faults that these tests plant in histories, and finds none in sound histories.

use super::{
    history::{Asked, History},
    plan::{Deed, Dice, Story},
    tree::{Call, Outcome, Seen, Tree},
};

/// A call of a client, from one moment to another.
fn asked(client: u8, from: u64, to: u64, call: Call, told: Outcome) -> Asked {
    Asked { client, call, begun: from, told: Some((to, told)), tries: 1, text: String::new(), before: None }
}

/// A call whose client has heard no answer.
fn unheard(client: u8, begun: u64, call: Call) -> Asked {
    Asked { client, call, begun, told: None, tries: 1, text: String::new(), before: None }
}

fn mkdirs(path: &str) -> Call {
    Call::Mkdirs { path: path.into(), parents: true }
}

fn create(path: &str) -> Call {
    Call::Create { path: path.into(), overwrite: false, parents: false }
}

fn delete(path: &str) -> Call {
    Call::Delete { path: path.into(), recursive: true }
}

fn rename(from: &str, to: &str) -> Call {
    Call::Rename2 { from: from.into(), to: to.into(), overwrite: false }
}

fn status(path: &str) -> Call {
    Call::Status { path: path.into() }
}

fn list(path: &str) -> Call {
    Call::List { path: path.into() }
}

const TRUE: Outcome = Outcome::Is(true);
const NOTHING: Outcome = Outcome::Seen(None);

fn a_file(id: u64) -> Seen {
    Seen { is_directory: false, id, permission: 0o644, length: if id == 7 { 5 } else { 0 }, children: None }
}

fn listed(names: &[(&str, u64)]) -> Outcome {
    Outcome::Listed(Some(names.iter().map(|(name, id)| ((*name).into(), a_file(*id))).collect()))
}

/// Directories `/a` and `/b`, and a file `/a/f` with the id 7, which is closed. Then what follows, from moment 10 on.
fn after_a_file(rest: Vec<Asked>) -> History {
    let close = Call::Close { path: "/a/f".into(), id: 7, bytes: 5 };
    let mut all = vec![
        asked(0, 0, 1, mkdirs("/a"), TRUE),
        asked(0, 2, 3, mkdirs("/b"), TRUE),
        asked(0, 4, 5, create("/a/f"), Outcome::File(7)),
        asked(0, 6, 7, close, TRUE),
    ];
    all.extend(rest);
    History(all)
}

fn assert_explained(history: &History) {
    assert!(history.explain().is_ok(), "{}", history.tell());
}

fn assert_found(history: &History) {
    assert!(history.explain().is_err(), "{}", history.tell());
    let least = history.smallest();
    assert!(least.explain().is_err(), "a part of it shows the same:\n{}", least.tell());
    assert!(least.0.len() <= history.0.len());
}

#[test]
fn a_stale_status_is_found() {
    assert_found(&after_a_file(vec![asked(1, 10, 11, status("/a/f"), NOTHING)]));
    let gone = |from, to| {
        after_a_file(vec![
            asked(0, 10, 13, delete("/a/f"), TRUE),
            asked(1, from, to, status("/a/f"), Outcome::Seen(Some(a_file(7)))),
        ])
    };
    assert_found(&gone(14, 15));
    assert_explained(&gone(11, 12));
}

#[test]
fn a_status_that_goes_back_in_time_is_found() {
    let seen = |first: Outcome, second: Outcome| {
        after_a_file(vec![
            asked(0, 10, 20, delete("/a/f"), TRUE),
            asked(1, 11, 12, status("/a/f"), first),
            asked(2, 13, 14, status("/a/f"), second),
        ])
    };
    let there = Outcome::Seen(Some(a_file(7)));
    assert_found(&seen(NOTHING, there.clone()));
    assert_explained(&seen(there, NOTHING));
}

#[test]
fn a_lost_rename_is_found() {
    assert_found(&after_a_file(vec![
        asked(0, 10, 11, rename("/a/f", "/b/f"), Outcome::Done),
        asked(1, 12, 13, status("/b/f"), NOTHING),
    ]));
}

#[test]
fn a_name_that_is_in_two_directories_or_in_none_is_found() {
    let seen = |first: (&str, Outcome), second: (&str, Outcome)| {
        after_a_file(vec![
            asked(0, 10, 20, rename("/a/f", "/b/f"), Outcome::Done),
            asked(1, 11, 12, list(first.0), first.1),
            asked(1, 13, 14, list(second.0), second.1),
        ])
    };
    let (with, without) = (|| listed(&[("f", 7)]), || listed(&[]));
    assert_found(&seen(("/b", with()), ("/a", with())));
    assert_found(&seen(("/a", without()), ("/b", without())));
    assert_explained(&seen(("/a", with()), ("/b", with())));
    assert_explained(&seen(("/b", without()), ("/a", without())));
}

#[test]
fn another_file_under_the_name_of_the_one_that_moved_is_found() {
    assert_found(&after_a_file(vec![
        asked(0, 10, 11, rename("/a/f", "/b/f"), Outcome::Done),
        asked(1, 12, 13, status("/b/f"), Outcome::Seen(Some(a_file(8)))),
    ]));
}

#[test]
fn a_length_of_before_is_found() {
    let (append, close) = (
        asked(1, 10, 11, Call::Append { path: "/a/f".into() }, Outcome::File(7)),
        asked(1, 12, 15, Call::Close { path: "/a/f".into(), id: 7, bytes: 3 }, TRUE),
    );
    let seen = |from, to, length| {
        let seen = Outcome::Seen(Some(Seen { length, ..a_file(7) }));
        after_a_file(vec![append.clone(), close.clone(), asked(0, from, to, status("/a/f"), seen)])
    };
    assert_explained(&seen(13, 14, 5));
    assert_explained(&seen(13, 14, 8));
    assert_explained(&seen(16, 17, 8));
    assert_found(&seen(16, 17, 5));
    assert_found(&seen(13, 14, 6));
}

#[test]
fn a_call_that_took_effect_twice_is_found() {
    assert_found(&after_a_file(vec![
        asked(0, 10, 15, delete("/a/f"), TRUE),
        asked(1, 11, 12, create("/a/f"), Outcome::File(8)),
        asked(1, 13, 14, status("/a/f"), Outcome::Seen(Some(a_file(8)))),
        asked(2, 16, 17, status("/a/f"), NOTHING),
    ]));
}

/// A call may have happened, later than anybody has looked, or never. But not both.
#[test]
fn a_call_without_an_answer_may_have_happened_or_not() {
    let there = || Outcome::Seen(Some(a_file(7)));
    let seen = |first: Outcome, second: Outcome| {
        after_a_file(vec![
            unheard(0, 10, delete("/a/f")),
            asked(1, 11, 12, status("/a/f"), first),
            asked(1, 13, 14, status("/a/f"), second),
        ])
    };
    assert_explained(&seen(there(), there()));
    assert_explained(&seen(there(), NOTHING));
    assert_explained(&seen(NOTHING, NOTHING));
    assert_found(&seen(NOTHING, there()));
}

/// A `mkdirs` says the same whether it finds the directory or makes it. So it may have its place before a deletion, or behind it.
#[test]
fn a_directory_that_was_deleted_and_made_again_meanwhile_is_explained() {
    assert_explained(&History(vec![
        asked(0, 0, 1, mkdirs("/a"), TRUE),
        asked(1, 2, 9, delete("/a"), TRUE),
        asked(2, 3, 8, mkdirs("/a"), TRUE),
        asked(0, 4, 10, mkdirs("/a"), TRUE),
        asked(1, 11, 12, create("/a/f"), Outcome::File(7)),
    ]));
}

/// A client that lists the directory between the two steps sees the directory without the file.
#[test]
fn a_file_with_missing_parents_is_made_in_two_steps() {
    let path = || "/p/f".to_owned();
    let made = Call::Create { path: path(), overwrite: false, parents: true };
    let parents = Asked { before: Some(0), ..unheard(0, 0, Call::Parents { path: path() }) };
    let seen = |from, to| {
        let create = asked(0, 0, 9, made.clone(), Outcome::File(7));
        History(vec![create, parents.clone(), asked(1, from, to, list("/p"), listed(&[]))])
    };
    assert_explained(&seen(1, 2));
    assert_found(&seen(10, 11));
}

/// The answers of a tree to random calls, one after the other, each somewhere between its call's beginning and its end.
fn made_up(seed: u64) -> History {
    let mut dice = Dice::of(seed);
    let mut tree = Tree::default();
    let mut deeds: Vec<_> = Story::of(seed, 3, 8).clients.into_iter().map(Vec::into_iter).collect();
    // When each client has heard its last answer.
    let mut free = [0; 3];
    let mut history = History::default();
    for now in (1..).map(|turn| turn * 100) {
        let client = dice.below(3) as usize;
        if deeds.iter().all(|deeds| deeds.len() == 0) {
            return history;
        }
        let Some(step) = deeds[client].next() else { continue };
        let (Deed::Call(call) | Deed::Make(call)) = step.deed else { continue };
        let told = tree.outcome(client as u8, &call, now);
        tree = tree.after(client as u8, &call, Some(&told)).expect("it is the outcome");
        let begun = (now - dice.below(350).min(now)).max(free[client]);
        free[client] = now + 1 + dice.below(90);
        // Two calls in one moment would be in an order.
        let odd = |moment: u64| moment * 8 + client as u64;
        history.0.push(asked(client as u8, odd(begun), odd(free[client]), call, told));
    }
    unreachable!("turns do not end")
}

#[test]
fn what_a_tree_has_answered_is_explained_and_what_it_has_not_is_found() {
    let (mut changed, mut found) = (0, 0);
    for seed in 0..300 {
        let history = made_up(seed);
        assert!(history.explain().is_ok(), "seed {seed}:\n{}", history.tell());
        // One answer is the answer of another moment.
        for place in 0..history.0.len() {
            let mut other = history.clone();
            let told = &mut other.0[place].told.as_mut().unwrap().1;
            *told = match told {
                Outcome::Is(is) => Outcome::Is(!*is),
                Outcome::Seen(Some(_)) => NOTHING,
                Outcome::Done | Outcome::File(_) => Outcome::Refused("FileNotFoundException".into()),
                _ => continue,
            };
            changed += 1;
            found += usize::from(other.explain().is_err());
        }
    }
    assert!(changed > 1_000 && found * 10 > changed * 9, "{found} of {changed} wrong answers were found");
}
