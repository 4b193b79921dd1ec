//! `createSnapshot`, `deleteSnapshot`, `renameSnapshot`.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    shell::Shell,
};
use serde_json::json;

/// Make a snapshot of a directory.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// A directory of which snapshots are allowed; see `clover admin allow-snapshot`.
    directory: String,
    /// Made up from the time if not given.
    name: Option<String>,
}

/// Delete a snapshot of a directory.
#[derive(Debug, clap::Args)]
pub struct Delete {
    /// The directory that the snapshot is of.
    directory: String,
    /// The snapshot to delete.
    name: String,
}

/// Give a snapshot of a directory another name.
#[derive(Debug, clap::Args)]
pub struct Rename {
    /// The directory that the snapshot is of.
    directory: String,
    /// What the snapshot is called now.
    old_name: String,
    /// What it shall be called.
    new_name: String,
}

pub async fn create(shell: &mut Shell, args: Create) -> Outcome {
    let root = directory(shell, &args.directory).await?;
    let made = root.fs.create_snapshot(&root.path, args.name.as_deref()).await?;
    if shell.is_json {
        return shell.say(json!({ "path": root.shown, "snapshot": made }).to_string());
    }
    shell.say(format!("Created snapshot {made}"))
}

pub async fn delete(shell: &mut Shell, args: Delete) -> Outcome {
    let root = directory(shell, &args.directory).await?;
    root.fs.delete_snapshot(&root.path, &args.name).await?;
    shell.say(format!("Deleted snapshot {} under {}", args.name, root.shown))
}

pub async fn rename(shell: &mut Shell, args: Rename) -> Outcome {
    let root = directory(shell, &args.directory).await?;
    root.fs.rename_snapshot(&root.path, &args.old_name, &args.new_name).await?;
    shell.say(format!("Renamed snapshot {} to {} under {}", args.old_name, args.new_name, root.shown))
}

async fn directory(shell: &mut Shell, argument: &str) -> Outcome<Item> {
    let item = shell.look_up(argument).await?;
    match item.existing()?.is_dir() {
        true => Ok(item),
        false => Err(Failure::not_directory(&item.shown)),
    }
}
