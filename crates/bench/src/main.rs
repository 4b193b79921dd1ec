//! `clover-bench`: measures a cluster, or a part of Clover. One file a bench.
//!
//! `clover bench …` runs this program, so people type one command; servers need neither load generators nor plots.

mod all;
mod allocator;
mod ceilings;
mod directory;
mod disks;
mod failover;
mod image;
mod launch;
mod load;
mod lone;
mod memory;
mod meta;
mod nn_throughput;
mod null_server;
mod read;
mod renew;
mod reports;
mod rounds;
mod tree;

use anyhow::Context;
use clap::Parser;
use std::{path::PathBuf, process::ExitCode};

#[global_allocator]
static ALLOCATOR: allocator::Counted = allocator::Counted;

/// Measure a cluster, or a part of Clover.
#[derive(Debug, Parser)]
#[command(name = "clover bench", bin_name = "clover bench", version, max_term_width = 110)]
struct Args {
    /// What to log, as `info`, `debug` or `rpc=debug,warn`; the environment variable CLOVER_LOG says the same.
    #[arg(long, global = true, value_name = "FILTER", help_heading = cli::EVERYWHERE)]
    log: Option<String>,
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, clap::Subcommand)]
enum Bench {
    /// Metadata operations over Hadoop's RPC against any NameNode, or against groups that are launched for it.
    #[command(after_help = meta::EXAMPLES)]
    Meta(meta::Args),
    /// Everything that stands beside Hadoop's, one after the other, with a report.
    #[command(after_help = all::EXAMPLES)]
    All(all::Args),
    /// A server that answers every call with nothing: the ceiling for the bench of metadata.
    NullServer(null_server::Args),
    /// What this machine can do: sockets and disk, without a server.
    Ceilings(ceilings::Args),
    /// Hadoop's own load generator on Clover's metadata server and on Hadoop's NameNode.
    NnThroughput(nn_throughput::Args),
    /// Bytes of memory that a file costs.
    Memory(memory::Args),
    /// Streams on one disk, with and without turns: this disk, beside Hadoop if you like, and a model of one that seeks.
    #[command(after_help = disks::EXAMPLES)]
    Disks(disks::Args),
    /// Full block reports, and what clients feel meanwhile; beside Hadoop's NameNode if you like.
    #[command(after_help = reports::EXAMPLES)]
    Reports(reports::Args),
    /// How fast a client of a data server's machine reads, by each way that there is.
    #[command(after_help = read::EXAMPLES)]
    Read(read::Args),
    /// How long clients wait when the active of a group is lost.
    Failover(failover::Args),
    /// How a member with an empty disk is renewed under load.
    Renew(renew::Args),
    /// Fills a new metadata directory with files.
    Image(image::Args),
    /// The native client at work until standard input ends, and what it was told.
    Load(load::Args),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = cli::log::start(args.log.as_deref(), "warn").and_then(|()| run(args.bench));
    done.unwrap_or_else(|error| {
        eprintln!("clover bench: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(bench: Bench) -> anyhow::Result<ExitCode> {
    match bench {
        Bench::Meta(args) => meta::run(args),
        Bench::All(args) => all::run(args),
        Bench::Ceilings(args) => ceilings::run(args),
        Bench::NnThroughput(args) => nn_throughput::run(args),
        Bench::NullServer(args) => null_server::run(args),
        Bench::Memory(args) => memory::run(args),
        Bench::Disks(args) => disks::run(args),
        Bench::Read(args) => read::run(args),
        Bench::Failover(args) => failover::run(args),
        Bench::Reports(args) => reports::run(args),
        Bench::Renew(args) => renew::run(args),
        Bench::Image(args) => image::run(args),
        Bench::Load(args) => load::run(args),
    }
}

/// The program of the servers that are measured: the one that stands beside this one.
fn clover() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("finding this program")?.with_file_name("clover");
    anyhow::ensure!(
        program.exists(),
        "{} is not there: clover and clover-bench belong into one directory",
        program.display()
    );
    Ok(program)
}

/// The machine's monotonic clock, the same for all processes.
fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A page of a server's status port.
async fn http_get(address: &str, path: &str) -> anyhow::Result<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut connection = tokio::net::TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    Ok(answer)
}
