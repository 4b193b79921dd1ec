//! `clover bench reports`: full block reports, and what clients feel meanwhile.
//!
//! Files with one block each are made through Hadoop's RPC, and made-up data servers tell of their replicas as real
//! ones do. Then it measures in turn, round after round: clients alone, full reports alone, clients while reports come at
//! a steady rate, and clients while one report follows the other without a pause. The processor time of the server is read from the kernel's account of its
//! process, so Hadoop's NameNode stands beside Clover's server in the same run.

mod clients;
mod files;
mod fleet;
mod report;

use crate::{directory, lone::Scene, meta::cpu};
use anyhow::Context;
use cli::runtime;
use clients::Clients;
use fleet::Fleet;
use report::{Phase, Round};
use std::{
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

pub const EXAMPLES: &str = "\
Examples:
  clover bench reports --dir /var/tmp/bench                             Clover alone
  clover bench reports --dir /var/tmp/bench --hadoop target/clients/contract-3.5.0
                                                                        beside Hadoop's NameNode
  clover bench reports --dir /var/tmp/bench --blocks 3000000 --servers 50
                                                                        more than a processor's caches hold";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the servers keep their files; it is made, and its content removed afterwards.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Blocks of the namespace, one a file. Each has three replicas.
    #[arg(long, default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000_000))]
    blocks: u64,
    /// Made-up data servers.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(3..=1_000))]
    servers: u32,
    /// Reports that are under way at once. Hadoop's NameNode takes at most six.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=6))]
    at_once: u32,
    /// Replicas that are reported in a second where reports come at a steady rate.
    #[arg(long, value_name = "REPLICAS", default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
    /// File states that clients ask for in a second.
    #[arg(long, default_value_t = 1_500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    stats: u32,
    /// Files that clients make in a second.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    creates: u32,
    /// The length of each measurement.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Measure Hadoop's NameNode beside Clover's server: a directory with the jars of its servers, as
    /// target/clients/contract-3.5.0, which scripts/setup-test makes.
    #[arg(long, value_name = "DIR")]
    hadoop: Option<PathBuf>,
    /// Print one JSON object a row.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    directory::must_be_empty(&args.dir)?;
    runtime::block_on(async move {
        let rounds = measure(&args).await;
        std::fs::remove_dir_all(&args.dir).with_context(|| format!("removing {}", args.dir.display()))?;
        report::print(&args, &rounds?);
        Ok(ExitCode::SUCCESS)
    })
}

/// One of the servers that are measured, with files and data servers.
struct Lane {
    name: &'static str,
    fleet: Arc<Fleet>,
    clients: Clients,
    process: cpu::Process,
    /// Killed at the end.
    _scene: Scene,
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Round>> {
    let user = cli::user::of_this_process()?;
    let mut lanes = Vec::new();
    let clover = Scene::clover(&args.dir.join("clover")).await?;
    lanes.push(prepare(args, "clover", clover, &user).await.context("clover")?);
    if let Some(jars) = &args.hadoop {
        let scene = Scene::hadoop(&args.dir.join("hadoop"), &std::path::absolute(jars)?, &user).await?;
        lanes.push(prepare(args, "hadoop", scene, &user).await.context("hadoop")?);
    }
    let mut rounds = Vec::new();
    // The first round warms up, and is not counted.
    for round in 0..=args.rounds {
        for lane in &lanes {
            let phases = lane.round(args).await.with_context(|| lane.name)?;
            if round > 0 {
                rounds.push(Round { lane: lane.name, phases });
            }
        }
        if !args.json && round > 0 {
            eprintln!("round {round} of {} is done", args.rounds);
        }
    }
    Ok(rounds)
}

async fn prepare(args: &Args, name: &'static str, scene: Scene, user: &str) -> anyhow::Result<Lane> {
    let begun = Instant::now();
    let fleet = Fleet::register(scene.address(), args.servers, user).await?;
    files::make(scene.address(), user, args.blocks, &fleet).await.context("making files")?;
    fleet.report_all(args.at_once).await.context("the first reports")?;
    let address = scene.address().parse().context("the address of a server that was just started")?;
    let clients = Clients::new(address, user, args.stats, args.creates).await?;
    let process = cpu::Process::listening_on(address).context("finding the server's process")?;
    if !args.json {
        let (replicas, seconds) = (fleet.replicas(), begun.elapsed().as_secs());
        eprintln!("{name}: {} blocks with {replicas} replicas were made in {seconds} s", args.blocks);
    }
    Ok(Lane { name, fleet, clients, process, _scene: scene })
}

impl Lane {
    async fn round(&self, args: &Args) -> anyhow::Result<[Phase; 4]> {
        let length = Duration::from_secs(args.seconds);
        let (phase, clients) = self.phase(self.clients.run(length)).await?;
        let alone = Phase { clients: Some(clients), ..phase };
        let (phase, rows) = self.phase(self.fleet.report_for(length, args.at_once, None)).await?;
        let reports = Phase { rows, ..phase };
        let paced = self.together(args, Some(args.rate)).await?;
        Ok([alone, reports, paced, self.together(args, None).await?])
    }

    /// Clients and reports.
    async fn together(&self, args: &Args, rate: Option<u64>) -> anyhow::Result<Phase> {
        let length = Duration::from_secs(args.seconds);
        let reports = self.fleet.report_for(length, args.at_once, rate);
        let both = async { tokio::try_join!(self.clients.run(length), reports) };
        let (phase, (clients, rows)) = self.phase(both).await?;
        Ok(Phase { rows, clients: Some(clients), ..phase })
    }

    /// Runs a phase, and tells what the server's process spent meanwhile.
    async fn phase<T>(&self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<(Phase, T)> {
        let account = || self.process.account().context("the server has ended");
        let (before, begun) = (account()?, Instant::now());
        let done = work.await?;
        let phase =
            Phase { elapsed: begun.elapsed(), server_cpu: account()?.since(&before), rows: 0, clients: None };
        Ok((phase, done))
    }
}
