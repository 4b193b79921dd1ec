//! `clover bench all`: the benches that stand beside Hadoop's, one after the other, and a report of all of them.
//!
//! Each part is a bench of this program, run as a process of its own with the command line that the report shows: so a reader can repeat a
//! single row. What a part prints is kept as it is, a JSON object a line, and the report is made of that. A part that fails is told in the
//! report, and the others go on.

mod machine;
mod page;
mod parts;

use crate::directory;
use anyhow::{Context, ensure};
use machine::Machine;
use parts::Part;
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

pub const EXAMPLES: &str = "\
Examples:
  clover bench all --quick --hadoop target/clients/contract-3.5.0       ten minutes
  clover bench all --hadoop target/clients/contract-3.5.0               a few rounds of everything: some hours
  clover bench all --quick --only metadata,memory                       Clover alone, two parts

It starts a ZooKeeper by scripts/zookeeper: run it in Clover's own directory.";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the report, its pictures and the lines of each part are written. A directory that is there already is emptied if an earlier report
    /// made it.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,
    /// Fewer operations, one round, and the rows that say most.
    #[arg(long)]
    quick: bool,
    /// Measure Hadoop beside Clover: a directory with the jars of its servers and of its tests, as target/clients/contract-3.5.0, which
    /// scripts/setup-test makes.
    #[arg(long, value_name = "DIR")]
    hadoop: Option<PathBuf>,
    /// Run these parts only.
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    only: Vec<String>,
}

/// What came of a part.
pub struct Outcome {
    pub part: Part,
    pub lines: Vec<Value>,
    pub took: Duration,
    /// `None`: it went well.
    pub failure: Option<String>,
}

const REPORT: &str = "report.md";
/// The first line of a report, by which its directory is known as ours.
const TITLE: &str = "# Clover, measured\n";

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let hadoop = args.hadoop.as_ref().map(std::path::absolute).transpose()?;
    if let Some(hadoop) = &hadoop {
        ensure!(hadoop.is_dir(), "{} is not there: scripts/setup-test makes it", hadoop.display());
    }
    let parts = parts::chosen(args.quick, hadoop.as_deref(), &args.out, &args.only)?;
    make_room(&args.out)?;
    let machine = Machine::look(&args.out);
    let mut outcomes = Vec::new();
    let count = parts.len();
    for (number, part) in parts.into_iter().enumerate() {
        eprintln!("part {} of {count}: {}", number + 1, part.title);
        let outcome = play(part, &args.out)?;
        match &outcome.failure {
            Some(failure) => eprintln!("{} has failed: {failure}", outcome.part.name),
            None => eprintln!("{} is done in {} s", outcome.part.name, outcome.took.as_secs()),
        }
        outcomes.push(outcome);
        // After each part, so that what was measured is told even if this is broken off.
        let page = page::of(&machine, args.quick, hadoop.is_some(), &outcomes);
        fs::write(args.out.join(REPORT), page).context("writing the report")?;
    }
    println!("the report is {}", args.out.join(REPORT).display());
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| outcome.failure.is_some())
        .map(|outcome| outcome.part.name)
        .collect();
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

fn make_room(out: &Path) -> anyhow::Result<()> {
    let is_empty = directory::is_empty(out)?;
    ensure!(
        is_empty || fs::read_to_string(out.join(REPORT)).is_ok_and(|report| report.starts_with(TITLE)),
        "{} has files of others: name another directory with --out",
        out.display()
    );
    if !is_empty {
        fs::remove_dir_all(out).with_context(|| format!("removing {}", out.display()))?;
    }
    fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    // From here on it is known as ours.
    fs::write(out.join(REPORT), format!("{TITLE}\nNothing yet.\n")).context("writing the report")
}

fn play(part: Part, out: &Path) -> anyhow::Result<Outcome> {
    let program = std::env::current_exe().context("finding this program")?;
    let begun = Instant::now();
    let output = Command::new(program)
        .args(&part.words)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {}", part.command()))?;
    fs::write(out.join(format!("{}.jsonl", part.name)), &output.stdout).context("writing what it printed")?;
    let (lines, failure) = match read(&String::from_utf8_lossy(&output.stdout)) {
        Ok(lines) if !output.status.success() => (lines, Some(format!("it ended with {}", output.status))),
        Ok(lines) if lines.is_empty() => (lines, Some("it printed nothing".to_owned())),
        Ok(lines) => (lines, None),
        Err(error) => (Vec::new(), Some(format!("{error:#}"))),
    };
    Ok(Outcome { part, lines, took: begun.elapsed(), failure })
}

fn read(printed: &str) -> anyhow::Result<Vec<Value>> {
    let lines = printed.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).with_context(|| format!("it printed {line:?}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_others_is_left_alone_and_an_older_report_goes() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let out = dir.path().join("out");
        fs::create_dir(&out)?;
        fs::write(out.join("precious"), "")?;
        assert!(make_room(&out).is_err());
        assert!(out.join("precious").exists());
        fs::write(out.join(REPORT), "# A report of somebody else\n")?;
        assert!(make_room(&out).is_err());
        assert!(out.join("precious").exists());
        fs::write(out.join(REPORT), TITLE)?;
        make_room(&out)?;
        assert!(!out.join("precious").exists() && out.join(REPORT).exists());
        Ok(())
    }

    #[test]
    fn a_part_prints_an_object_a_line_and_anything_else_is_its_failure() -> anyhow::Result<()> {
        assert_eq!(read("{\"a\": 1}\n\n{\"a\": 2}\n")?.len(), 2);
        assert!(read("a panic\n").is_err());
        Ok(())
    }
}
