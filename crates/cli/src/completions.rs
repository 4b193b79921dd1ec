//! Prints shell completions.

use crate::Cli;
use clap::CommandFactory;
use clap_complete::Shell;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell that will read them, as in `source <(clover completions bash)`.
    shell: Shell,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    clap_complete::generate(args.shell, &mut Cli::command(), "clover", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}
