//! `clover fsck`: looks at every file below a path, and tells which have lost blocks, or have too few replicas.
//!
//! The files are found and judged by [`gateway::fsck`], as those of the stock `hdfs fsck` are; the words are Clover's own here.
//!
//! It asks what every client may ask: listings with the locations of blocks. So it works against HDFS as well, sees only
//! what its user may read, and costs the metadata server a listing for each directory.

mod show;

use crate::{runtime, target::Target};
use anyhow::Context;
use client::FileSystem;
use gateway::fsck::{
    sums::{Cluster, File, Sums},
    walk::{Step, Walk},
};
use std::{
    collections::{BTreeSet, HashSet},
    io::IsTerminal,
    process::ExitCode,
    time::{Duration, Instant},
};

/// The words are those of `hdfs fsck`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Look at this file, or at all files below this directory.
    #[arg(default_value = "/")]
    path: String,
    /// Tell every file, not only those with a fault.
    #[arg(long)]
    files: bool,
    /// Tell the blocks of each file that is told.
    #[arg(long)]
    blocks: bool,
    /// Tell where each block is.
    #[arg(long)]
    locations: bool,
    /// Tell the racks of these places as well.
    #[arg(long)]
    racks: bool,
    /// Look at files that are being written as well.
    #[arg(long, alias = "openforwrite")]
    open_for_write: bool,
    /// Print JSON: a line for each file that is told, and the sums last.
    #[arg(long)]
    json: bool,
}

const WORD_PERIOD: Duration = Duration::from_secs(1);

/// Ends with 0 if no file has lost a block, else with 1.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    runtime::block_on(async {
        let config = args.target.configuration()?;
        let fs = FileSystem::connect(&args.target.uri(&config), &config)?;
        check(&fs, &args).await
    })
}

async fn check(fs: &FileSystem, args: &Args) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    // Only a superuser is told of the data servers.
    let racks = match fs.data_servers().await {
        Ok(servers) => {
            let live = servers.into_iter().filter(|server| server.is_alive);
            Some(live.map(|server| server.rack).collect::<BTreeSet<_>>().len())
        }
        Err(_) => None,
    };
    let root = fs.status(&args.path).await?;
    let cluster = Cluster { racks, min_replication: 1 };
    let mut sums = Sums::default();
    let mut said = Progress::new();
    let mut walk = Walk::new(fs.clone(), &root, HashSet::new());
    while let Some(step) =
        walk.next().await.with_context(|| format!("not everything below {} can be listed", root.path))?
    {
        match step {
            Step::Look => {}
            Step::Directory(_) => sums.directories += 1,
            Step::Symlink(_) => sums.symlinks += 1,
            Step::File(found) => {
                let (status, located) = *found;
                let file = File::from_wire(&status.path, status.length, status.replication, &located);
                match file.is_open && !args.open_for_write {
                    true => sums.skip(&file),
                    false => {
                        sums.add(&file, &cluster);
                        show::file(args, &file, racks);
                    }
                }
            }
        }
        said.tell(&sums);
    }
    said.end();
    show::sums(args, &sums, racks, begun.elapsed());
    Ok(if sums.is_healthy() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The word on the terminal of a person who waits.
struct Progress {
    is_shown: bool,
    last: Instant,
    has_spoken: bool,
}

impl Progress {
    fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), last: Instant::now(), has_spoken: false }
    }

    fn tell(&mut self, sums: &Sums) {
        if self.is_shown && self.last.elapsed() >= WORD_PERIOD {
            eprint!(
                "\r{} files, {} directories, {} files with losses",
                sums.files, sums.directories, sums.corrupt_files
            );
            (self.last, self.has_spoken) = (Instant::now(), true);
        }
    }

    fn end(&self) {
        if self.has_spoken {
            eprintln!();
        }
    }
}
