//! Runs scenarios from the command line.
//!
//! `replay <seed> [events]` runs one and prints its transcript; `run <first seed> <count> [events]` runs many
//! and stops at the first that fails, with the line that replays it.

use anyhow::{Context, bail};
use sim::scenario::lone_server::{Options, Outcome, run};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| -> anyhow::Result<Option<u64>> {
        arguments
            .get(index)
            .map(|text| text.parse().with_context(|| format!("{text} is no number")))
            .transpose()
    };
    match arguments.first().map(String::as_str) {
        Some("replay") => {
            let seed = number(1)?.context("which seed?")?;
            let outcome = run(seed, options(number(2)?));
            outcome.transcript.iter().for_each(|line| println!("{line}"));
            println!("{}", summary(seed, &outcome));
        }
        Some("run") => {
            let (first, count) = (number(1)?.context("from which seed?")?, number(2)?.unwrap_or(100));
            let options = options(number(3)?);
            for seed in first..first + count {
                match catch_unwind(AssertUnwindSafe(|| run(seed, options))) {
                    Ok(outcome) => println!("{}", summary(seed, &outcome)),
                    Err(_) => bail!("cargo run -p clover-sim -- replay {seed} {}", options.events),
                }
            }
        }
        _ => bail!("usage: clover-sim replay <seed> [events] | run <first seed> [count] [events]"),
    }
    Ok(())
}

fn options(events: Option<u64>) -> Options {
    let default = Options::default();
    Options { events: events.unwrap_or(default.events), ..default }
}

fn summary(seed: u64, outcome: &Outcome) -> String {
    let Outcome { disk_trace, files_hash, acknowledged, lives, .. } = outcome;
    format!(
        "seed {seed}: {acknowledged} entries acknowledged in {lives} lives, disk {disk_trace:016x}, files {files_hash:016x}"
    )
}
