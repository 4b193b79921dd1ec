//! Measures a cluster, or a part of this program. One file a bench.

mod failover;
mod image;
mod launch;
mod load;
mod memory;
mod meta;
mod null_server;
mod renew;
mod tree;

use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, clap::Subcommand)]
enum Bench {
    /// Metadata operations over Hadoop's RPC against any NameNode.
    Meta(meta::Args),
    /// A server that answers every call with nothing: the ceiling for the bench of metadata.
    NullServer(null_server::Args),
    /// Bytes of memory that a file costs.
    Memory(memory::Args),
    /// How long clients wait when the active of a group is lost.
    Failover(failover::Args),
    /// How a member with an empty disk is renewed under load.
    Renew(renew::Args),
    /// Fills a new metadata directory with files.
    Image(image::Args),
    /// The native client at work until standard input ends, and what it was told.
    Load(load::Args),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.bench {
        Bench::Meta(args) => meta::run(args),
        Bench::NullServer(args) => null_server::run(args),
        Bench::Memory(args) => memory::run(args),
        Bench::Failover(args) => failover::run(args),
        Bench::Renew(args) => renew::run(args),
        Bench::Image(args) => image::run(args),
        Bench::Load(args) => load::run(args),
    }
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
