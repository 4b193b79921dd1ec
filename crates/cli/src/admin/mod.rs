//! What an operator asks of the metadata servers, and orders them to do.

mod group;
pub mod servers;

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
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let servers = Servers::find(&args.target)?;
    runtime::block_on(async move {
        match args.command {
            Command::Group(args) => group::run(&servers, args).await,
        }
    })
}
