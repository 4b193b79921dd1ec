//! Readable stories of a group of three: what happened, and everything that came of it.
//!
//! A line that begins with `$` says what happens next; the lines below it tell it event by event (`>`), each with
//! its full effects. At the outset member 1 serves epoch 1 and all are in sync. After a change on purpose:
//! `CLOVER_REWRITE=1 cargo test -p clover-sim --test stories`, and read the diff.

use group::Order;
use sim::model::{Bounds, Event, World};
use std::path::Path;

fn bounds() -> Bounds {
    Bounds {
        operations: 20,
        crashes: 5,
        wakes: 50,
        beats: 50,
        resets: 5,
        alarms: 10,
        epochs: 20,
        log: 50,
        late_views: true,
        orders: vec![Order::HandOver { to: None }],
        ..Bounds::default()
    }
}

/// The events that a line stands for; `None` is everything that takes its course.
fn events_of(line: &str) -> Option<Vec<Event>> {
    let words: Vec<&str> = line.trim_start_matches('$').split_whitespace().collect();
    let seat = |index: usize| words[index].parse::<u8>().expect("a member's number") - 1;
    Some(vec![match words[0] {
        "settle" => return None,
        "message" => Event::Deliver { from: seat(1), to: seat(2) },
        "coordinator" => Event::Decide { request: 0 },
        "client" => Event::Propose { seat: seat(1) },
        "wake" => Event::Wake { seat: seat(1) },
        "beat" => Event::Beat { seat: seat(1) },
        "kill" => Event::Crash { seat: seat(1), keeps: false },
        "start" => Event::Start { seat: seat(1) },
        "lock-gone" => Event::LockGone { seat: seat(1) },
        "gone" => Event::Gone { seat: seat(1), other: seat(2) },
        "reset" => Event::Reset { one: seat(1), other: seat(2) },
        "hand-over" => Event::Order { seat: seat(1) },
        other => panic!("nothing is called {other}"),
    }])
}

fn pair_of(line: &str) -> Option<[Event; 2]> {
    let mut words = line.strip_prefix("$ between")?.split_whitespace().map(|word| word.parse::<u8>());
    let mut seat = || words.next().and_then(Result::ok).expect("two members") - 1;
    let (from, to) = (seat(), seat());
    Some([Event::Deliver { from, to }, Event::Deliver { from: to, to: from }])
}

fn told(story: &str) -> String {
    let bounds = bounds();
    let mut world = World::new(&bounds);
    let mut out = String::new();
    for line in story.lines() {
        if line.starts_with('#') || line.is_empty() {
            out.push_str(&format!("{line}\n"));
        } else if line.starts_with('$') {
            out.push_str(&format!("{line}\n"));
            let mut lines = Vec::new();
            let mut go = |world: &mut World, event: Event| {
                assert!(world.allows(event, &bounds), "after\n{out}\n{line} cannot happen");
                world.go(event, &bounds, &mut Some(&mut lines)).unwrap_or_else(|rule| panic!("{rule}"));
            };
            if let Some(pair) = line.strip_prefix("$ lost") {
                let seats: Vec<u8> = pair.split_whitespace().map(|word| word.parse().unwrap()).collect();
                world.lose(seats[0] - 1, seats[1] - 1);
                continue;
            }
            if let Some(pair) = pair_of(line) {
                // All that these two say to each other.
                while let Some(event) = pair.into_iter().find(|event| world.allows(*event, &bounds)) {
                    go(&mut world, event);
                }
                lines.iter().for_each(|line| out.push_str(&format!("{line}\n")));
                continue;
            }
            match events_of(line) {
                Some(events) => events.into_iter().for_each(|event| go(&mut world, event)),
                None => {
                    while let Some(event) = world.next_ordinary(&bounds) {
                        go(&mut world, event);
                    }
                }
            }
            lines.iter().for_each(|line| out.push_str(&format!("{line}\n")));
        }
    }
    out
}

#[test]
fn every_story_goes_as_it_is_told() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let mut files: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let story = std::fs::read_to_string(&file).unwrap();
        let told = told(&story);
        if std::env::var_os("CLOVER_REWRITE").is_some() {
            std::fs::write(&file, told).unwrap();
        } else {
            assert_eq!(told, story, "{}", file.display());
        }
    }
}
