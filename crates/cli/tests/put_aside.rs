//! `clover meta aside` on a store in a real directory.

mod demo;

use base::{Entry, EntryKind, Epoch};
use demo::{Output, clover, run};
use env::Env;
use std::{path::Path, sync::mpsc};

fn say(directory: &Path, words: &[&str]) -> Output {
    let mut command = clover(directory);
    command.args(["meta"]).args(words).args(["--config", "meta.toml"]);
    run(command)
}

/// Three entries more, and the store is given up.
fn write_and_give_up(store: &Path, reason: &str) {
    let recovery = journal::open(&Env::production(), store, journal::Settings::default()).unwrap();
    let (journal, _) = recovery.replay(|_| Ok(())).unwrap();
    for _ in 0..3 {
        let entry = Entry::after(journal.end(), Epoch(1), EntryKind::Operation, vec![7; 100].into());
        let (sender, receiver) = mpsc::channel();
        journal.append(vec![entry], Box::new(move |result| sender.send(result.is_ok()).unwrap())).unwrap();
        assert!(receiver.recv().unwrap());
    }
    journal.distrust(reason).unwrap();
}

#[test]
fn what_was_put_aside_is_listed_put_back_and_dropped() {
    let here = &std::env::temp_dir().join(format!("clover-put-aside-{}", std::process::id()));
    std::fs::create_dir_all(here).unwrap();
    std::fs::write(here.join("meta.toml"), "name_dir = 'name'\n").unwrap();
    assert_eq!(say(here, &["format"]).code, 0);
    let store = metad::format::Layout::of(&here.join("name"), base::GroupId::ROOT).store;
    assert!(say(here, &["aside", "list"]).text.contains("Nothing was put aside"));

    write_and_give_up(&store, "its disk lies");
    write_and_give_up(&store, "its disk lies again");
    drop(journal::open(&Env::production(), &store, journal::Settings::default()).unwrap());
    std::fs::create_dir(store.join("damaged-7")).unwrap();
    std::fs::write(store.join("damaged-7/0000000001-00000000000000000001"), "rotten").unwrap();
    let list = say(here, &["aside", "list"]);
    for part in ["its disk lies again", "1-3", "damaged-7", "replaced by a repair at start 7"] {
        assert!(list.text.contains(part), "{part}: {}", list.text);
    }
    let json = say(here, &["aside", "list", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json[0]["number"], &json[0]["directory"]), (&1.into(), &"set-aside-1".into()));
    assert_eq!((&json[2]["directory"], &json[2]["bytes"]), (&"damaged-7".into(), &6.into()));

    // Without --yes the command only says what it would do.
    let asked = say(here, &["aside", "restore", "1"]);
    assert_eq!(asked.code, 1);
    assert!(
        asked.text.contains("Nothing has been done. This would put back 1 segments up to entry 1-3"),
        "{}",
        asked.text
    );
    let unknown = say(here, &["aside", "restore", "9", "--yes"]);
    assert!(unknown.code != 0 && unknown.text.contains("nothing with number 9"), "{}", unknown.text);
    let done = say(here, &["aside", "restore", "1", "--yes"]);
    assert_eq!(done.code, 0, "{}", done.text);
    assert!(done.text.contains("its log ends with entry 1-3"), "{}", done.text);
    let list = say(here, &["aside", "list"]).text;
    assert!(!list.contains("its disk lies  ") && list.contains("its disk lies again"), "{list}");

    let dropped = say(here, &["aside", "drop", "2", "--yes"]);
    assert!(dropped.text.contains("Removed 1 segments"), "{}", dropped.text);
    let list = say(here, &["aside", "list"]).text;
    assert!(!list.contains("its disk lies") && list.contains("damaged-7"), "{list}");
    std::fs::remove_dir_all(here).unwrap();
}
