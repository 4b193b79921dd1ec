//! The answers that the clients got, operation by operation, and the conclusions from them.
//!
//! Each worker keeps to a directory of its own, one operation at a time, and never uses a name again whose
//! operation failed: so every answer is known in advance. An answer that denies what an acknowledged operation did,
//! or a name that is gone or there again in the end, is an operation lost or applied twice.

use anyhow::{Context, ensure};
use std::{collections::BTreeMap, path::Path};

/// The outcome of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// `false`, "no such file", "exists already": wrong for a worker that knows its names.
    Denied(String),
    Error(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Mkdir,
    Create,
    Close,
    Rename,
    Delete,
    Stat,
}

impl Verb {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "mkdir" => Self::Mkdir,
            "create" => Self::Create,
            "close" => Self::Close,
            "rename" => Self::Rename,
            "delete" => Self::Delete,
            "stat" => Self::Stat,
            _ => return None,
        })
    }
}

/// One operation with its answer.
#[derive(Clone, Debug)]
pub struct Operation {
    pub verb: Verb,
    /// Nanoseconds of the machine's monotonic clock, the same for all processes.
    pub began_ns: u64,
    pub ended_ns: u64,
    pub outcome: Outcome,
    /// Relative to the root of the load.
    pub path: String,
    /// The destination of a rename.
    pub to: Option<String>,
}

/// Reads what the Java client wrote: thread, operation, begin, end, outcome, value, arguments, between tabs.
pub fn read(file: &Path) -> anyhow::Result<Vec<Operation>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let mut operations = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        ensure!(fields.len() >= 7, "{}:{}: not an operation: {line}", file.display(), number + 1);
        let Some(verb) = Verb::named(fields[1]) else { continue };
        let outcome = match fields[4] {
            "ok" => Outcome::Ok,
            denied @ ("false" | "missing" | "exists") => Outcome::Denied(format!("{denied} {}", fields[5])),
            error => Outcome::Error(format!("{error} {}", fields[5])),
        };
        // A stat of a name that is gone is asked on purpose.
        operations.push(Operation {
            verb,
            began_ns: fields[2].parse().with_context(|| format!("a time in line {}", number + 1))?,
            ended_ns: fields[3].parse().with_context(|| format!("a time in line {}", number + 1))?,
            outcome,
            path: fields[6].to_owned(),
            to: (verb == Verb::Rename).then(|| fields.get(7).map(|to| (*to).to_owned())).flatten(),
        });
    }
    Ok(operations)
}

/// The longest time without a completed operation that begins or ends between the two moments, in milliseconds.
pub fn gap_ms(operations: &[Operation], from_ns: u64, to_ns: u64) -> f64 {
    let mut ends: Vec<u64> =
        operations.iter().filter(|it| it.outcome == Outcome::Ok).map(|it| it.ended_ns).collect();
    ends.sort_unstable();
    let around = ends.windows(2).filter(|pair| pair[1] >= from_ns && pair[0] <= to_ns);
    around.map(|pair| (pair[1] - pair[0]) as f64 / 1e6).fold(0.0, f64::max)
}

/// The result of a whole load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub acknowledged: u64,
    pub lost: u64,
    pub doubled: u64,
    pub errors: u64,
    /// The first few findings, as sentences.
    pub findings: Vec<String>,
}

const FINDINGS_MAX: usize = 10;

impl Verdict {
    fn find(&mut self, what: String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(what);
        }
    }
}

/// The knowledge about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    There,
    Gone,
    /// An operation on it failed: either may be true.
    Unknown,
}

/// Holds the answers, in each worker's order, against each other and against the tree that is there in the end.
pub fn judge(operations: &[Operation], is_there: &dyn Fn(&str) -> bool) -> Verdict {
    let mut verdict = Verdict::default();
    let mut names: BTreeMap<&str, Known> = BTreeMap::new();
    for operation in operations {
        let known = names.get(operation.path.as_str()).copied().unwrap_or(Known::Gone);
        let (from, to) = match operation.verb {
            Verb::Mkdir | Verb::Create => (Known::There, None),
            Verb::Close | Verb::Stat => (known, None),
            Verb::Rename => (Known::Gone, operation.to.as_deref()),
            Verb::Delete => (Known::Gone, None),
        };
        match &operation.outcome {
            Outcome::Ok => {
                verdict.acknowledged += 1;
                if operation.verb == Verb::Stat && known == Known::Gone {
                    verdict.doubled += 1;
                    verdict.find(format!("{} is there, though it was deleted or renamed", operation.path));
                }
                names.insert(&operation.path, from);
                if let Some(to) = to {
                    names.insert(to, Known::There);
                }
            }
            // "Not there" is the right answer for a name that is known to be gone.
            Outcome::Denied(_) if operation.verb == Verb::Stat && known != Known::There => {}
            Outcome::Denied(said) => {
                let is_lost = operation.verb == Verb::Stat || operation.verb == Verb::Close;
                *if is_lost { &mut verdict.lost } else { &mut verdict.doubled } += 1;
                verdict.find(format!("{:?} {}: {said}", operation.verb, operation.path));
                names.insert(&operation.path, Known::Unknown);
                names.extend(to.map(|to| (to, Known::Unknown)));
            }
            Outcome::Error(said) => {
                verdict.errors += 1;
                verdict.find(format!("{:?} {}: {said}", operation.verb, operation.path));
                if operation.verb != Verb::Stat {
                    names.insert(&operation.path, Known::Unknown);
                    names.extend(to.map(|to| (to, Known::Unknown)));
                }
            }
        }
    }
    for (name, known) in names {
        match (known, is_there(name)) {
            (Known::There, false) => {
                verdict.lost += 1;
                verdict.find(format!("{name} was acknowledged and is not there"));
            }
            (Known::Gone, true) => {
                verdict.doubled += 1;
                verdict.find(format!("{name} is there again, though it was deleted or renamed"));
            }
            _ => {}
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(verb: Verb, path: &str, ended_ms: u64, outcome: Outcome) -> Operation {
        let to = (verb == Verb::Rename).then(|| format!("{path}-moved"));
        let ended_ns = ended_ms * 1_000_000;
        Operation { verb, began_ns: ended_ns, ended_ns, outcome, path: path.into(), to }
    }

    #[test]
    fn the_gap_is_the_longest_silence_around_the_fault() {
        let at = |ended_ms| operation(Verb::Stat, "a", ended_ms, Outcome::Ok);
        let failed = operation(Verb::Stat, "a", 1_400, Outcome::Error("no".into()));
        let load = [at(100), at(900), at(1_000), failed, at(1_600), at(1_650), at(9_000)];
        assert_eq!(gap_ms(&load, 1_100_000_000, 1_640_000_000), 600.0);
    }

    #[test]
    fn an_acknowledged_name_that_is_gone_is_lost_and_one_that_came_back_was_doubled() {
        let load = [
            operation(Verb::Create, "kept", 1, Outcome::Ok),
            operation(Verb::Create, "lost", 1, Outcome::Ok),
            operation(Verb::Create, "old", 1, Outcome::Ok),
            operation(Verb::Rename, "old", 2, Outcome::Ok),
            operation(Verb::Create, "undecided", 3, Outcome::Error("cut".into())),
            operation(Verb::Stat, "old", 4, Outcome::Denied("missing".into())),
        ];
        let verdict = judge(&load, &|name| ["kept", "old", "old-moved"].contains(&name));
        assert_eq!((verdict.acknowledged, verdict.lost, verdict.doubled, verdict.errors), (4, 1, 1, 1));
        assert_eq!(verdict.findings.len(), 3);
        let whole = judge(&load, &|name| ["kept", "lost", "old-moved", "undecided"].contains(&name));
        assert_eq!((whole.lost, whole.doubled), (0, 0));
    }

    #[test]
    fn a_rename_that_is_denied_was_carried_out_before() {
        let load = [
            operation(Verb::Create, "a", 1, Outcome::Ok),
            operation(Verb::Rename, "a", 2, Outcome::Denied("false".into())),
        ];
        assert_eq!(judge(&load, &|name| name == "a-moved").doubled, 1);
    }

    #[test]
    fn what_the_java_client_wrote_is_read() -> anyhow::Result<()> {
        let file = std::env::temp_dir().join(format!("clover-history-{}.tsv", std::process::id()));
        std::fs::write(
            &file,
            "own-1-0\tcreate\t5\t9\tok\t16390\town-1-0/f0\nown-1-0\trename\t9\t12\tfalse\t\town-1-0/f0\town-1-0/m1\n",
        )?;
        let load = read(&file)?;
        std::fs::remove_file(&file)?;
        assert_eq!((load[0].verb, load[0].began_ns, load[0].ended_ns), (Verb::Create, 5, 9));
        assert_eq!(load[0].outcome, Outcome::Ok);
        assert_eq!(load[1].to.as_deref(), Some("own-1-0/m1"));
        assert_eq!(load[1].outcome, Outcome::Denied("false ".into()));
        Ok(())
    }
}
