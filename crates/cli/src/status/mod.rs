//! `clover status`: one verdict on the cluster, with its reasons.

pub mod ask;
mod show;

pub use show::json as as_json;

use crate::{admin::servers::Servers, runtime, target::Target};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};
use verdict::{Facts, Judged, Severity, Verdict, judge};

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// Say whether the cluster is well, and what is wrong if it is not. All metadata servers of all groups are asked. The exit code is 1 where clients
/// cannot read or change something, else 0.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Look again each second, and print what has become of it whenever a condition comes or goes.
    #[arg(long)]
    watch: bool,
    /// Wait until no condition holds, and end with 0 then.
    #[arg(long)]
    exit_when_healthy: bool,
    /// Wait for that only so many seconds, and end with 1 then.
    #[arg(long, value_name = "SECONDS", requires = "exit_when_healthy")]
    timeout: Option<u64>,
    /// Print JSON; with --watch, an object a line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let servers = Servers::find(&args.target)?;
    runtime::block_on(async move { look(&servers, &args).await })
}

async fn look(servers: &Servers, args: &Args) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let mut shown = None;
    loop {
        let facts = ask::everybody(servers).await;
        let judged = judge(&facts);
        let is_healthy = judged.verdict == Verdict::Healthy;
        let is_late = args.timeout.is_some_and(|seconds| begun.elapsed() >= Duration::from_secs(seconds));
        let is_last = match args.exit_when_healthy {
            true => is_healthy || is_late,
            false => !args.watch,
        };
        let essence = essence(&judged);
        if (is_last && !args.watch) || (args.watch && shown.as_ref() != Some(&essence)) {
            print(&facts, &judged, args)?;
            shown = Some(essence);
        }
        if is_last {
            let is_well = match args.exit_when_healthy {
                true => is_healthy,
                false => judged.verdict != Verdict::Error,
            };
            return Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// The part of a verdict by which a person sees that something has changed: without numbers that grow with the time.
fn essence(judged: &Judged) -> Vec<(&'static str, Severity, Vec<String>)> {
    let of = |one: &verdict::Condition| (one.code.as_str(), one.severity, one.subjects.clone());
    judged.conditions.iter().map(of).collect()
}

fn print(facts: &Facts, judged: &Judged, args: &Args) -> anyhow::Result<()> {
    match (args.json, args.watch) {
        (true, true) => println!("{}", show::json(facts, judged)),
        (true, false) => println!("{}", serde_json::to_string_pretty(&show::json(facts, judged))?),
        (false, true) => {
            println!("{}  {}", jiff::Zoned::now().strftime("%H:%M:%S"), show::text(facts, judged));
        }
        (false, false) => print!("{}", show::text(facts, judged)),
    }
    Ok(())
}
