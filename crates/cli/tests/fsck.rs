//! `clover fsck` on a whole cluster.

mod demo;

use demo::{Demo, Output};
use serde_json::Value;

fn fsck(demo: &Demo, words: &[&str]) -> Output {
    let mut command = demo::clover(&demo.local());
    command.args(["fsck", "--fs", &demo.uri()]).args(words);
    demo::run(command)
}

#[test]
fn files_with_too_few_replicas_are_told_and_sums_are_at_the_end() {
    let demo = Demo::start();
    std::fs::write(demo.local().join("one"), "one\n").unwrap();
    demo.must(&["-mkdir", "-p", "/d/sub"]);
    demo.must(&["-put", "one", "/d/sub"]);
    demo.must(&["-put", "one", "/d/two"]);
    demo.must(&["-touchz", "/d/empty"]);
    let healthy = fsck(&demo, &["/d"]);
    assert_eq!(healthy.code, 0, "{}", healthy.text);
    assert!(healthy.text.starts_with("files             3, 8 bytes"), "{}", healthy.text);
    assert!(healthy.text.contains("/d is HEALTHY."), "{}", healthy.text);

    demo.must(&["-setrep", "9", "/d/two"]);
    let told = fsck(&demo, &["/d", "--blocks", "--racks"]);
    assert_eq!(told.code, 0, "too few replicas are no loss: {}", told.text);
    let first = told.text.lines().next().unwrap();
    assert!(first.starts_with("/d/two: UNDER-REPLICATED BP-"), "{first}");
    assert!(first.ends_with("of 9 replicas are in service"), "{first}");
    let second = told.text.lines().nth(1).unwrap();
    assert!(second.contains("4 bytes") && second.contains("/default-rack/127.0.0.1:"), "{second}");

    let told = fsck(&demo, &["/d/two", "--json"]);
    let lines: Vec<Value> = told.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["path"], "/d/two");
    assert_eq!(lines[0]["blocks"][0]["fault"], "under_replicated");
    assert_eq!(lines[1]["summary"]["under_replicated_blocks"], 1);
    assert_eq!(lines[1]["summary"]["healthy"], true);

    let nowhere = fsck(&demo, &["/nowhere"]);
    assert_eq!(nowhere.code, 1);
    assert!(nowhere.text.contains("File does not exist: /nowhere"), "{}", nowhere.text);
}
