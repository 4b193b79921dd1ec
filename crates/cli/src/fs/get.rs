//! `get`, `copyToLocal` and `moveToLocal`: from the file system to this machine.

use super::{
    cat,
    failure::{Failure, Outcome},
    item::Item,
    local, path,
    shell::Shell,
    transfer::{Options, Transfer, download},
};
use client::FileStatus;
use std::path::{Path, PathBuf};

/// Copy files and directories to this machine.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// Keep times, owner, group and mode.
    #[arg(short = 'p')]
    preserve: bool,
    /// Accepted for scripts; what is read is always verified.
    #[arg(long)]
    ignore_crc: bool,
    /// Accepted for scripts; no .crc files are written.
    #[arg(long)]
    crc: bool,
    /// What to copy, and last where to: `-` for the standard output, the current directory if not given.
    #[arg(required = true)]
    paths: Vec<String>,
}

impl Args {
    /// `cp` to this machine.
    pub fn of_copy(options: Options, preserve: bool, paths: Vec<String>) -> Self {
        Self { options, preserve, ignore_crc: false, crc: false, paths }
    }
}

pub async fn get(shell: &mut Shell, args: Args) -> Outcome {
    run(shell, args, false).await
}

pub async fn move_to_local(shell: &mut Shell, args: Args) -> Outcome {
    run(shell, args, true).await
}

async fn run(shell: &mut Shell, mut args: Args, is_move: bool) -> Outcome {
    let written = match args.paths.len() {
        1 => ".".to_owned(),
        _ => args.paths.pop().unwrap_or_default(),
    };
    if written == "-" && !is_move {
        let paths = args.paths;
        return cat::cat(shell, cat::Cat { ignore_crc: args.ignore_crc, paths }).await;
    }
    let destination = local::path_of(&written)?;
    let sources = shell.expand_all(&args.paths).await;
    if sources.is_empty() {
        return Ok(());
    }
    check(&written, &destination, sources.len(), args.options.force)?;
    // A name that can only mean a directory stands for one, as for a destination that is there.
    let is_directory = destination.is_dir() || written.ends_with('/');
    let mut get = Get { transfer: Transfer::new(&args.options), args, after: Vec::new(), is_move };
    for source in sources {
        let target = match is_directory {
            true => destination.join(path::name(&source.path)),
            false => destination.clone(),
        };
        get.copy(shell, source, target).await;
    }
    get.transfer.finish(shell).await;
    // Directories last, the deepest first: what is put into them changes their times.
    while let Some(after) = get.after.pop() {
        let outcome = get.settle_directory(after).await;
        shell.check(outcome);
    }
    Ok(())
}

/// Several sources need a directory; a single one a directory, a free name, or leave to overwrite.
fn check(written: &str, destination: &Path, sources: usize, force: bool) -> Outcome {
    match destination.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) if sources > 1 => Err(Failure::not_directory(written)),
        Ok(_) if force => Ok(()),
        Ok(metadata) if !metadata.is_file() => Ok(()),
        Ok(_) => Err(Failure::exists(written)),
        Err(_) if sources > 1 => Err(Failure::not_found(written)),
        Err(_) => match destination.parent() {
            Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
                Err(Failure::not_found(written))
            }
            _ => Ok(()),
        },
    }
}

struct Get {
    args: Args,
    transfer: Transfer,
    /// Directories that are settled at the end.
    after: Vec<After>,
    is_move: bool,
}

/// The work that follows a directory's copy.
struct After {
    source: Item,
    status: FileStatus,
    target: PathBuf,
}

impl Get {
    async fn copy(&mut self, shell: &mut Shell, source: Item, target: PathBuf) {
        let mut waiting = vec![(source, target)];
        while let Some((source, target)) = waiting.pop() {
            let existing = source.existing().cloned();
            let Some(status) = shell.check(existing) else { continue };
            if !status.is_dir() {
                self.start(shell, source, status, target).await;
                continue;
            }
            let below = enter(&source, &target).await;
            if let Some(below) = shell.check(below) {
                waiting.extend(below.into_iter().rev());
                self.after.push(After { source, status, target });
            }
        }
    }

    async fn start(&mut self, shell: &mut Shell, source: Item, status: FileStatus, target: PathBuf) {
        // A device or a pipe is written to: it holds nothing that could be lost.
        let is_taken =
            target.symlink_metadata().is_ok() && (target.is_dir() || target.is_file() || !target.exists());
        if is_taken && (target.is_dir() || !self.args.options.force) {
            return shell.fail(&Failure::exists(&target.display().to_string()));
        }
        let progress = self.transfer.expect(status.length);
        let (options, preserve, is_move) = (self.args.options.clone(), self.args.preserve, self.is_move);
        let copy = async move {
            download(&source.fs, &source.path, &target, &options, &progress).await?;
            // A device keeps its own mode.
            if preserve && target.is_file() {
                local::preserve_locally(&target, &status)?;
            }
            if is_move {
                delete(&source).await?;
            }
            Ok(())
        };
        self.transfer.start(shell, copy).await;
    }

    async fn settle_directory(&self, after: After) -> Outcome {
        if self.args.preserve {
            local::preserve_locally(&after.target, &after.status)?;
        }
        if self.is_move {
            delete(&after.source).await?;
        }
        Ok(())
    }
}

/// Deletes a file that was copied, or a directory that is empty by now.
async fn delete(source: &Item) -> Outcome {
    match source.fs.delete(&source.path, false).await? {
        true => Ok(()),
        false => Err(Failure::not_found(&source.shown)),
    }
}

/// Makes a local directory and says what is to be copied into it.
async fn enter(source: &Item, target: &Path) -> Outcome<Vec<(Item, PathBuf)>> {
    match target.metadata() {
        Ok(metadata) if !metadata.is_dir() => {
            return Err(Failure::not_directory(&target.display().to_string()));
        }
        Ok(_) => {}
        Err(_) => std::fs::create_dir_all(target).map_err(|error| Failure::local(target, error))?,
    }
    let below = |child: Item| {
        let target = target.join(path::name(&child.path));
        (child, target)
    };
    Ok(source.children().await?.into_iter().map(below).collect())
}
