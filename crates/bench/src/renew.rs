//! `clover bench renew`: a member with an empty disk joins again while clients are at work.
//!
//! The group and its load are those of `bench failover`. A standby is killed and its directory removed; it is formatted
//! anew, started, and watched until it is in sync. Told are how long that took, how much it was sent, and what the
//! clients felt: before, meanwhile and afterwards.

use super::{
    failover::{history::Operation, network::Network, scene::Scene},
    monotonic_ns,
};
use anyhow::Context;
use serde::Serialize;
use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    scene: Scene,
    /// The rest of each of the client's threads between two operations: the load, in other words.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 4_000)]
    pause_us: u64,
    /// How long the load is watched before and afterwards.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The operations of clients in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Felt {
    operations: u64,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

#[derive(Debug, Serialize)]
struct Outcome {
    client: &'static str,
    members: u16,
    files: u64,
    /// The time from the start of the empty member until it is in sync, in milliseconds.
    renewed_ms: u64,
    image_bytes: u64,
    image_ms: u64,
    /// The bytes of the log, and those of all other messages of the members.
    journal_bytes: u64,
    before: Felt,
    meanwhile: Felt,
    afterwards: Felt,
    lost: u64,
    doubled: u64,
    errors: u64,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.scene.play("renew", async |directory| {
        let outcome = measure(&args, &directory).await?;
        match args.json {
            true => println!("{}", serde_json::to_string(&outcome)?),
            false => print!("{}", outcome.text()),
        }
        let is_sound = outcome.lost + outcome.doubled == 0;
        Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

async fn measure(args: &Args, directory: &Path) -> anyhow::Result<Outcome> {
    let watched = Duration::from_secs(args.seconds);
    let pause = Duration::from_micros(args.pause_us);
    let mut stage = args.scene.start(Network::Loopback, directory, pause).await?;
    let active = stage.group.wait_whole().await?;
    let member = (1..=args.scene.members).rev().find(|member| *member != active).context("a group of one")?;
    // The work that the start of the group has left to do must not count in the comparison.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = monotonic_ns();
    tokio::time::sleep(watched).await;
    let killed = monotonic_ns();
    stage.group.kill(member)?;
    stage.group.empty(member)?;
    // The active has taken it out of the in-sync set, which is not what is measured.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let said = stage.group.log(member)?.len();
    let (began, started) = (Instant::now(), monotonic_ns());
    stage.group.start(member)?;
    stage.group.wait_whole().await?;
    let (renewed, ended) = (began.elapsed(), monotonic_ns());
    let journal_bytes = stage.group.metric(member, "clover_peers_received_bytes_total").await?;
    let log = stage.group.log(member)?;
    tokio::time::sleep(watched).await;
    let after = monotonic_ns();
    let (operations, verdict) = stage.judge().await?;
    let image = log[said..].lines().filter(|line| line.contains("the image is here")).collect::<Vec<_>>();
    let sum = |name: &str| image.iter().filter_map(|line| number(line, name)).sum();
    Ok(Outcome {
        client: args.scene.client.name(),
        members: args.scene.members,
        files: args.scene.files,
        renewed_ms: renewed.as_millis() as u64,
        image_bytes: sum("bytes"),
        image_ms: sum("took_ms"),
        journal_bytes,
        before: Felt::of(&operations, before, killed),
        meanwhile: Felt::of(&operations, started, ended),
        afterwards: Felt::of(&operations, ended, after),
        lost: verdict.lost,
        doubled: verdict.doubled,
        errors: verdict.errors,
    })
}

/// The number behind a name in a line of a server's log.
fn number(line: &str, name: &str) -> Option<u64> {
    let at = line.find(&format!(" {name}="))? + name.len() + 2;
    let digits: String = line[at..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

impl Felt {
    /// Counts the operations that ended between two moments.
    fn of(operations: &[Operation], from_ns: u64, to_ns: u64) -> Self {
        let inside = operations.iter().filter(|it| (from_ns..to_ns).contains(&it.ended_ns));
        let mut took: Vec<u64> = inside.map(|it| it.ended_ns - it.began_ns).collect();
        took.sort_unstable();
        let rank = |share: f64| {
            let at = ((share * took.len() as f64).ceil() as usize).saturating_sub(1);
            (took.get(at).copied().unwrap_or(0) as f64 / 1e4).round() / 100.0
        };
        let seconds = to_ns.saturating_sub(from_ns).max(1) as f64 / 1e9;
        Self {
            operations: took.len() as u64,
            per_second: (took.len() as f64 / seconds).round(),
            p50_ms: rank(0.5),
            p99_ms: rank(0.99),
            max_ms: rank(1.0),
        }
    }
}

impl Outcome {
    fn text(&self) -> String {
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let mut text = format!(
            "{} files, {} members, {} client: renewed in {:.1} s with an image of {:.1} MiB ({:.1} s) and {:.1} MiB of \
             the journal\n\
             {:<11} {:>10} {:>8} {:>9} {:>9} {:>9}\n",
            self.files,
            self.members,
            self.client,
            self.renewed_ms as f64 / 1e3,
            mebibytes(self.image_bytes),
            self.image_ms as f64 / 1e3,
            mebibytes(self.journal_bytes),
            "clients",
            "operations",
            "ops/s",
            "p50 ms",
            "p99 ms",
            "max ms",
        );
        for (when, felt) in
            [("before", self.before), ("meanwhile", self.meanwhile), ("afterwards", self.afterwards)]
        {
            text += &format!(
                "{when:<11} {:>10} {:>8.0} {:>9.2} {:>9.2} {:>9.2}\n",
                felt.operations, felt.per_second, felt.p50_ms, felt.p99_ms, felt.max_ms
            );
        }
        text + &format!("lost {}, doubled {}, errors {}\n", self.lost, self.doubled, self.errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failover::history::{Outcome as Answer, Verb};

    #[test]
    fn what_clients_felt_is_by_the_operations_that_ended_in_the_stretch() {
        let operation = |began_ms: u64, ended_ms: u64| Operation {
            verb: Verb::Stat,
            began_ns: began_ms * 1_000_000,
            ended_ns: ended_ms * 1_000_000,
            outcome: Answer::Ok,
            path: "a".into(),
            to: None,
        };
        let mut load: Vec<_> = (0..100).map(|at| operation(1_000 + at * 10, 1_002 + at * 10)).collect();
        load.push(operation(1_990, 1_998));
        load.push(operation(900, 3_000));
        let felt = Felt::of(&load, 1_000_000_000, 2_000_000_000);
        let expected = Felt { operations: 101, per_second: 101.0, p50_ms: 2.0, p99_ms: 2.0, max_ms: 8.0 };
        assert_eq!(felt, expected);
    }

    #[test]
    fn numbers_are_found_in_lines_of_the_log() {
        let line = "2026-11-21T20:00:00Z  INFO metad::exchange::fetch: the image is here at=1-9 bytes=4711 took_ms=12";
        assert_eq!(
            (number(line, "bytes"), number(line, "took_ms"), number(line, "nothing")),
            (Some(4711), Some(12), None)
        );
    }
}
