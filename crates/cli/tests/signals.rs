//! Commands that are ended from outside, and commands that have to wait.

mod demo;

use demo::{Demo, clover, signal};
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::Stdio,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_copy_that_is_ended_from_outside_leaves_nothing_behind() {
    let demo = Demo::of_data_servers(1);
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut put = clover(&demo.local())
            .args(["fs", "-fs", &demo.uri(), "-put", "-", "/letter"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = put.stdin.take().unwrap();
        input.write_all(b"the beginning").unwrap();
        let began = Instant::now();
        while demo.fs(None, &["-test", "-e", "/letter._COPYING_"]).code != 0 {
            assert!(began.elapsed() < PATIENCE, "the copy has not begun");
            std::thread::sleep(Duration::from_millis(20));
        }
        signal(&put, name);
        assert_eq!(put.wait().unwrap().code(), Some(code), "{name}");
        assert_eq!(demo.must(&["-ls", "/"]).text, "", "{name}");
    }
}

#[test]
fn what_is_fetched_has_its_name_only_when_it_is_whole() {
    let demo = Demo::of_data_servers(1);
    let bytes = vec![7; 4 << 20];
    std::fs::write(demo.local().join("piece"), &bytes).unwrap();
    demo.must(&["-mkdir", "/pieces"]);
    let names: Vec<String> = (0..12).map(|number| format!("/pieces/{number}")).collect();
    for name in &names {
        demo.must(&["-put", "piece", name]);
    }
    let fetched = demo.local().join("fetched");
    std::fs::create_dir(&fetched).unwrap();
    let listed = || -> Vec<String> {
        let entries = std::fs::read_dir(&fetched).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let whole: &[&str] = &["-getmerge", "/pieces", "/pieces", "/pieces", "fetched/all"];
    for words in [&["-get", "-t", "1", "/pieces", "fetched"], whole] {
        let mut get = clover(&demo.local())
            .args(["fs", "-fs", &demo.uri()])
            .args(words)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let unfinished = || {
            let below = std::fs::read_dir(fetched.join("pieces")).into_iter().flatten();
            let below = below.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            below.chain(listed()).any(|name| name.ends_with("._COPYING_"))
        };
        let began = Instant::now();
        while !unfinished() {
            assert!(began.elapsed() < PATIENCE, "{words:?} has not begun");
            std::thread::sleep(Duration::from_millis(1));
        }
        signal(&get, "-INT");
        assert_eq!(get.wait().unwrap().code(), Some(130), "{words:?}");
        assert!(!unfinished(), "{words:?}");
        assert!(!fetched.join("all").exists());
        for entry in std::fs::read_dir(fetched.join("pieces")).into_iter().flatten() {
            assert_eq!(entry.unwrap().metadata().unwrap().len(), bytes.len() as u64, "{words:?}");
        }
    }
}

#[test]
fn a_command_that_waits_says_for_what() {
    let demo = Demo::of_members(2);
    demo.signal("-STOP");
    let mut waiting = clover(&demo.local())
        .args(["fs", "-mkdir", "/after"])
        .env("HADOOP_CONF_DIR", demo.local().join("../cluster/conf"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut complaints = BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    complaints.read_line(&mut line).unwrap();
    demo.signal("-CONT");
    if line.is_empty() {
        panic!("it has not said a word, and has ended with {:?}", waiting.wait());
    }
    assert!(line.contains("cannot reach a metadata server of hdfs://clover"), "{line}");
    assert!(line.trim_end().ends_with("still trying"), "{line}");
    let mut rest = String::new();
    complaints.read_to_string(&mut rest).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(0), "{rest}");
    demo.must(&["-test", "-d", "/after"]);
}
