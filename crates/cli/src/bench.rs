//! `clover bench`: a program of its own, so that a server carries neither load generators nor plots.

use anyhow::{Context, bail};
use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

const PROGRAM: &str = "clover-bench";

#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// The bench and its options; `clover bench --help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Becomes `clover-bench`: its output and its exit code are those of this command. `log` is the filter that was given.
pub fn run(args: Args, log: Option<&str>) -> anyhow::Result<ExitCode> {
    let own = std::env::current_exe().context("finding this program")?;
    let search = std::env::var_os("PATH").unwrap_or_default();
    let Some(program) = find(&own, std::env::split_paths(&search)) else {
        bail!(
            "the measurements are a program of their own, {PROGRAM}, which is neither beside {} nor on the PATH. It is \
             built with this one: `make build`, or `cargo install --path crates/bench`",
            own.display()
        );
    };
    let mut command = Command::new(&program);
    command.args(args.arguments);
    if let Some(log) = log {
        command.env("CLOVER_LOG", log);
    }
    Err(command.exec()).with_context(|| format!("starting {}", program.display()))
}

/// Beside this program first: that one is of the same release.
fn find(own: &Path, search: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let beside = own.with_file_name(PROGRAM);
    std::iter::once(beside).chain(search.map(|directory| directory.join(PROGRAM))).find(|path| path.is_file())
}
