//! Walks through a tree, each directory before what is in it.

use super::{
    failure::{Failure, Outcome},
    item::Item,
    shell::Shell,
};
use client::Listing;

/// Yields an item and, if it is a directory, everything below. One page a level is in memory.
pub struct Walk {
    /// The item that comes next, before the listings go on.
    next: Option<Item>,
    open: Vec<(Item, Listing)>,
}

impl Walk {
    pub fn new(item: Item) -> Self {
        Self { next: Some(item), open: Vec::new() }
    }

    /// The next item, or nothing at the end. After a failure the walk goes on beside what failed.
    pub async fn next(&mut self) -> Option<Outcome<Item>> {
        if let Some(item) = self.next.take() {
            self.enter(&item);
            return Some(Ok(item));
        }
        while let Some((directory, listing)) = self.open.last_mut() {
            match listing.next().await {
                Ok(Some(status)) => {
                    let item = directory.child(status);
                    self.enter(&item);
                    return Some(Ok(item));
                }
                Ok(None) => drop(self.open.pop()),
                Err(error) => {
                    self.open.pop();
                    return Some(Err(error.into()));
                }
            }
        }
        None
    }

    fn enter(&mut self, item: &Item) {
        if item.is_dir() {
            self.open.push((item.clone(), item.fs.list(&item.path)));
        }
    }
}

/// Does something to an item, and to everything below it if asked; what fails is told, and the walk goes on.
pub async fn each(
    shell: &mut Shell,
    item: Item,
    recursive: bool,
    mut act: impl AsyncFnMut(&mut Shell, &Item) -> Outcome,
) {
    let existing = item.existing().map(drop);
    if shell.check(existing).is_none() {
        return;
    }
    let mut walk = Walk::new(item);
    while let Some(item) = walk.next().await {
        if let Some(item) = shell.check(item) {
            let outcome = act(shell, &item).await;
            shell.check(outcome);
        }
        if !recursive {
            return;
        }
    }
}

/// The only path of a command that takes one; refuses none and several with Hadoop's texts.
pub fn only_path(paths: &[String]) -> Outcome {
    match paths {
        [_] => Ok(()),
        [] => Err(Failure::Usage("<path> is missing".into())),
        _ => Err(Failure::Usage("Too many arguments".into())),
    }
}
