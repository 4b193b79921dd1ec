//! `mv`: renames, or moves into a directory.

use super::{
    destination::{Destination, check_not_within},
    failure::{Failure, Outcome},
    item::Item,
    path,
    shell::Shell,
};

/// Move files and directories within the file system.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to move, and last where to.
    #[arg(required = true, num_args = 2..)]
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, mut args: Args) -> Outcome {
    let destination = Destination::take(shell, &mut args.paths).await?;
    let sources = shell.expand_all(&args.paths).await;
    if sources.is_empty() {
        return Ok(());
    }
    destination.accepts(sources.len(), false).await?;
    for source in sources {
        let outcome = rename(&source, &destination).await;
        shell.check(outcome);
    }
    Ok(())
}

async fn rename(source: &Item, destination: &Destination) -> Outcome {
    source.existing()?;
    let target = destination.target(path::name(&source.path)).await?;
    if source.fs.uri() != target.fs.uri() {
        return Err(Failure::path(&source.shown, "Does not match target filesystem"));
    }
    check_not_within(source, &target)?;
    if target.exists() {
        return Err(Failure::exists(&target.shown));
    }
    source.fs.rename(&source.path, &target.path, false).await?;
    Ok(())
}
