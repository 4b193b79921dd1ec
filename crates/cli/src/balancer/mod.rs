//! `clover balancer`: moves replicas from fuller data servers to emptier ones.
//!
//! It is a client like Hadoop's: what moves where is chosen by [`blocks::balance`] from the figures of the moment, the data servers move,
//! and the metadata server deletes the old replicas. It keeps no state, so it can be ended and run again at any time.

mod done;
mod end;
mod id_file;
mod round;
mod tell;

use crate::{admin::orders::bandwidth, runtime, target::Target};
use ::blocks::balance::{self, Limits, Round, Space};
use anyhow::Context as _;
use base::StorageType;
use client::{
    FileSystem,
    balancing::{Balancing, Server},
};
use end::End;
use id_file::IdFile;
use round::Work;
use std::{process::ExitCode, sync::Arc, time::Duration};
use tell::Teller;
use tokio::signal::unix::{SignalKind, signal};

/// The exit codes of all ends.
#[cfg(test)]
pub fn exit_codes() -> impl Iterator<Item = u8> {
    End::all().map(|end| end.code())
}

/// Move replicas from fuller data servers to emptier ones.
///
/// One balancer works in a cluster at a time, this one or Hadoop's. It ends when no storage is farther from the mean
/// than the threshold. It can be stopped and run again at any time.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// How far the used share of a storage may be from the mean of its type, in percent.
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percent)]
    threshold: f64,
    /// Work with these data servers only: hosts, addresses or uuids, parted by commas.
    #[arg(long, value_name = "SERVERS", value_delimiter = ',')]
    include: Vec<String>,
    /// Leave these data servers as they are.
    #[arg(long, value_name = "SERVERS", value_delimiter = ',', conflicts_with = "include")]
    exclude: Vec<String>,
    /// Tell all data servers how fast they may move replicas, in bytes per second; with k, m, g for 1024 times as many.
    #[arg(long, value_name = "BYTES", value_parser = bandwidth)]
    bandwidth: Option<u64>,
    /// Leave blocks with fewer bytes where they are.
    #[arg(long, value_name = "BYTES", default_value = "1m", value_parser = bandwidth)]
    min_block: u64,
    /// Show what would be moved, and move nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
    /// The pause between two rounds, in seconds: data servers report, and delete what has been moved.
    #[arg(long, value_name = "SECONDS", default_value = "9", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pause: u64,
}

/// Hadoop's balancer has the same limits.
const GROUP_BYTES_MAX: u64 = 10 << 30;
const IDLE_ROUNDS_MAX: u32 = 5;

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    match (1.0..=100.0).contains(&value) {
        true => Ok(value),
        false => Err("a threshold is from 1 to 100 percent".to_owned()),
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = args.target.configuration()?;
    let fs = FileSystem::connect(&args.target.uri(&config), &config)?;
    runtime::block_on(async move {
        let teller = Teller::new(args.json);
        let end = match begin(&fs, &args, &teller).await {
            Ok(end) => end,
            Err(error) => End::Failed(format!("{error:#}")),
        };
        teller.end(&end);
        Ok(ExitCode::from(end.code()))
    })
}

async fn begin(fs: &FileSystem, args: &Args, teller: &Teller) -> anyhow::Result<End> {
    let balancing = Arc::new(Balancing::begin(fs).await?);
    if args.dry_run {
        let (servers, round) = match look(&balancing, args).await? {
            Ok(seen) => seen,
            Err(end) => return Ok(end),
        };
        teller.plan(&servers, &round);
        return Ok(End::of_look(&round).unwrap_or(End::Planned));
    }
    let Some(id_file) = IdFile::take(fs).await? else { return Ok(End::AlreadyRunning) };
    if let Some(rate) = args.bandwidth {
        fs.set_balancer_bandwidth(rate).await.context("setting the bandwidth")?;
    }
    let mut terminated = signal(SignalKind::terminate())?;
    let ended = tokio::select! {
        ended = balance(&balancing, args, teller) => ended,
        interrupted = tokio::signal::ctrl_c() => interrupted.map(|()| End::Interrupted).map_err(Into::into),
        _ = terminated.recv() => Ok(End::Interrupted),
    };
    id_file.give_back().await;
    ended
}

async fn balance(balancing: &Arc<Balancing>, args: &Args, teller: &Teller) -> anyhow::Result<End> {
    let mut work = Work::new(balancing.clone(), args.min_block);
    let mut idle = 0;
    for number in 1.. {
        let (servers, round) = match look(balancing, args).await? {
            Ok(seen) => seen,
            Err(end) => return Ok(end),
        };
        teller.round(number, &servers, &round);
        if let Some(end) = End::of_look(&round) {
            return Ok(end);
        }
        let done = work.carry_out(Arc::new(servers), round, teller).await?;
        teller.done(number, &done);
        idle = if done.bytes > 0 { 0 } else { idle + 1 };
        if idle == IDLE_ROUNDS_MAX {
            return Ok(End::NoProgress);
        }
        tokio::time::sleep(Duration::from_secs(args.pause)).await;
    }
    unreachable!("the rounds are not counted to an end")
}

/// The figures of the moment, and what follows from them. An end instead if the options name a server that is not there.
async fn look(balancing: &Balancing, args: &Args) -> anyhow::Result<Result<(Vec<Server>, Round), End>> {
    let servers = balancing.servers().await?;
    for name in args.include.iter().chain(&args.exclude) {
        if !servers.iter().any(|server| server.is_called(name)) {
            return Ok(Err(End::UnknownServer(name.clone())));
        }
    }
    let is_named = |server: &Server, names: &[String]| names.iter().any(|name| server.is_called(name));
    let seen = |server: &Server| balance::Server {
        rack: server.rack.as_str().into(),
        takes_part: server.is_in_service()
            && (args.include.is_empty() || is_named(server, &args.include))
            && !is_named(server, &args.exclude),
        spaces: server.storages.iter().filter(|storage| !storage.is_failed).map(space).collect(),
    };
    let limits = Limits { threshold_percent: args.threshold, group_bytes_max: GROUP_BYTES_MAX };
    let round = Round::new(servers.iter().map(seen).collect(), &limits);
    Ok(Ok((servers, round)))
}

fn space(storage: &client::balancing::Storage) -> Space {
    Space {
        storage_type: StorageType::from(storage.storage_type),
        capacity: storage.capacity,
        remaining: storage.remaining,
    }
}
