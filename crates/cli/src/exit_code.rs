//! The exit codes of this program, beyond 0 (it was done) and 1 (it was not, for the reason that is printed). The codes of a balancer
//! are Hadoop's, and stand with its [ends](crate::balancer).
//!
//! The page docs/operating/errors.md explains each of them, which a test checks.

/// A command line that is not understood; clap's code.
pub const USAGE: u8 = 2;
/// A thread of a server has panicked.
pub const PANIC: u8 = 70;
/// A thread that the server relies on hangs.
pub const HANG: u8 = 71;
/// 128 + SIGINT: the command was interrupted.
pub const INTERRUPTED: u8 = 130;
/// 128 + SIGPIPE, with which other programs end when the reader of their output has closed the pipe.
pub const NOBODY_READS: u8 = 141;
/// 128 + SIGTERM, with which a job that takes too long is stopped.
pub const TERMINATED: u8 = 143;
/// A command line of `clover fs` that makes no sense, as Hadoop's shell has it (-1).
pub const USAGE_OF_SHELL: u8 = 255;

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        collections::BTreeSet,
        path::{Path, PathBuf},
    };

    const ALL: [u8; 9] = [0, 1, USAGE, PANIC, HANG, INTERRUPTED, NOBODY_READS, TERMINATED, USAGE_OF_SHELL];

    fn source(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => source(&path, found),
                false => found.push(path),
            }
        }
    }

    #[test]
    fn the_page_on_errors_has_each_exit_code_and_no_other() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating/errors.md");
        let page = std::fs::read_to_string(page).unwrap();
        let part = page.split("\n## ").find(|part| part.starts_with("Exit codes\n")).unwrap();
        let rows = part.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
        let told: BTreeSet<u8> = rows.filter_map(|code| code.parse().ok()).collect();
        let ends = crate::balancer::exit_codes();
        assert_eq!(told, ALL.into_iter().chain(ends).collect());
    }

    #[test]
    fn no_other_file_has_exit_codes_of_its_own() {
        let mut files = Vec::new();
        source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
        let mut strangers = Vec::new();
        for path in files {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for way in ["ExitCode::from(", "process::exit("] {
                let literals = text.match_indices(way).map(|(at, _)| &text[at + way.len()..]);
                let mut literals =
                    literals.filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
                strangers.extend(literals.next().map(|_| path.clone()));
            }
        }
        assert!(strangers.is_empty(), "{strangers:?}");
    }
}
