//! What an operator asks of the metadata servers, and orders them to do.

mod group;
pub mod servers;
mod snapshots;

use crate::{runtime, target::Target};
use servers::Servers;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Group(group::Args),
    AllowSnapshot(snapshots::Allow),
    DisallowSnapshot(snapshots::Disallow),
    #[command(name = "ls-snapshottable-dir")]
    Directories(snapshots::Directories),
    #[command(name = "ls-snapshot")]
    Snapshots(snapshots::Snapshots),
    #[command(name = "snapshot-diff")]
    Diff(snapshots::Diff),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let servers = Servers::find(&args.target)?;
    runtime::block_on(async move {
        match args.command {
            Command::Group(args) => group::run(&servers, args).await,
            Command::AllowSnapshot(order) => snapshots::allow(&args.target, order).await,
            Command::DisallowSnapshot(order) => snapshots::disallow(&args.target, order).await,
            Command::Directories(wanted) => snapshots::directories(&args.target, wanted).await,
            Command::Snapshots(wanted) => snapshots::snapshots(&args.target, wanted).await,
            Command::Diff(wanted) => snapshots::diff(&args.target, wanted).await,
        }
    })
}
