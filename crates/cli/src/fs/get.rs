//! `get` and `copyToLocal`: from the file system to this machine.

use super::{
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
    /// What to copy, and last where to; the current directory if not given.
    #[arg(required = true)]
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, mut args: Args) -> Outcome {
    let written = match args.paths.len() {
        1 => ".".to_owned(),
        _ => args.paths.pop().unwrap_or_default(),
    };
    let destination = local::path_of(&written)?;
    let sources = shell.expand_all(&args.paths).await;
    if sources.is_empty() {
        return Ok(());
    }
    check(&written, &destination, sources.len(), args.options.force)?;
    // As for a destination that is there: a name that can only mean a directory stands for one.
    let is_directory = destination.is_dir() || written.ends_with('/');
    let mut get = Get { transfer: Transfer::new(&args.options), args, after: Vec::new() };
    for source in sources {
        let target = match is_directory {
            true => destination.join(path::name(&source.path)),
            false => destination.clone(),
        };
        get.copy(shell, source, target).await;
    }
    get.transfer.finish(shell).await;
    // Directories last, the deepest first: what is put into them changes their times.
    while let Some((target, status)) = get.after.pop() {
        let outcome = local::preserve_locally(&target, &status);
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
    /// Directories whose times and modes are set at the end.
    after: Vec<(PathBuf, FileStatus)>,
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
                if self.args.preserve {
                    self.after.push((target, status));
                }
            }
        }
    }

    async fn start(&mut self, shell: &mut Shell, source: Item, status: FileStatus, target: PathBuf) {
        if target.symlink_metadata().is_ok() && (target.is_dir() || !self.args.options.force) {
            return shell.fail(&Failure::exists(&target.display().to_string()));
        }
        let progress = self.transfer.expect(status.length);
        let (options, preserve) = (self.args.options.clone(), self.args.preserve);
        let copy = async move {
            download(&source.fs, &source.path, &target, &options, &progress).await?;
            match preserve {
                true => local::preserve_locally(&target, &status),
                false => Ok(()),
            }
        };
        self.transfer.start(shell, copy).await;
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
