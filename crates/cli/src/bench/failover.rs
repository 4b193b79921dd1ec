//! `clover bench failover`: how long clients wait when the active metadata server is lost.
//!
//! A group of real `clover meta` processes is laid out, with a real ZooKeeper. A client creates, makes directories,
//! renames, deletes and stats without pause; the active is killed, frozen, cut off, or asked to hand over; the gap is
//! the longest time without a completed operation around that. Then the victim comes back, the group becomes whole,
//! and the next run begins. In the end the answers are held against each other and against the tree.

mod group;
mod hadoop;
mod history;
mod native;
mod network;
mod plot;
mod report;

use crate::runtime;
use anyhow::{Context, bail, ensure};
use client::FileSystem;
use group::Group;
use history::{Operation, Verdict};
use network::Network;
use report::Cell;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    runs: u64,
    /// What befalls the active.
    #[arg(long, value_enum, default_value_t = Fault::Kill)]
    fault: Fault,
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=16))]
    members: u16,
    #[arg(long, value_enum, default_value_t = Client::Native)]
    client: Client,
    /// Files in the namespace beside those of the load.
    #[arg(long, default_value_t = 0)]
    files: u64,
    /// Threads of the client.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Write the distribution of the gaps as a picture.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// A coordinator that runs already, as zookeeper://host:2181/clover/bench.
    #[arg(long, value_name = "PLACE")]
    coordinator: Option<String>,
    /// The script that starts a ZooKeeper where none is given.
    #[arg(long, value_name = "FILE", default_value = "scripts/zookeeper")]
    zookeeper: PathBuf,
    /// Hadoop's client jars, for `--client hadoop`.
    #[arg(long, value_name = "DIR", default_value = "target/clients/hadoop-3.5.0")]
    hadoop: PathBuf,
    /// The sources of the Java load.
    #[arg(long, value_name = "DIR", default_value = "tests/faults/java")]
    java: PathBuf,
    /// Where everything is put; a new directory among the temporary ones that is removed in the end.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// A further line for the members' settings, as "group_lease_ms = 400".
    #[arg(long, value_name = "LINE")]
    set: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// SIGKILL; started again after a while.
    Kill,
    /// SIGSTOP; SIGCONT after a while.
    Stop,
    /// Its cable is pulled, and put back after a while. Needs root.
    Cut,
    /// It is asked to give the group to another member.
    Graceful,
}

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Cut => "cut",
            Self::Graceful => "graceful",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Client {
    /// A stock Hadoop client, with the settings that `clover client-config` writes.
    Hadoop,
    Native,
}

impl Client {
    fn name(self) -> &'static str {
        match self {
            Self::Hadoop => "hadoop",
            Self::Native => "native",
        }
    }
}

/// The load before a fault, and what is left of the group's attention after it.
const RUN_UP: Duration = Duration::from_millis(1_500);
/// For so long the victim stays away: longer than its clients' patience.
const AWAY: Duration = Duration::from_secs(4);
/// A gap that begins later than this after the fault is not the fault's.
const AFTERMATH_NS: u64 = 30_000_000_000;
const ROOT: &str = "/failover";
const NAMESERVICE: &str = "bench";

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (directory, is_ours) = match &args.dir {
        Some(dir) => (std::path::absolute(dir)?, false),
        None => (std::env::temp_dir().join(format!("clover-failover-{}", std::process::id())), true),
    };
    ensure!(!directory.exists(), "{} is there already; the bench wants a new directory", directory.display());
    let kept = directory.clone();
    let outcome = runtime::block_on(async move {
        let cell = measure(&args, &directory).await?;
        if args.json {
            println!("{}", serde_json::to_string(&cell.json())?);
        } else {
            print!("{}", cell.text());
        }
        if let Some(file) = &args.svg {
            plot::write(file, &cell)?;
        }
        let is_sound = cell.verdict.lost + cell.verdict.doubled == 0;
        Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    });
    match &outcome {
        Ok(code) if is_ours && *code == ExitCode::SUCCESS => std::fs::remove_dir_all(&kept)?,
        _ => eprintln!("logs and settings of the members are in {}", kept.display()),
    }
    outcome
}

async fn measure(args: &Args, directory: &Path) -> anyhow::Result<Cell> {
    let network = match args.fault {
        Fault::Cut => Network::with_cables(args.members)?,
        _ => Network::Loopback,
    };
    let mut group = Group::lay_out(args, network, directory)?;
    let conf = directory.join("conf");
    crate::client_config::write_for_group(&conf, NAMESERVICE, &group.addresses())?;
    let fs = FileSystem::connect(&format!("hdfs://{NAMESERVICE}/"), &client::Config::from_dir(&conf)?)?;
    group.wait_whole().await?;
    fs.mkdirs(ROOT).await?;
    let load = match args.client {
        Client::Native => Load::Native(native::Load::start(&fs, ROOT, args.threads.into())),
        Client::Hadoop => Load::Hadoop(hadoop::Load::start(args, &conf, directory, ROOT)?),
    };
    load.wait_for(u64::from(args.threads) * 20).await?;
    let mut faults = Vec::new();
    let mut switches_ms = Vec::new();
    for run in 1..=args.runs {
        let victim = group.wait_whole().await?;
        tokio::time::sleep(RUN_UP).await;
        let began = monotonic_ns();
        strike(args.fault, &mut group, victim).await?;
        tokio::time::sleep(AWAY).await;
        load.wait_for(load.done() + 10).await?;
        relieve(args.fault, &mut group, victim)?;
        group.wait_whole().await?;
        faults.push((began, monotonic_ns()));
        let seen = group.look().await?;
        if let Some(last) = seen.takeovers.last() {
            switches_ms.push(last.sync_ms.saturating_sub(last.claim_ms) as f64);
        }
        tracing::info!(run, victim, "a run is over");
    }
    let operations = load.end().await?;
    let there = tree(&fs, ROOT).await?;
    let verdict: Verdict = history::judge(&operations, &|name| there.contains(name));
    let gaps_ms = faults
        .iter()
        .map(|(began, ended)| history::gap_ms(&operations, *began, (*ended).min(began + AFTERMATH_NS)))
        .collect();
    Ok(Cell {
        fault: args.fault,
        client: args.client,
        files: args.files,
        members: args.members,
        gaps_ms,
        switches_ms,
        verdict,
    })
}

async fn strike(fault: Fault, group: &mut Group, victim: u16) -> anyhow::Result<()> {
    match fault {
        Fault::Kill => group.kill(victim),
        Fault::Stop => group.signal(victim, "STOP"),
        Fault::Cut => group.network.cut(victim, true),
        Fault::Graceful => group.hand_over(victim).await,
    }
}

fn relieve(fault: Fault, group: &mut Group, victim: u16) -> anyhow::Result<()> {
    match fault {
        Fault::Kill => group.start(victim),
        Fault::Stop => group.signal(victim, "CONT"),
        Fault::Cut => group.network.cut(victim, false),
        Fault::Graceful => Ok(()),
    }
}

enum Load {
    Native(native::Load),
    Hadoop(hadoop::Load),
}

impl Load {
    fn done(&self) -> u64 {
        match self {
            Self::Native(load) => load.done(),
            Self::Hadoop(load) => load.done(),
        }
    }

    /// Until so many operations were acknowledged in all.
    async fn wait_for(&self, count: u64) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.done() < count {
            if Instant::now() > deadline {
                bail!("the client got {} operations done in two minutes; {count} were expected", self.done());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn end(self) -> anyhow::Result<Vec<Operation>> {
        match self {
            Self::Native(load) => load.end().await,
            Self::Hadoop(load) => load.end(),
        }
    }
}

/// Every name below `root`, relative to it.
async fn tree(fs: &FileSystem, root: &str) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut waiting = vec![String::new()];
    while let Some(directory) = waiting.pop() {
        let path = format!("{root}/{directory}");
        let entries = fs.list(path.trim_end_matches('/')).collect().await;
        for entry in entries.with_context(|| format!("listing {path}"))? {
            let name = entry.name();
            let name = if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
            if entry.is_dir() {
                waiting.push(name.clone());
            }
            names.insert(name);
        }
    }
    Ok(names)
}

/// The clock that Java's `System.nanoTime` reads.
fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
