//! Writes what a stock Hadoop client needs to find a cluster.

use std::{path::PathBuf, process::ExitCode};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The directory to write core-site.xml and hdfs-site.xml into; it is made if missing.
    dir: PathBuf,
    /// The file system that `fs.defaultFS` will name.
    #[arg(long, value_name = "URI", default_value = "hdfs://127.0.0.1:8020")]
    target: String,
    /// Overwrite files that are already there.
    #[arg(long)]
    force: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("`clover client-config {}` is not built yet", args.dir.display())
}
