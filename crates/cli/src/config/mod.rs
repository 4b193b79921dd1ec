//! The configuration of each role: one typed tree, parsed once, passed down as plain structs.

use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("`clover config` is not built yet")
}
