//! `clover fs` against a whole cluster: the transcripts in `tests/shell/` are what a person sees.
//!
//! A line that begins with `$ ` is a command of the user alice, one with `# ` of the superuser; what follows is
//! what it prints, and `exit N` where that is not 0. Local paths are relative to a directory of its own. With
//! `CLOVER_REWRITE=1` the transcripts are written anew, to be read as a difference.

mod demo;

use demo::Demo;
use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
};

#[test]
fn transcripts_hold() {
    let demo = Demo::start();
    prepare(&demo.local());
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shell");
    let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let mut different = Vec::new();
    for file in files {
        let expected = fs::read_to_string(&file).unwrap();
        let actual = play(&demo, &expected);
        if actual == expected {
            continue;
        }
        if std::env::var_os("CLOVER_REWRITE").is_some() {
            fs::write(&file, actual).unwrap();
            continue;
        }
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        different.push(format!("{name}:\n{}", difference(&expected, &actual)));
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Local files that the transcripts put.
fn prepare(local: &Path) {
    let make = |name: &str, bytes: &[u8]| {
        let path = local.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    make("hello.txt", b"hello\n");
    make("empty", b"");
    make("long", "twenty-nine letters in a line\n".repeat(100).as_bytes());
    make("tree/one", b"1");
    make("tree/sub/two", b"22");
    make("tree/sub/deep/three", b"333");
    make("tree/sp ace/\u{e4}\u{f6} \u{fc}.txt", "h\u{e4}llo\n".as_bytes());
    fs::create_dir_all(local.join("tree/void")).unwrap();
    // These are sequence files that Hadoop wrote, and the first part of a compressed file.
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/text");
    for name in ["block.seq", "block-snappy.seq", "bytes.seq"] {
        make(name, &fs::read(samples.join(name)).unwrap());
    }
    make("cut.bz2", &fs::read(samples.join("lines.bz2")).unwrap()[..100]);
    // A directory with files that can be copied and one that cannot.
    make("odd/first", b"1");
    make("odd/co:lon", b"2");
    make("odd/sub/last", b"3");
    fs::write(local.join("odd").join(OsStr::from_bytes(b"not-\xff-text")), b"4").unwrap();
    symlink("gone", local.join("odd/dangling")).unwrap();
    symlink("..", local.join("odd/sub/up")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(local.join("odd/pipe")).status().unwrap();
    assert!(pipe.success());
}

/// Runs the commands of a transcript and writes down what they say.
fn play(demo: &Demo, transcript: &str) -> String {
    let mut played = String::new();
    for line in transcript.lines() {
        let (user, command) = match (line.strip_prefix("$ "), line.strip_prefix("# ")) {
            (Some(command), _) => (Some("alice"), command),
            (_, Some(command)) => (None, command),
            _ if line.starts_with("; ") || (line.is_empty() && played.is_empty()) => {
                played += &format!("{line}\n");
                continue;
            }
            _ => continue,
        };
        let words = demo::words(command);
        let output = demo.fs(user, &words.iter().map(String::as_str).collect::<Vec<_>>());
        played += &format!("{line}\n{}", without_chance(&output.text, demo));
        if !played.ends_with('\n') {
            played += " (no end of line)\n";
        }
        if output.code != 0 {
            played += &format!("exit {}\n", output.code);
        }
    }
    played
}

/// Takes times, ports and the name of whoever runs the test out.
fn without_chance(text: &str, demo: &Demo) -> String {
    let superuser = demo.superuser();
    let text = text
        .replace(&demo.uri(), "hdfs://demo")
        .replace(&format!("{superuser} supergroup"), "superuser supergroup")
        .replace(&format!("{superuser}:supergroup"), "superuser:supergroup");
    let is_date = |at: usize| {
        text.get(at..at + 16).is_some_and(|part| {
            part.bytes().zip("0000-00-00 00:00".bytes()).all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                shape => byte == shape,
            })
        })
    };
    let mut clean = String::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        match is_date(at) {
            true => {
                clean += "YYYY-MM-DD HH:MM";
                at += 16;
            }
            false => {
                clean.push(c);
                at += c.len_utf8();
            }
        }
    }
    clean
}

fn difference(expected: &str, actual: &str) -> String {
    let (expected, actual): (Vec<_>, Vec<_>) = (expected.lines().collect(), actual.lines().collect());
    let same = expected.iter().zip(&actual).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(3);
    let shown = |lines: &[&str], sign: &str| -> String {
        lines.iter().skip(from).take(12).map(|line| format!("{sign} {line}\n")).collect()
    };
    format!("from line {} on\n{}{}", from + 1, shown(&expected, "-"), shown(&actual, "+"))
}
