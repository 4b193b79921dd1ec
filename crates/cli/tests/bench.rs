//! `clover bench` hands its words to a program of its own.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A directory with this program and nothing else; hard links need the same file system.
fn installed(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    fs::hard_link(env!("CARGO_BIN_EXE_clover"), directory.join("clover")).unwrap();
    directory
}

/// A program that says how it was called.
fn put_bench(directory: &Path, name: &str) {
    let program = directory.join("clover-bench");
    fs::write(&program, format!("#!/bin/sh\necho \"{name}: $* log=$CLOVER_LOG\"\nexit 7\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(directory: &Path, path: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(directory.join("clover"));
    // The shell of the stand-in needs nothing from the PATH.
    command.args(words).env("PATH", path).env_remove("CLOVER_LOG").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_program_beside_this_one_gets_every_word_and_gives_its_exit_code() {
    let directory = installed("bench-beside");
    let elsewhere = directory.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    put_bench(&elsewhere, "elsewhere");
    let words = ["--log", "debug", "bench", "meta", "--op", "create,stat", "--help", "-x"];
    let output = run(&directory, &elsewhere, &words);
    assert_eq!(text(&output.stdout), "elsewhere: meta --op create,stat --help -x log=debug\n");
    assert_eq!(output.status.code(), Some(7));
    // The one beside it is of the same release.
    put_bench(&directory, "beside");
    let output = run(&directory, &elsewhere, &["bench", "--help"]);
    assert_eq!(text(&output.stdout), "beside: --help log=\n");
}

#[test]
fn where_it_is_missing_the_error_says_where_it_was_looked_for() {
    let directory = installed("bench-missing");
    let output = run(&directory, &directory, &["bench", "meta"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("clover-bench, which is neither beside"), "{error}");
    assert!(error.contains("make build"), "{error}");
}
