//! `mkdir`: makes directories.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    path,
    shell::Shell,
};

/// Make directories.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Make the directories above, too, and do not mind one that is there already.
    #[arg(short)]
    parents: bool,
    /// The directories to make.
    #[arg(required = true)]
    paths: Vec<String>,
}

pub async fn run(shell: &mut Shell, args: Args) -> Outcome {
    for item in shell.expand_all(&args.paths).await {
        let outcome = make(&item, args.parents).await;
        shell.check(outcome);
    }
    Ok(())
}

async fn make(item: &Item, parents: bool) -> Outcome {
    match &item.status {
        Some(status) if !status.is_dir() => return Err(Failure::not_directory(&item.shown)),
        Some(_) if parents => return Ok(()),
        Some(_) => return Err(Failure::exists(&item.shown)),
        None => {}
    }
    if !parents
        && let Some(parent) = path::parent(&item.path)
        && !item.fs.exists(parent).await?
    {
        return Err(Failure::not_found(&format!("{}{parent}", item.fs.uri())));
    }
    item.fs.mkdirs(&item.path).await?;
    Ok(())
}
