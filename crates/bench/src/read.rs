//! `clover bench read`: how fast one client of a data server's machine reads a file, and what that costs, by each of the ways
//! that there are: through the network, through the domain socket, and from files that the server hands over.

use crate::{meta::cpu::Process, rounds};
use anyhow::{Context, ensure};
use cli::{runtime, target::Target};
use client::{Config, CreateOptions, FileSystem};
use std::{
    net::SocketAddr,
    process::ExitCode,
    time::{Duration, Instant},
};

pub const EXAMPLES: &str = "\
Examples:
  clover bench read --fs hdfs://127.0.0.1:8020 --socket /run/clover/data._PORT --mib 1024 --rounds 5

The file stays in the system's memory after it is written, if there is room: this compares ways, not disks.";

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// The path of the data server's socket (`domain_socket_path`).
    #[arg(long, value_name = "PATH")]
    socket: String,
    /// The transfer port of the data server, whose processor time is counted.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9866")]
    data_server: SocketAddr,
    /// The file that is written, read and removed.
    #[arg(long, value_name = "PATH", default_value = "/clover-bench-read")]
    path: String,
    /// How long the file is.
    #[arg(long, value_name = "MIB", default_value_t = 512)]
    mib: u64,
    /// How often each way is taken, all in turn.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    rounds: usize,
}

/// A way to read, by the properties that make a client take it.
struct Way {
    name: &'static str,
    properties: &'static [(&'static str, &'static str)],
    /// Whether the bytes come from files.
    is_by_files: bool,
}

const WAYS: [Way; 4] = [
    Way { name: "network", properties: &[], is_by_files: false },
    Way {
        name: "socket",
        properties: &[("dfs.client.domain.socket.data.traffic", "true")],
        is_by_files: false,
    },
    Way { name: "files", properties: &[("dfs.client.read.shortcircuit", "true")], is_by_files: true },
    Way {
        name: "files-unchecked",
        properties: &[
            ("dfs.client.read.shortcircuit", "true"),
            ("dfs.client.read.shortcircuit.skip.checksum", "true"),
        ],
        is_by_files: true,
    },
];

/// One reading of the whole file.
struct Sample {
    took: Duration,
    client: Duration,
    server: Option<Duration>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let config = args.target.configuration()?;
    let uri = args.target.uri(&config);
    runtime::block_on(async move {
        let fs = FileSystem::connect(&uri, &config)?;
        write(&fs, &args).await?;
        let mut samples: Vec<Vec<Sample>> = WAYS.iter().map(|_| Vec::new()).collect();
        for _ in 0..args.rounds {
            for (way, samples) in WAYS.iter().zip(&mut samples) {
                samples.push(read(&uri, &config, way, &args).await?);
            }
        }
        fs.delete(&args.path, false).await?;
        for (way, samples) in WAYS.iter().zip(samples) {
            report(way, samples, args.mib);
        }
        anyhow::Ok(ExitCode::SUCCESS)
    })
}

async fn write(fs: &FileSystem, args: &Args) -> anyhow::Result<()> {
    let options = CreateOptions { overwrite: true, replication: Some(1), ..CreateOptions::default() };
    let mut file = fs.create(&args.path, &options).await?;
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut piece = vec![0; 1 << 20];
    piece.chunks_exact_mut(8).for_each(|word| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    });
    for _ in 0..args.mib {
        file.write(&piece).await?;
    }
    file.close().await?;
    Ok(())
}

async fn read(uri: &str, config: &Config, way: &Way, args: &Args) -> anyhow::Result<Sample> {
    let mut config = config.clone();
    for (key, value) in [("dfs.client.read.shortcircuit", "false"), ("dfs.domain.socket.path", &args.socket)]
        .iter()
        .chain(way.properties)
    {
        config.set(key, value);
    }
    let fs = FileSystem::connect(uri, &config)?;
    let server = Process::listening_on(args.data_server);
    let spent = || (Process::this().time(), server.as_ref().and_then(Process::time));
    let (client_before, server_before) = spent();
    let began = Instant::now();
    let mut file = fs.open(&args.path).await?;
    let mut count = 0;
    while let Some(bytes) = file.read(1 << 20).await? {
        count += bytes.len() as u64;
    }
    let took = began.elapsed();
    let (client, server) = spent();
    ensure!(count == args.mib << 20, "{} has {count} bytes", args.path);
    let by_files = fs.local_reads().map_or(0, |local| local.bytes_read());
    let wanted = if way.is_by_files { count } else { 0 };
    ensure!(by_files == wanted, "{}: {by_files} of {count} bytes came from files", way.name);
    let since = |now: Option<Duration>, before: Option<Duration>| Some(now?.saturating_sub(before?));
    let client = since(client, client_before).context("this process has no account in /proc")?;
    Ok(Sample { took, client, server: since(server, server_before) })
}

/// Medians of all rounds.
fn report(way: &Way, samples: Vec<Sample>, mib: u64) {
    let median = |of: &dyn Fn(&Sample) -> Option<f64>| rounds::median_of_any(samples.iter().filter_map(of));
    let gib = mib as f64 / 1024.0;
    let speed = median(&|sample| Some(mib as f64 / sample.took.as_secs_f64())).unwrap_or_default();
    let client = median(&|sample| Some(sample.client.as_secs_f64() / gib)).unwrap_or_default();
    let server = median(&|sample| sample.server.map(|spent| spent.as_secs_f64() / gib));
    let server = server.map_or("unknown".to_owned(), |server| format!("{server:.2}"));
    println!(
        "{:<16} {speed:>8.0} MiB/s   CPU seconds a GiB: client {client:.2}, data server {server}",
        way.name
    );
}
