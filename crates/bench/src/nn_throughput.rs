//! `clover bench nn-throughput`: Hadoop's own load generator, unchanged, against Clover's metadata server and Hadoop's NameNode.
//!
//! `NNThroughputBenchmark` stands in the tests jar of hadoop-hdfs. With `-fs` it drives a server over RPC, by threads that share one
//! connection. Both servers run, and are loaded in turn; the JVM of the load is a new one each time.

use crate::{directory, lone::Scene, meta::groups::hadoop, rounds};
use anyhow::{Context, ensure};
use clap::ValueEnum;
use cli::runtime;
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    process::{ExitCode, Output},
};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the servers keep their files; it is made, and its content removed afterwards.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// A directory with the jars of Hadoop's servers and of its tests, as target/clients/contract-3.5.0, which scripts/setup-test makes.
    #[arg(long, value_name = "DIR")]
    hadoop: PathBuf,
    /// What to measure; several are measured one after another.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["create", "mkdirs", "open", "file-status", "rename", "delete"])]
    op: Vec<Op>,
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    threads: u32,
    /// Operations of each measurement.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    count: u64,
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Print one JSON object a row.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Op {
    Create,
    Mkdirs,
    Open,
    FileStatus,
    Rename,
    Delete,
}

impl Op {
    /// As Hadoop's program calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Mkdirs => "mkdirs",
            Self::Open => "open",
            Self::FileStatus => "fileStatus",
            Self::Rename => "rename",
            Self::Delete => "delete",
        }
    }

    /// How it calls their number.
    fn count_option(self) -> &'static str {
        match self {
            Self::Mkdirs => "-dirs",
            _ => "-files",
        }
    }
}

const CLASS: &str = "org.apache.hadoop.hdfs.server.namenode.NNThroughputBenchmark";
/// The end of the line that tells the rate.
const RATE: &str = "Ops per sec:";

struct Row {
    op: Op,
    /// Operations a second, one of each round.
    clover: Vec<f64>,
    hadoop: Vec<f64>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    directory::must_be_empty(&args.dir)?;
    runtime::block_on(async move {
        let rows = measure(&args).await;
        std::fs::remove_dir_all(&args.dir).with_context(|| format!("removing {}", args.dir.display()))?;
        print(&args, &rows?);
        Ok(ExitCode::SUCCESS)
    })
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Row>> {
    let user = cli::user::of_this_process()?;
    let jars = std::path::absolute(&args.hadoop)?;
    let dir = std::path::absolute(&args.dir)?;
    let clover = Scene::clover(&dir.join("clover")).await.context("clover")?;
    let hadoop = Scene::hadoop(&dir.join("hadoop"), &jars, &user).await.context("hadoop")?;
    let mut rows: Vec<Row> =
        args.op.iter().map(|op| Row { op: *op, clover: Vec::new(), hadoop: Vec::new() }).collect();
    for round in 1..=args.rounds {
        for row in &mut rows {
            row.clover.push(rate(args, &jars, &dir, &clover.uri, row.op).context("clover")?);
            row.hadoop.push(rate(args, &jars, &dir, &hadoop.uri, row.op).context("hadoop")?);
            eprintln!("round {round} of {}: {} is done", args.rounds, row.op.name());
        }
    }
    Ok(rows)
}

fn rate(args: &Args, jars: &Path, dir: &Path, uri: &str, op: Op) -> anyhow::Result<f64> {
    let (threads, count) = (args.threads.to_string(), args.count.to_string());
    let words = ["-fs", uri, "-op", op.name(), "-threads", &threads, op.count_option(), &count];
    let output = hadoop::client(jars, dir, uri, CLASS, &words)?.output().context("starting java")?;
    told(&output).with_context(|| format!("NNThroughputBenchmark of {}", op.name()))
}

/// The rate that the program has told. It logs to standard error.
fn told(output: &Output) -> anyhow::Result<f64> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", output.status, said.trim());
    let told = said.lines().rev().find_map(|line| line.split_once(RATE));
    let (_, rate) = told.with_context(|| format!("it told no rate: {}", said.trim()))?;
    rate.trim().parse().with_context(|| format!("it told the rate {rate:?}"))
}

fn print(args: &Args, rows: &[Row]) {
    let median = |rates: &[f64]| rounds::median(rates.iter().copied());
    let range = |rates: &[f64]| rounds::range(rates.iter().copied());
    if args.json {
        for row in rows {
            println!(
                "{}",
                json!({
                    "op": row.op.name(),
                    "threads": args.threads,
                    "count": args.count,
                    "rounds": args.rounds,
                    "clover_ops_per_second": median(&row.clover),
                    "clover_ops_per_second_range": range(&row.clover),
                    "hadoop_ops_per_second": median(&row.hadoop),
                    "hadoop_ops_per_second_range": range(&row.hadoop),
                })
            );
        }
        return;
    }
    println!(
        "NNThroughputBenchmark, {} operations by {} threads, medians of {} rounds\n",
        args.count, args.threads, args.rounds
    );
    let head = ["op", "clover op/s", "hadoop op/s", "times"].map(str::to_owned).to_vec();
    let line = |row: &Row| {
        let (clover, hadoop) = (median(&row.clover), median(&row.hadoop));
        let times = clover / hadoop;
        vec![row.op.name().to_owned(), format!("{clover:.0}"), format!("{hadoop:.0}"), format!("{times:.2}")]
    };
    let lines: Vec<_> = std::iter::once(head).chain(rows.iter().map(line)).collect();
    cli::table::lines(&lines).iter().for_each(|line| println!("{line}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn output(said: &str) -> Output {
        Output { status: ExitStatusExt::from_raw(0), stdout: Vec::new(), stderr: said.as_bytes().to_vec() }
    }

    #[test]
    fn the_rate_is_the_one_that_the_program_told_last() -> anyhow::Result<()> {
        let said = "INFO: # operations: 10\nINFO:  Ops per sec: 12.5\nINFO:  Ops per sec: 4711.25\nthe end";
        assert_eq!(told(&output(said))?, 4711.25);
        Ok(())
    }

    #[test]
    fn a_program_that_told_no_rate_is_an_error_with_what_it_said() {
        let Err(error) = told(&output("Exception in thread main")) else { panic!("there is no rate") };
        assert!(format!("{error:#}").contains("Exception in thread main"));
    }
}
