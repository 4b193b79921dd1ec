//! `clover demo --with-load`: it tells what clients feel, takes little room, and leaves nothing behind.

mod demo;

use demo::Demo;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// The lines about a span of time that were printed so far.
fn lines(demo: &Demo) -> Vec<String> {
    let mut said = demo.said();
    said.retain(|line| line.starts_with("load: ") && line.contains(" operations in "));
    said
}

fn wait_for_lines(demo: &Demo, count: usize) -> Vec<String> {
    let began = Instant::now();
    loop {
        let lines = lines(demo);
        if lines.len() >= count {
            return lines;
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", demo.said());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The number of operations that a line tells of.
fn operations(line: &str) -> u64 {
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_load_feels_a_takeover_as_a_pause_and_leaves_nothing_behind() {
    let mut demo = Demo::with(&["--members", "3", "--with-load"]);
    let count = wait_for_lines(&demo, 1).len();
    let failed = demo.run_for_group(&["admin", "group", "fail-active"]);
    assert_eq!(failed.code, 0, "{}", failed.text);
    let lines = wait_for_lines(&demo, count + 2);
    for line in &lines {
        assert!(line.ends_with(", none failed") && line.contains(", worst pause "), "{line}");
    }
    assert!(operations(lines.last().unwrap()) > 0, "{lines:?}");

    // Somebody else's file beside those of the load.
    let output = demo.run_for_group(&["fs", "-touchz", "/demo-load/mine"]);
    assert_eq!(output.code, 0, "{}", output.text);
    let (code, said) = demo.interrupt();
    assert_eq!(code, 0, "{said:?}");
    let last = said.iter().rfind(|line| line.starts_with("load: ")).unwrap();
    assert!(
        last.contains("stopped after ") && last.ends_with("none failed; its files are deleted"),
        "{last}"
    );

    demo.start_again();
    let left = demo.run_for_group(&["fs", "-find", "/demo-load"]);
    assert_eq!(left.text, "/demo-load\n/demo-load/mine\n");
}

#[test]
fn a_load_begins_where_a_killed_one_has_left_its_files() {
    let mut demo = Demo::with(&["--data-servers", "1", "--with-load"]);
    wait_for_lines(&demo, 1);
    demo.kill_and_start();
    let left = demo.must(&["-count", "/demo-load"]);
    let files: u64 = left.text.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(files > 0, "{}", left.text);
    let (code, said) = demo.interrupt();
    assert_eq!(code, 0, "{said:?}");

    demo.start_again_with(&["--data-servers", "1", "--with-load"]);
    wait_for_lines(&demo, 1);
    let (code, said) = demo.interrupt();
    assert_eq!(code, 0, "{said:?}");
    demo.start_again();
    assert_ne!(demo.fs(None, &["-test", "-e", "/demo-load"]).code, 0);
}
