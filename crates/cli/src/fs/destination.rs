//! The destination of `put`, `cp` and `mv`.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    shell::Shell,
};

/// The last argument of a command that copies or moves within or into the file system.
pub struct Destination {
    pub item: Item,
}

impl Destination {
    /// Takes the last of the arguments; alone, it is the source, and the home directory is meant.
    pub async fn take(shell: &mut Shell, arguments: &mut Vec<String>) -> Outcome<Self> {
        let written = match arguments.len() {
            0 | 1 => ".".to_owned(),
            _ => arguments.pop().unwrap_or_default(),
        };
        let mut items = shell.expand(&written).await?;
        match (items.pop(), items.is_empty()) {
            (Some(item), true) => Ok(Self { item }),
            _ => Err(Failure::path(&written, "Too many matches")),
        }
    }

    /// Several sources need a directory; a single one a directory, a name that is free, or leave to overwrite.
    pub async fn accepts(&self, sources: usize, overwrite: bool) -> Outcome {
        let item = &self.item;
        if sources > 1 {
            return match item.existing()? {
                status if status.is_dir() => Ok(()),
                _ => Err(Failure::not_directory(&item.shown)),
            };
        }
        match &item.status {
            Some(status) if !status.is_dir() && !overwrite => Err(Failure::exists(&item.shown)),
            Some(_) => Ok(()),
            None if item.parent_exists().await? => Ok(()),
            None => Err(Failure::not_found_in_full(&item.shown, &item.uri())),
        }
    }

    /// The target of a source with this name: an entry of the directory, or the destination itself.
    pub async fn target(&self, name: &str) -> Outcome<Item> {
        if !self.item.is_dir() && !self.item.is_directory_like {
            return Ok(self.item.clone());
        }
        let mut target = self.item.child_named(name);
        target.refresh().await?;
        Ok(target)
    }
}

/// Refuses to copy or move a directory onto or into itself.
pub fn check_not_within(source: &Item, target: &Item) -> Outcome {
    if !source.is_dir() || source.fs.uri() != target.fs.uri() {
        return Ok(());
    }
    let refuse = |target: &str, reason: &str| Failure::Path {
        operation: None,
        path: source.shown.clone(),
        target: Some(target.to_owned()),
        reason: reason.to_owned(),
    };
    if source.path == target.path {
        return Err(refuse(&target.uri(), "are identical"));
    }
    let below = if source.path == "/" { "/".to_owned() } else { format!("{}/", source.path) };
    match target.path.starts_with(&below) {
        true => Err(refuse(&target.shown, "is a subdirectory of itself")),
        false => Ok(()),
    }
}
