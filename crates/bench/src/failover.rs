//! `clover bench failover`: how long clients wait when the active metadata server is lost.
//!
//! A group of real `clover meta` processes is laid out, with a real ZooKeeper. A client creates, makes directories,
//! renames, deletes and stats without pause; the active is killed, frozen, cut off, or asked to hand over; the gap is
//! the longest time without a completed operation around that. Then the victim comes back, the group becomes whole,
//! and the next run begins. In the end the answers are held against each other and against the tree.

mod group;
mod hadoop;
pub mod history;
mod native;
pub mod network;
mod plot;
mod report;
pub mod scene;

use super::monotonic_ns;
use group::Group;
use network::Network;
use report::Cell;
use scene::Scene;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    runs: u64,
    /// The fault that is done to the active.
    #[arg(long, value_enum, default_value_t = Fault::Kill)]
    fault: Fault,
    #[command(flatten)]
    scene: Scene,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Write the distribution of the gaps as a picture.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
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

/// The load before a fault, and what is left of the group's attention after it.
const RUN_UP: Duration = Duration::from_millis(1_500);
/// How long a victim stays away after its fault: longer than the clients' patience.
const AWAY: Duration = Duration::from_secs(4);
/// A gap that begins later than this after the fault is not the fault's.
const AFTERMATH_NS: u64 = 30_000_000_000;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.scene.play("failover", async |directory| {
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
    })
}

async fn measure(args: &Args, directory: &Path) -> anyhow::Result<Cell> {
    let network = match args.fault {
        Fault::Cut => Network::with_cables(args.scene.members)?,
        _ => Network::Loopback,
    };
    let mut stage = args.scene.start(network, directory, Duration::ZERO).await?;
    let mut faults = Vec::new();
    let mut takeovers = Vec::new();
    for run in 1..=args.runs {
        let victim = stage.group.wait_whole().await?;
        tokio::time::sleep(RUN_UP).await;
        let began = monotonic_ns();
        strike(args.fault, &mut stage.group, victim).await?;
        tokio::time::sleep(AWAY).await;
        stage.load.wait_for(stage.load.done() + 10).await?;
        relieve(args.fault, &mut stage.group, victim)?;
        stage.group.wait_whole().await?;
        faults.push((began, monotonic_ns()));
        takeovers.extend(stage.group.look().await?.takeovers.pop());
        tracing::info!(run, victim, "a run is over");
    }
    let (operations, verdict) = stage.judge().await?;
    let gaps_ms = faults
        .iter()
        .map(|(began, ended)| history::gap_ms(&operations, *began, (*ended).min(began + AFTERMATH_NS)))
        .collect();
    Ok(Cell {
        fault: args.fault,
        client: args.scene.client,
        files: args.scene.files,
        members: args.scene.members,
        gaps_ms,
        takeovers,
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
