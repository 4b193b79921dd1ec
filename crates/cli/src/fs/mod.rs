//! Hadoop's file-system shell. One file a command.

pub mod spelling;
pub mod usage;

use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("`clover fs` is not built yet")
}
