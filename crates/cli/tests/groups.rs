//! Several groups that hold one namespace, in one process, as a newcomer meets them.

mod demo;

use demo::{Demo, Output};
use serde_json::Value;
use std::collections::BTreeMap;

fn must(demo: &Demo, words: &[&str]) -> Output {
    let output = demo.run_for_group(words);
    assert_eq!(output.code, 0, "{words:?}: {}", output.text);
    output
}

/// Must work, and says one JSON object.
fn json(demo: &Demo, words: &[&str]) -> Value {
    let output = must(demo, words);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.text))
}

/// Makes directories until each of so many groups is the home of one. The answer has a directory of each group.
fn directory_of_each(demo: &Demo, groups: usize) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    for number in 0..200 {
        let path = format!("/d{number}");
        must(demo, &["fs", "-mkdir", &path]);
        let home = json(demo, &["admin", "where", &path, "--json"]);
        assert_eq!((home["directory"].as_str(), home["is_directory"].as_bool()), (Some(&*path), Some(true)));
        found.entry(home["group"].as_u64().unwrap()).or_insert(path);
        if found.len() == groups {
            return found;
        }
    }
    panic!("after 200 directories these groups have one: {found:?}");
}

#[test]
fn a_newcomer_has_one_tree_in_two_groups() {
    let mut demo = Demo::of_groups(2, 1);
    std::fs::write(demo.local().join("letter"), "hello\n").unwrap();
    let text = must(&demo, &["admin", "groups"]).text;
    for part in ["2 groups hold the namespace", "orders directories", "serves files"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let homes = directory_of_each(&demo, 2);
    let (here, there) = (&homes[&1], &homes[&2]);
    must(&demo, &["fs", "-put", "letter", here]);
    let (old, new) = (format!("{here}/letter"), format!("{there}/letter"));
    let told = must(&demo, &["admin", "where", &old]).text;
    assert!(told.contains(&format!("Files in {here} are in group 1")), "{told}");
    assert!(told.contains("no directory"), "{told}");
    must(&demo, &["fs", "-mv", &old, &new]);
    assert_eq!(must(&demo, &["fs", "-cat", &new]).text, "hello\n");
    assert_eq!(json(&demo, &["admin", "groups", "--json"])["groups"][0]["exported_files"], 1);

    demo.kill_and_start();
    assert_eq!(must(&demo, &["fs", "-cat", &new]).text, "hello\n");
    let groups = json(&demo, &["admin", "groups", "--json"]);
    let facts = |group: &Value| (group["group"].clone(), group["slots"].clone(), group["active"].clone());
    let groups: Vec<_> = groups["groups"].as_array().unwrap().iter().map(facts).collect();
    assert_eq!(groups, [(1.into(), 64.into(), 1.into()), (2.into(), 64.into(), 11.into())]);
    let again = must(&demo, &["admin", "groups", "give-slots", "2"]).text;
    assert!(again.contains("has 64 slots already"), "{again}");
}

#[test]
fn orders_reach_the_group_that_is_meant() {
    let demo = Demo::of_groups(2, 2);
    // Clients know the members of both groups.
    let first = json(&demo, &["admin", "group", "--json"]);
    let second = json(&demo, &["admin", "group", "--group", "2", "--json"]);
    assert_eq!((&first["group"], &second["group"]), (&1.into(), &2.into()));
    let failed = json(&demo, &["admin", "group", "fail-active", "--group", "2", "--json"]);
    let (failed, active) = (failed["failed"].as_u64().unwrap(), failed["active"].as_u64().unwrap());
    assert!(failed > 10 && active > 10 && failed != active, "{failed}, {active}");
    let after = json(&demo, &["admin", "group", "--json"]);
    assert_eq!(after["view"]["epoch"], first["view"]["epoch"], "group 1 goes on as before");

    let none = demo.run_for_group(&["admin", "group", "--group", "3"]);
    assert_ne!(none.code, 0);
    assert!(none.text.contains("there is no group 3: the namespace is held by group 1, 2"), "{}", none.text);
    let none = demo.run_for_group(&["admin", "groups", "give-slots", "3"]);
    assert!(none.text.contains("clover meta format --group 3 --join"), "{}", none.text);
}

#[test]
fn backups_of_two_groups_say_where_both_can_be_restored() {
    let demo = Demo::of_groups(2, 1);
    must(&demo, &["fs", "-mkdir", "/first"]);
    must(&demo, &["admin", "backup", "one"]);
    must(&demo, &["admin", "backup", "two", "--group", "2"]);
    let dix = json(&demo, &["meta", "backup", "list", "one", "two", "--json"])["dix"].as_u64().unwrap();
    must(&demo, &["fs", "-mkdir", "/second"]);
    must(&demo, &["admin", "backup", "one"]);
    let told = must(&demo, &["meta", "backup", "list", "two", "one"]).text;
    for part in [
        format!("The newest place that all of them have is {dix}"),
        format!("clover meta restore one --dix {dix} --config FILE"),
        "clover meta restore two --config FILE".to_owned(),
        "group 2 of cluster".to_owned(),
    ] {
        assert!(told.contains(&part), "{part}: {told}");
    }
    let told = must(&demo, &["meta", "backup", "list", "two", "--dix"]).text;
    assert!(told.contains(&format!("to {dix}")) && told.contains("backups of all groups"), "{told}");
    let dix = dix.to_string();
    let seen = must(&demo, &["meta", "backup", "look", "two", "--dix", &dix]).text;
    assert!(seen.contains("/first") && !seen.contains("/second"), "{seen}");

    std::fs::write(demo.local().join("look.toml"), "name_dir = 'look'\n").unwrap();
    let refused = |words: &[&str], why: &str| {
        let output = demo.run_for_group(words);
        assert!(output.code != 0 && output.text.contains(why), "{words:?}: {}", output.text);
    };
    let restore = ["meta", "restore", "--config", "look.toml"];
    let with = |words: &[&'static str]| [&restore[..], words].concat();
    refused(&with(&["one"]), "clover meta backup list DIR1 DIR2");
    refused(&[&restore[..], &["one", "--dix", &dix]].concat(), "name one in `coordinator`");
    refused(&with(&["one", "--dix", "9999"]), "it can be had at the places");
    refused(&with(&["two"]), "name one in `coordinator`");
    refused(&["meta", "backup", "list", "one", "one"], "a second backup of group 1");
    refused(
        &["meta", "backup", "list", "one", "two", "--at", "2999-01-01T00:00:00Z"],
        "does not go on so far",
    );
    refused(&["meta", "backup", "list", "two", "--at", "2999-01-01T00:00:00Z"], "the backup of group 1");
}
