//! `clover bench disks`: streams on one disk, with and without turns, on a real disk and on a model of one that seeks.

mod device;
mod ground;
mod measure;
mod model;
mod platter;
mod report;
mod seeking_file;

use crate::{directory, rounds::median_of_any};
use anyhow::Context;
use blockstore::schedule::plan::Limits;
use cli::runtime;
use device::{Device, FileSystemKind, head::Order};
use measure::{Lane, Measured, Place, measure};
use model::{Lying, Sharing};
use report::Row;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

pub const EXAMPLES: &str = "\
Examples:
  clover bench disks --model-only                                       a disk that seeks, as a model
  clover bench disks --dir /mnt/disk1/bench --total-mib 4096 --rounds 3 this disk, and the model
  clover bench disks --dir /mnt/disk1/bench --hadoop target/clients/contract-3.5.0
                                                                        the same beside Hadoop's DataNode
  sudo clover bench disks --dir /tmp/bench --seeking ext4               a disk that seeks, through this system's kernel

Reading is measured only as root, who may empty the system's cache; extents only where filefrag is installed.";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A directory on the disk to be measured; it is made, and its content removed afterwards.
    #[arg(long, value_name = "DIR", required_unless_present = "model_only")]
    dir: Option<PathBuf>,
    /// Numbers of streams.
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_value = "1,2,4,8",
        value_parser = clap::value_parser!(u32).range(1..=64))]
    streams: Vec<u32>,
    /// All streams together write so much.
    #[arg(long, value_name = "MIB", default_value_t = 2_048, value_parser = clap::value_parser!(u64).range(64..=1 << 20))]
    total_mib: u64,
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Measure Hadoop's DataNode beside Clover's: a directory with the jars of its servers, as
    /// target/clients/contract-3.5.0, which scripts/setup-test makes.
    #[arg(long, value_name = "DIR")]
    hadoop: Option<PathBuf>,
    /// Measure only these.
    #[arg(long, value_name = "LANES", value_enum, value_delimiter = ',',
        default_values_t = [Lane::Raw, Lane::Turns, Lane::NoTurns, Lane::Hadoop])]
    lanes: Vec<Lane>,
    /// Only the model.
    #[arg(long)]
    model_only: bool,
    /// Measure a disk that seeks, which this program serves as the model says: its loop device has this file system. Only root may,
    /// and fuse, losetup, unshare and the file system's mkfs are needed. DIR has all other files.
    #[arg(long, value_name = "FILE_SYSTEM", value_enum, requires = "dir")]
    seeking: Option<FileSystemKind>,
    /// In what order that disk serves what it has been given.
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Order::Deadline)]
    order: Order,
    /// The system may hold so many dirty bytes of that disk. It begins to write them out when it has half as many.
    #[arg(long, value_name = "MIB", default_value_t = 1_024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    dirty_mib: u64,
    /// Write down each request of that disk: to NAME-FILE_SYSTEM-ROUND-STREAMS-LANE.
    #[arg(long, value_name = "NAME", requires = "seeking")]
    trace: Option<PathBuf>,
    /// This process has mounts of its own.
    #[arg(long, hide = true)]
    in_namespace: bool,
    /// The length of a run in the model.
    #[arg(long, value_name = "MIB", default_value_t = Limits::default().run_bytes >> 20, value_parser = clap::value_parser!(u64).range(1..=128))]
    run_mib: u64,
    /// Print one JSON object a row.
    #[arg(long)]
    json: bool,
}

/// The bytes that all streams together move on the modelled disk. With the most streams, each one has several blocks.
const MODEL_BYTES: u64 = 8 << 30;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.seeking.is_some() && !args.in_namespace {
        return device::run_in_namespace("--in-namespace");
    }
    if args.seeking.is_none() {
        report::print("A disk that seeks, as a model", &modelled(&args)?, args.json);
    }
    if args.model_only {
        return Ok(ExitCode::SUCCESS);
    }
    runtime::block_on(async move {
        let (begun, rows) = (Instant::now(), measured(&args).await?);
        let what = match args.seeking {
            Some(kind) => format!("A disk that seeks, with {}", kind.name()),
            None => args.dir.as_ref().map_or_else(String::new, |dir| dir.display().to_string()),
        };
        report::print(&format!("{what}, medians of {}", args.rounds), &rows, args.json);
        if !args.json {
            println!("measured in {:.0} s", begun.elapsed().as_secs_f64());
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn modelled(args: &Args) -> anyhow::Result<Vec<Row>> {
    let turns = |mib: u64| Sharing::Turns(Limits { run_bytes: mib << 20, ..Limits::default() });
    let stretches = |bytes, lying| Sharing::Stretches { bytes, lying };
    let flusher = |mib: u64, lying| stretches(mib << 20, lying);
    // Clover's own fills are of 1 MiB, and the system reads ahead by 128 KiB.
    let (mib, small) = (stretches(1 << 20, Lying::Apart), stretches(128 << 10, Lying::Apart));
    let lanes = [
        (format!("turns of {} MiB", args.run_mib), turns(args.run_mib), turns(args.run_mib)),
        ("turns of 8 MiB".into(), turns(8), turns(8)),
        ("flusher 50 MiB, reads 1 MiB".into(), flusher(50, Lying::Apart), mib),
        ("flusher 4 MiB, reads 128 KiB".into(), flusher(4, Lying::Apart), small),
        ("the same, files in order".into(), flusher(4, Lying::InOrder), small),
        ("flusher 4 in order, read in turns".into(), flusher(4, Lying::InOrder), turns(args.run_mib)),
    ];
    let mut rows = Vec::new();
    for (name, writing, reading) in lanes {
        for streams in &args.streams {
            let [written, read] = model::run(writing, reading, u64::from(*streams), MODEL_BYTES)?;
            rows.push(Row {
                lane: name.clone(),
                streams: *streams,
                write: written.bytes_per_second,
                read: Some(read.bytes_per_second),
                extents: Some(written.extents),
                waits_ms: Some([written.longest_wait_ms, read.longest_wait_ms]),
                seeks: Some([written.seeks, read.seeks]),
            });
        }
    }
    Ok(rows)
}

/// All lanes in turn, round after round, so that what changes on the machine meets all of them.
async fn measured(args: &Args) -> anyhow::Result<Vec<Row>> {
    let dir = args.dir.as_deref().context("--dir names a directory")?;
    directory::must_be_empty(dir)?;
    let mut lanes = args.lanes.clone();
    lanes.retain(|lane| *lane != Lane::Hadoop || args.hadoop.is_some());
    let jars = args.hadoop.as_ref().map(std::path::absolute).transpose()?;
    let mut found: Vec<((Lane, u32), Measured)> = Vec::new();
    for round in 0..args.rounds {
        for streams in &args.streams {
            for lane in &lanes {
                let own = &std::path::absolute(dir.join(format!("{round}-{streams}-{lane:?}")))?;
                std::fs::create_dir_all(own).with_context(|| format!("making {}", own.display()))?;
                let device = args.device(own, *lane, *streams, round)?;
                let place = Place { dir: own, device: device.as_ref() };
                let outcome =
                    measure(*lane, place, jars.as_deref(), *streams as usize, args.total_mib << 20).await;
                drop(device);
                std::fs::remove_dir_all(own).with_context(|| format!("removing {}", own.display()))?;
                let outcome = outcome.with_context(|| format!("{}, {streams} streams", lane.name()))?;
                found.push(((*lane, *streams), outcome));
            }
        }
    }
    let mut rows = Vec::new();
    for lane in lanes {
        for streams in &args.streams {
            let these =
                || found.iter().filter(|(key, _)| *key == (lane, *streams)).map(|(_, outcome)| outcome);
            rows.push(Row {
                lane: lane.name().into(),
                streams: *streams,
                write: median_of_any(these().map(|outcome| outcome.write)).context("there was a round")?,
                read: median_of_any(these().filter_map(|outcome| outcome.read)),
                extents: median_of_any(these().filter_map(|outcome| outcome.extents)),
                waits_ms: None,
                seeks: [0, 1]
                    .map(|at| {
                        let seeks = these().filter_map(|outcome| Some(outcome.seeks?[at] as f64));
                        median_of_any(seeks).map(|seeks| seeks as u64)
                    })
                    .into_iter()
                    .collect::<Option<Vec<_>>>()
                    .and_then(|seeks| seeks.try_into().ok()),
            });
        }
    }
    Ok(rows)
}

impl Args {
    /// A new disk for this measurement, if it is to seek.
    fn device(&self, dir: &Path, lane: Lane, streams: u32, round: u32) -> anyhow::Result<Option<Device>> {
        let Some(kind) = self.seeking else { return Ok(None) };
        let trace = self.trace.as_ref().map(|name| {
            PathBuf::from(format!("{}-{}-{round}-{streams}-{lane:?}", name.display(), kind.name()))
        });
        let plan = device::Plan {
            kind,
            order: self.order,
            dirty_bytes: self.dirty_mib << 20,
            trace: trace.as_deref(),
        };
        Device::mount(dir, plan).context("making a disk that seeks").map(Some)
    }
}
