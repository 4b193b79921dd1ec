//! `rm` and `rmdir`: deletes, into the trash where there is one.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    shell::Shell,
};
use client::{FileSystem, NotTrashed};
use std::io::{BufRead, Write};

/// Delete files, and with -r directories.
#[derive(Debug, clap::Args)]
pub struct Rm {
    /// Do not complain about files that do not exist.
    #[arg(short)]
    force: bool,
    /// Delete directories with everything in them.
    #[arg(short = 'r', short_alias = 'R')]
    recursive: bool,
    /// Delete at once, even where there is a trash.
    #[arg(long)]
    skip_trash: bool,
    /// Ask before a directory with more than hadoop.shell.delete.limit.num.files (100) files is deleted.
    #[arg(long)]
    safely: bool,
    /// What to delete.
    #[arg(required = true)]
    paths: Vec<String>,
}

/// Delete empty directories.
#[derive(Debug, clap::Args)]
pub struct Rmdir {
    /// Leave directories that are not empty, without a word.
    #[arg(long)]
    ignore_fail_on_non_empty: bool,
    /// The directories to delete.
    #[arg(required = true)]
    paths: Vec<String>,
}

pub async fn rm(shell: &mut Shell, args: Rm) -> Outcome {
    let mut items = Vec::new();
    for argument in &args.paths {
        match shell.expand_glob(argument).await {
            Ok(expanded) if expanded.is_empty() && !args.force => shell.fail(&Failure::not_found(argument)),
            Ok(expanded) => items.extend(expanded),
            Err(failure) => shell.fail(&failure),
        }
    }
    for item in items.iter().filter(|item| item.exists() || !args.force) {
        let outcome = remove(shell, &args, item).await;
        shell.check(outcome);
    }
    Ok(())
}

async fn remove(shell: &mut Shell, args: &Rm, item: &Item) -> Outcome {
    if item.existing()?.is_dir() && !args.recursive {
        return Err(Failure::is_directory(&item.shown));
    }
    if !args.skip_trash && move_to_trash(shell, item).await? {
        return Ok(());
    }
    if args.safely && !may_delete(shell, item).await? {
        return Ok(());
    }
    match item.fs.delete(&item.path, args.recursive).await? {
        true => shell.say(format!("Deleted {}", item.shown)),
        false => Err(Failure::unexplained(&item.shown)),
    }
}

async fn may_delete(shell: &mut Shell, item: &Item) -> Outcome<bool> {
    let limit = shell.config().get("hadoop.shell.delete.limit.num.files");
    let limit: u64 = limit.and_then(|text| text.trim().parse().ok()).unwrap_or(100);
    let files = item.fs.content_summary(&item.path).await?.files;
    if limit == 0 || files <= limit {
        return Ok(true);
    }
    shell.flush()?;
    eprint!("Proceed deleting {files} files? (Y or N) ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::local("standard input", error))?;
    let is_yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !is_yes {
        eprintln!("Delete aborted at user request.");
    }
    Ok(is_yes)
}

/// Moves what is to be deleted into the user's trash; false where there is none, or it lies there already.
async fn move_to_trash(shell: &mut Shell, item: &Item) -> Outcome<bool> {
    if !has_trash(shell, &item.fs).await? {
        return Ok(false);
    }
    match client::move_to_trash(&item.fs, &item.path).await {
        Ok(place) => {
            eprintln!("Moved: '{}' to trash at: {}{place}", item.uri(), item.fs.uri());
            Ok(true)
        }
        Err(NotTrashed::IsThere) => Ok(false),
        Err(NotTrashed::HoldsTrash) => {
            let reason = "holds the trash and cannot be moved there. Consider using -skipTrash option";
            Err(Failure::path(&item.shown, reason))
        }
        Err(NotTrashed::Failed(error)) => Err(error.into()),
    }
}

async fn has_trash(shell: &Shell, fs: &FileSystem) -> Outcome<bool> {
    // The server's word counts where it has one.
    if fs.defaults().await?.trash_interval_min > 0 {
        return Ok(true);
    }
    let interval = shell.config().get("fs.trash.interval");
    Ok(interval.and_then(|text| text.trim().parse::<f64>().ok()).is_some_and(|minutes| minutes > 0.0))
}

pub async fn rmdir(shell: &mut Shell, args: Rmdir) -> Outcome {
    for item in shell.expand_all(&args.paths).await {
        let outcome = remove_directory(&item, args.ignore_fail_on_non_empty).await;
        shell.check(outcome);
    }
    Ok(())
}

async fn remove_directory(item: &Item, ignore_non_empty: bool) -> Outcome {
    if !item.existing()?.is_dir() {
        return Err(Failure::not_directory(&item.shown));
    }
    if item.fs.list(&item.path).next().await?.is_some() {
        return match ignore_non_empty {
            true => Ok(()),
            false => Err(Failure::path(&item.shown, "Directory is not empty")),
        };
    }
    match item.fs.delete(&item.path, false).await? {
        true => Ok(()),
        false => Err(Failure::unexplained(&item.shown)),
    }
}
