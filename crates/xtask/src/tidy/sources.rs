//! Checks of single source files: the parts that each must have, and the texts that none may have.

use super::{Finding, workspace::Workspace};

/// At this length a second noun is hiding in the file. Tables are the honest exception; such a file says so
/// with a line `// tidy: long, because …`.
const LINES_MAX: usize = 800;
const LONG_BECAUSE: &str = "// tidy: long, because ";

/// Texts that may not be committed, and why. Written in halves, so that this file does not find itself.
const UNFINISHED: &[(&str, &str)] = &[
    (concat!("todo", "!("), "the work is not done"),
    (concat!("unimplemented", "!("), "the work is not done"),
    (concat!("dbg", "!("), "a print left behind"),
    (concat!("FIX", "ME"), "mend it, or write a sentence about why not"),
];

/// The promise that a write is on stable storage. One search audits it.
const ATTEST: &str = concat!("Durable::", "attest");

/// Crates that reach the world only through `env`, so that a simulation can stand in its place, and what they would
/// reach it with otherwise. Timers of the runtime are allowed: drivers wait with them and decide nothing by them.
const THROUGH_ENV: &[&str] = &["journal", "blockstore", "coord", "rpc", "web", "metad", "datad"];
const AROUND_ENV: &[&str] = &[
    concat!("SystemTime", "::now"),
    concat!("std::", "fs::"),
    concat!("tokio::", "fs"),
    concat!("getrandom", "::"),
    concat!("thread_", "rng"),
    concat!("Uuid::", "new_v4"),
];

pub fn check(workspace: &Workspace, findings: &mut Vec<Finding>) {
    for source in &workspace.sources {
        let (path, text) = (source.path.as_str(), source.text.as_str());
        if is_crate_root(path) {
            header(path, text, findings);
        }
        length(path, text, findings);
        for (index, line) in text.lines().enumerate() {
            let place = || format!("{path}:{}", index + 1);
            for (word, sentence) in UNFINISHED.iter().filter(|(word, _)| line.contains(word)) {
                findings.push(Finding::new(place(), format!("`{word}`: {sentence}")));
            }
            for word in AROUND_ENV.iter().filter(|word| goes_through_env(path) && line.contains(**word)) {
                findings.push(Finding::new(
                    place(),
                    format!("`{word}`: this crate has clock, disk and randomness from `env` only"),
                ));
            }
            if line.contains(ATTEST) && !may_attest(path) {
                findings.push(Finding::new(
                    place(),
                    format!("`{ATTEST}` belongs after the fsync in `journal`, in `sim` and in tests only"),
                ));
            }
        }
    }
}

fn is_crate_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates", _, "src", "lib.rs" | "main.rs"] | ["fuzz", "src", "lib.rs"])
}

/// A crate begins with what it is, and what it must never know.
fn header(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let lines = text.lines().take_while(|line| line.starts_with("//!")).count();
    if lines < 3 {
        findings.push(Finding::new(
            path,
            "the crate needs a header (`//!`) that says what it is and what it must never know",
        ));
    }
}

fn length(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let lines = text.lines().count();
    if lines > LINES_MAX && !text.contains(LONG_BECAUSE) {
        findings.push(Finding::new(
            path,
            format!("{lines} lines: split it at its second noun, or say `{LONG_BECAUSE}…`"),
        ));
    }
}

fn goes_through_env(path: &str) -> bool {
    let crate_ = path.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
    crate_.is_some_and(|name| THROUGH_ENV.contains(&name)) && !is_test(path)
}

/// Tests stand beside the code: a module called `tests`, or the crate's `tests` directory. Examples are no part of
/// what runs either.
fn is_test(path: &str) -> bool {
    path.contains("/tests") || path.contains("/examples/")
}

fn may_attest(path: &str) -> bool {
    let allowed = ["crates/base/", "crates/journal/", "crates/sim/", "crates/xtask/"];
    allowed.iter().any(|crate_| path.starts_with(crate_)) || is_test(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_of(check: impl Fn(&mut Vec<Finding>)) -> usize {
        let mut findings = Vec::new();
        check(&mut findings);
        findings.len()
    }

    #[test]
    fn a_crate_without_a_header_is_found() {
        assert_eq!(findings_of(|found| header("lib.rs", "//! One line.\nfn f() {}", found)), 1);
        assert_eq!(findings_of(|found| header("lib.rs", "//! What.\n//!\n//! Never.\n", found)), 0);
    }

    #[test]
    fn a_long_file_needs_a_reason() {
        let long = "x\n".repeat(LINES_MAX + 1);
        assert_eq!(findings_of(|found| length("a.rs", &long, found)), 1);
        let excused = format!("{LONG_BECAUSE}it is a table\n{long}");
        assert_eq!(findings_of(|found| length("a.rs", &excused, found)), 0);
    }

    #[test]
    fn only_journal_simulation_and_tests_attest() {
        assert!(may_attest("crates/journal/src/segment.rs"));
        assert!(may_attest("crates/group/src/member/tests.rs"));
        assert!(!may_attest("crates/metad/src/log.rs"));
    }

    #[test]
    fn services_and_stores_reach_the_world_through_env() {
        assert!(goes_through_env("crates/journal/src/segment.rs"));
        assert!(!goes_through_env("crates/journal/tests/torn.rs"));
        assert!(!goes_through_env("crates/env/src/clock.rs"));
        assert!(!goes_through_env("crates/cli/src/demo.rs"));
    }
}
