//! The suggestions that bash offers behind `clover fs`, from a real bash and a whole cluster.

mod demo;

use demo::Demo;
use std::{
    process::Command,
    time::{Duration, Instant},
};

/// How long an answer may stay away. On a machine with much work nothing is offered, because the question ends before its answer comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until the answer is as it should be.
fn until<T: std::fmt::Debug>(what: &str, ask: impl Fn() -> T, is_so: impl Fn(&T) -> bool) {
    let began = Instant::now();
    loop {
        let answer = ask();
        if is_so(&answer) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {answer:?}");
    }
}

/// The path under which command lines name the program under test.
const CLOVER: &str = env!("CARGO_BIN_EXE_clover");

/// The words that bash offers for a line of which so much was typed. `clover` stands for the program, `FS` for the cluster.
fn offered(demo: &Demo, typed: &str) -> Vec<String> {
    let line = typed.replacen("clover", CLOVER, 1).replace("FS", &demo.uri());
    let script = r#"
        source <("$1" completions bash) || exit 9
        COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
        read -ra COMP_WORDS <<<"$2"
        [[ $2 == *' ' ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _clover_with_paths "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut command = Command::new("bash");
    command
        .current_dir(demo.local())
        .args(["-c", script, "bash", CLOVER, &line])
        .env_remove("HADOOP_CONF_DIR");
    let output = command.output().unwrap();
    assert_ne!(output.status.code(), Some(9));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn paths_commands_and_options_are_offered() {
    let demo = Demo::of_data_servers(1);
    demo.must(&["-mkdir", "-p", "/logs/monday", "/logs/sp ace"]);
    demo.must(&["-touchz", "/logs/mine"]);
    std::fs::write(demo.local().join("mine.txt"), "").unwrap();
    for (typed, expected) in [
        ("clover fs -fs FS -ls /lo", &["/logs/"][..]),
        ("clover fs --fs FS ls /logs/m", &["/logs/mine", "/logs/monday/"]),
        ("clover fs --fs FS ls /logs/s", &["/logs/sp ace/"]),
        ("clover fs --fs FS rm /nowhere/x", &[]),
        ("clover fs --fs FS put mi", &["mine.txt"]),
        ("clover fs --fs FS put mine.txt /logs/mo", &["/logs/monday/"]),
        ("clover fs --fs FS get /logs/mine mi", &["mine.txt"]),
        ("clover fs --fs FS get mi", &[]),
        ("clover fs -getm", &["-getmerge"]),
        ("clover fs getm", &["getmerge"]),
        ("clover fs comp", &[]),
        ("clover fs --fs FS -count -", &["-q", "-u", "-t", "-h", "-v", "-x", "-s", "-e"]),
        ("clover admin rep", &["report"]),
        ("clover fsck --fs FS /lo", &["/logs/"]),
        ("clover fsck --fs FS --json /logs/mo", &["/logs/monday/"]),
        ("clover fsck --fs FS -", &["--json"]),
        // Nobody answers there.
        ("clover fs --fs hdfs://127.0.0.1:1 ls /lo", &[]),
    ] {
        let is_so = |offered: &Vec<String>| match typed.ends_with(" -") {
            true => expected.iter().all(|one| offered.iter().any(|word| word == one)),
            false => offered == expected,
        };
        until(typed, || offered(&demo, typed), is_so);
    }
    // Behind the last colon only: bash has parted the word there.
    let port = demo.uri().rsplit_once(':').unwrap().1.to_owned();
    let mine = [format!("{port}/logs/mine")];
    until("a whole name", || offered(&demo, "clover fs -ls FS/logs/mi"), |offered| *offered == mine);
}

#[test]
fn a_name_at_the_end_of_a_large_directory_is_offered() {
    let demo = Demo::of_data_servers(1);
    let names: Vec<String> = (0..2_100).map(|number| format!("/many/{number:04}")).collect();
    let mut words = vec!["-mkdir", "-p", "/many/zone", "/many/zo", "/many/zp"];
    words.extend(names.iter().map(String::as_str));
    demo.must(&words);
    // As a shell asks it: more names stand before than one answer holds.
    for (typed, count, first) in [
        ("/many/zo", 2, "/many/zo/\n/many/zone/\n"),
        ("/many/0", 1_000, "/many/0000/\n/many/0001/\n"),
        ("/many/209", 10, "/many/2090/\n/many/2091/\n"),
        ("/many/", 1_000, "/many/0000/\n"),
        ("/many/zq", 0, ""),
    ] {
        let shown = || demo.must(&["complete-path", typed]).text;
        until(typed, shown, |shown| shown.lines().count() == count && shown.starts_with(first));
    }
}
