//! Command lines that need no cluster: mistakes are named, and completions are made.

mod demo;

use demo::{Output, clover, run};
use std::path::Path;

fn say(words: &[&str]) -> Output {
    let mut command = clover(Path::new("/"));
    command.args(words);
    run(command)
}

#[test]
fn mistakes_are_named_and_have_hadoops_exit_code() {
    for (words, expected) in [
        (&["fs", "-nosuch"][..], "unrecognized subcommand 'nosuch'"),
        (&["fs", "-ls", "-Z"], "unexpected argument '-Z'"),
        (&["fs", "-head"], "<PATH>"),
        (&["fs", "-put", "-t", "0", "a", "b"], "0 is not in 1..=256"),
        (&["fs", "-mv", "/a"], "2 more required"),
        (&["fs"], "Usage: clover fs"),
    ] {
        let output = say(words);
        assert_eq!(output.code, 255, "{words:?}: {}", output.text);
        let is_close = expected == "2 more required" && output.text.contains("required by");
        assert!(output.text.contains(expected) || is_close, "{words:?}: {}", output.text);
    }
}

#[test]
fn a_configuration_that_makes_no_sense_is_named() {
    for (words, expected) in [
        (&["fs", "-D", "x", "-ls"][..], "-D x: is not KEY=VALUE"),
        (&["fs", "--conf", "/nope", "-ls"], "/nope: cannot be read: No such file"),
        (&["fs", "-fs", "http://a", "-ls"], "`http://a`: has the scheme http; only hdfs is served here"),
        (&["fs", "-fs", "hdfs://a:0", "-ls"], "a port between 1 and 65535"),
        (&["--log", "a=b=c", "fs", "-ls"], "--log: `a=b=c` is not a log filter"),
    ] {
        let output = say(words);
        assert_ne!(output.code, 0, "{words:?}");
        assert!(output.text.contains(expected), "{words:?}: {}", output.text);
    }
}

#[test]
fn nobody_at_home_is_told_soon_and_with_a_remedy() {
    let begun = std::time::Instant::now();
    let output = say(&["fs", "-fs", "hdfs://127.0.0.1:1", "-ls", "/"]);
    assert!(begun.elapsed().as_secs() < 10);
    assert_eq!(output.code, 1);
    for part in
        ["ls: cannot reach a metadata server of hdfs://127.0.0.1:1", "refused", "--fs hdfs://HOST:PORT"]
    {
        assert!(output.text.contains(part), "{part}: {}", output.text);
    }
    assert_eq!(output.text.lines().count(), 1, "{}", output.text);
}

#[test]
fn help_and_completions_are_there() {
    for words in
        [&["--help"][..], &["fs", "--help"], &["fs", "ls", "--help"], &["fs", "put", "-h"], &["--version"]]
    {
        let output = say(words);
        assert_eq!(output.code, 0, "{words:?}: {}", output.text);
    }
    for shell in ["bash", "zsh", "fish"] {
        let output = say(&["completions", shell]);
        assert_eq!(output.code, 0);
        assert!(output.text.contains("client-config") && output.text.contains("checksum"), "{shell}");
    }
    assert_eq!(say(&["completions", "csh"]).code, 2);
}
