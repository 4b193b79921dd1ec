//! Directories: names as programs see them, and as they are on the medium.

use super::Loss;
use crate::dice::Dice;
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    File(u64),
    Directory,
}

type Entries = BTreeMap<PathBuf, Node>;

/// Full paths, without the root. Directories are durable as soon as they are made; names of files are not.
#[derive(Default)]
pub struct Names {
    live: Entries,
    durable: Entries,
    pending: Vec<Change>,
}

enum Change {
    Insert(PathBuf, Node),
    Remove(PathBuf),
    /// The node goes along: a rename that reached the medium names its file, whatever became of the old name.
    Rename(PathBuf, PathBuf, Node),
}

impl Change {
    fn is_in(&self, directory: &Path) -> bool {
        let parents = match self {
            Change::Insert(path, _) | Change::Remove(path) => [path.parent(), None],
            Change::Rename(from, to, _) => [from.parent(), to.parent()],
        };
        parents.contains(&Some(directory))
    }

    /// The name that is given or taken.
    fn name(&self) -> &Path {
        match self {
            Change::Insert(path, _) | Change::Remove(path) | Change::Rename(_, path, _) => path,
        }
    }

    fn apply(&self, entries: &mut Entries) {
        match self {
            Change::Insert(path, node) => {
                entries.insert(path.clone(), *node);
            }
            Change::Remove(path) => {
                entries.remove(path);
            }
            Change::Rename(from, to, node) => {
                if entries.get(from) == Some(node) {
                    entries.remove(from);
                }
                entries.insert(to.clone(), *node);
            }
        }
    }
}

impl Names {
    pub fn create_directory(&mut self, path: &Path) {
        for above in path.ancestors().filter(|above| above.parent().is_some()) {
            for entries in [&mut self.live, &mut self.durable] {
                entries.entry(above.to_owned()).or_insert(Node::Directory);
            }
        }
    }

    pub fn exists(&self, path: &Path) -> bool {
        path.parent().is_none() || self.live.contains_key(path)
    }

    pub fn is_directory(&self, path: &Path) -> bool {
        path.parent().is_none() || self.live.get(path) == Some(&Node::Directory)
    }

    pub fn file(&self, path: &Path) -> io::Result<u64> {
        match self.live.get(path) {
            Some(Node::File(file)) => Ok(*file),
            Some(Node::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub fn insert(&mut self, path: &Path, node: Node) -> io::Result<()> {
        if !path.parent().is_some_and(|parent| self.is_directory(parent)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(Change::Insert(path.to_owned(), node));
        Ok(())
    }

    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.file(path)?;
        self.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    pub fn remove_tree(&mut self, path: &Path) -> io::Result<()> {
        if !self.is_directory(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let below: Vec<_> = self.live.keys().filter(|below| below.starts_with(path)).cloned().collect();
        below.into_iter().rev().for_each(|path| self.change(Change::Remove(path)));
        Ok(())
    }

    /// Renames files only: no store renames a directory so far.
    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = Node::File(self.file(from)?);
        if !to.parent().is_some_and(|parent| self.is_directory(parent)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.change(Change::Rename(from.to_owned(), to.to_owned(), node));
        Ok(())
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    pub fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        if !self.is_directory(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let names = self.live.keys().filter(|below| below.parent() == Some(path));
        Ok(names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    pub fn sync(&mut self, directory: &Path) -> io::Result<()> {
        if !self.is_directory(directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // From the newest to the oldest: a rename that goes to the medium takes along what gave its file the
        // old name, in whichever directory, or that name would come back with that directory's next sync.
        let (mut now, mut later) = (Vec::new(), Vec::new());
        let mut old_names = BTreeSet::new();
        for change in std::mem::take(&mut self.pending).into_iter().rev() {
            if change.is_in(directory) || old_names.contains(change.name()) {
                if let Change::Rename(from, ..) = &change {
                    old_names.insert(from.clone());
                }
                now.push(change);
            } else {
                later.push(change);
            }
        }
        later.reverse();
        self.pending = later;
        now.iter().rev().for_each(|change| change.apply(&mut self.durable));
        Ok(())
    }

    pub fn sync_all(&mut self) {
        self.pending.clear();
        self.durable = self.live.clone();
    }

    pub fn crash(&mut self, loss: Loss, dice: &mut Dice) {
        if loss == Loss::ProcessOnly {
            return;
        }
        for change in self.pending.drain(..) {
            let stays = match loss {
                Loss::All | Loss::ProcessOnly => false,
                Loss::Nothing => true,
                Loss::Random => dice.chance(50),
            };
            if stays {
                change.apply(&mut self.durable);
            }
        }
        self.live = self.durable.clone();
    }

    /// The files that have a name, or may have one again after a loss of power.
    pub fn files(&self) -> BTreeSet<u64> {
        let nodes = self.live.values().chain(self.durable.values());
        let renamed = self.pending.iter().filter_map(|change| match change {
            Change::Insert(_, node) | Change::Rename(_, _, node) => Some(node),
            Change::Remove(_) => None,
        });
        nodes
            .chain(renamed)
            .filter_map(|node| if let Node::File(file) = node { Some(*file) } else { None })
            .collect()
    }

    pub fn walk(&self) -> Vec<(PathBuf, u64)> {
        self.live
            .iter()
            .filter_map(|(path, node)| match node {
                Node::File(file) => Some((path.clone(), *file)),
                Node::Directory => None,
            })
            .collect()
    }

    pub fn directories(&self) -> Vec<PathBuf> {
        self.live.iter().filter(|(_, node)| **node == Node::Directory).map(|(path, _)| path.clone()).collect()
    }
}
