//! A group of metadata servers in one process, as a newcomer meets it.

mod demo;

use demo::{Demo, Output};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Must work, and says one JSON object.
fn json(demo: &Demo, words: &[&str]) -> Value {
    let output = must(demo, words);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.text))
}

fn must(demo: &Demo, words: &[&str]) -> Output {
    let output = demo.run_for_group(words);
    assert_eq!(output.code, 0, "{words:?}: {}", output.text);
    output
}

/// The group as soon as so many members are in sync.
fn in_sync(demo: &Demo, count: usize) -> Value {
    let begun = Instant::now();
    loop {
        let group = json(demo, &["admin", "group", "--json"]);
        let is_led = group["view"]["active"].is_u64();
        if is_led && group["view"]["in_sync"].as_array().is_some_and(|stores| stores.len() == count) {
            return group;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{group}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_newcomer_watches_a_takeover() {
    let demo = Demo::of_members(3);
    std::fs::write(demo.local().join("letter"), "hello\n").unwrap();
    let before = in_sync(&demo, 3);
    let active = before["view"]["active"].as_u64().unwrap();
    assert_eq!(before["members"].as_array().unwrap().len(), 3);
    must(&demo, &["fs", "-put", "letter", "/letter"]);

    let text = must(&demo, &["admin", "group"]).text;
    for part in [&format!("member {active} is active"), "3 of 3 members in sync", "standby", "BECAUSE"] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let failed = json(&demo, &["admin", "group", "fail-active", "--json"]);
    assert_eq!(failed["failed"], active);
    assert_ne!(failed["active"], active);
    assert!(failed["epoch"].as_u64() > before["view"]["epoch"].as_u64(), "{failed}");
    assert_eq!(failed["client_failed"], 0, "{failed}");
    assert_eq!(must(&demo, &["fs", "-cat", "/letter"]).text, "hello\n");

    // The one that ended comes back by itself, and may lead again when it is asked to.
    in_sync(&demo, 3);
    let handed = json(&demo, &["admin", "group", "hand-over", "--to", &active.to_string(), "--json"]);
    assert_eq!((&handed["to"], &handed["client_failed"]), (&active.into(), &0.into()), "{handed}");
    must(&demo, &["fs", "-mkdir", "/after"]);
    assert_eq!(in_sync(&demo, 3)["view"]["active"], active);
}

/// What runs before any of the servers stops asks for it of each.
#[test]
fn only_the_active_hands_over_when_it_is_named() {
    let demo = Demo::of_members(3);
    let before = in_sync(&demo, 3);
    let active = before["view"]["active"].as_u64().unwrap();
    for member in (1..=3).filter(|member| *member != active) {
        let output = must(&demo, &["admin", "group", "hand-over", "--from", &member.to_string()]);
        let wanted =
            format!("Member {member} is not active (member {active} is): there is nothing to hand over.");
        assert!(output.text.contains(&wanted), "{}", output.text);
    }
    let nothing =
        json(&demo, &["admin", "group", "hand-over", "--from", &(active % 3 + 1).to_string(), "--json"]);
    assert_eq!((&nothing["done"], &nothing["active"]), (&false.into(), &active.into()), "{nothing}");
    let after = in_sync(&demo, 3);
    assert_eq!(after["view"]["epoch"], before["view"]["epoch"], "nobody was deposed");

    let handed = json(&demo, &["admin", "group", "hand-over", "--from", &active.to_string(), "--json"]);
    assert_eq!((&handed["from"], &handed["client_failed"]), (&active.into(), &0.into()), "{handed}");
    let next = in_sync(&demo, 3)["view"]["active"].as_u64().unwrap();
    assert_ne!(next, active);

    // `self` is the member of a configuration; the same file proves the order.
    let member = |number: u64| {
        let group = in_sync(&demo, 3);
        let file = demo.local().join(format!("meta-{number}.toml"));
        let name = demo.local().with_file_name("cluster").join(format!("meta-{number}"));
        std::fs::write(&file, format!("member = {number}\nname_dir = '{}'\n", name.display())).unwrap();
        (group["view"]["active"].as_u64().unwrap() == number, file.display().to_string())
    };
    let (is_active, file) = member(active);
    assert!(!is_active);
    let text = must(&demo, &["admin", "group", "hand-over", "--from", "self", "--config", &file]).text;
    assert!(text.contains("there is nothing to hand over"), "{text}");
    let (is_active, file) = member(next);
    assert!(is_active);
    let text = must(&demo, &["admin", "group", "hand-over", "--from", "self", "--config", &file]).text;
    assert!(text.contains(&format!("before it was member {next}")), "{text}");
}

#[test]
fn orders_that_make_no_sense_are_refused_and_say_why() {
    let demo = Demo::of_members(2);
    let group = in_sync(&demo, 2);
    let active = group["view"]["active"].as_u64().unwrap().to_string();
    for (words, expected) in [
        (&["remove", &active][..], "an active is never removed"),
        (&["remove", "7"], "member 7 is not in the group"),
        (&["add", &active], "is in the group already"),
        (&["hand-over", "--to", &active], "is active already"),
        (&["hand-over", "--to", "7"], "is not in sync"),
        (&["hand-over", "--from", "7"], "member 7 is not in the group"),
        (&["hand-over", "--from", "self"], "name it with --config FILE"),
        (&["hand-over", "--from", "0"], "the number of a member, 1 to 10000, or `self`"),
        (&["unclean-elect", "--member", "2"], "nothing need be lost"),
        (&["unclean-elect", "--member", "7", "--yes-lose-data"], "member 7 is not in the group"),
        (&["add", "0"], "0 is not in 1..=10000"),
    ] {
        let output = demo.run_for_group(&[&["admin", "group"], words].concat());
        assert_ne!(output.code, 0, "{words:?}: {}", output.text);
        assert!(output.text.contains(expected), "{words:?}: {}", output.text);
    }
    assert_eq!(in_sync(&demo, 2)["view"]["active"].to_string(), active);
}
