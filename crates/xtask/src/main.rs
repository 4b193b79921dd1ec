//! Chores of the repository: checks that no compiler makes.
//!
//! `cargo xtask tidy` holds the workspace against what `ARCHITECTURE.md` and `HACKING.md` promise. It reads
//! files and `cargo metadata`, changes nothing, and knows nothing of what the crates do. Each check is one
//! file under `tidy/`; start with [`tidy`].

mod tidy;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the repository")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Checks dependency walls, loops of files, headers, lengths, words and links.
    Tidy,
    /// Records the files that name each other in a circle, once fewer of them do.
    Loops,
}

fn main() -> Result<ExitCode> {
    let Arguments { chore } = Arguments::parse();
    match chore {
        Chore::Tidy => tidy::run(&root()?),
        Chore::Loops => tidy::record_loops(&root()?),
    }
}

/// The workspace's root: two levels above this crate.
fn root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().context("the workspace has moved since xtask was built; build it again")
}
