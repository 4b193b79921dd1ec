//! Measures a cluster, or a part of this program. One file a bench.

mod launch;
mod memory;
mod meta;
mod null_server;

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
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.bench {
        Bench::Meta(args) => meta::run(args),
        Bench::NullServer(args) => null_server::run(args),
        Bench::Memory(args) => memory::run(args),
    }
}
