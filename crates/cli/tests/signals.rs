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
    assert!(line.contains("cannot reach a metadata server of hdfs://clover"), "{line}");
    assert!(line.trim_end().ends_with("still trying"), "{line}");
    let mut rest = String::new();
    complaints.read_to_string(&mut rest).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(0), "{rest}");
    demo.must(&["-test", "-d", "/after"]);
}
