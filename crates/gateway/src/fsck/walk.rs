//! All files below a path, in the order of names, each directory before its entries.

use client::{Error, FileKind, FileStatus, FileSystem, Listing, Result};
use proto::hdfs::LocatedBlocksProto;
use std::collections::HashSet;

/// The directory of a directory's snapshots.
const SNAPSHOTS: &str = ".snapshot";
/// Directories on the way down whose pages are kept in memory. Pages above are fetched again on the way back.
const PAGES_MAX: usize = 8;

/// A thing that a walk comes to.
#[derive(Debug)]
pub enum Step {
    /// The next thing is looked at. A directory's snapshots come between this and the directory itself.
    Look,
    Directory(String),
    Symlink(String),
    File(Box<(FileStatus, LocatedBlocksProto)>),
}

/// A walk over everything below a path. It holds a few pages of listings, whatever the size of the tree.
pub struct Walk {
    fs: FileSystem,
    root: String,
    /// The steps that the walk has still to take. The last one is taken next.
    tasks: Vec<Task>,
    /// Directories whose snapshots are walked over as well.
    snapshottable: HashSet<String>,
}

enum Task {
    Enter(String),
    Tell(Step),
    Open(String),
    Read(Box<Listing>),
}

impl Walk {
    /// `root`: the thing at which the walk begins. `snapshottable`: directories whose snapshots are walked over as well.
    pub fn new(fs: FileSystem, root: &FileStatus, snapshottable: HashSet<String>) -> Self {
        let first = match root.kind {
            FileKind::Directory => Task::Enter(root.path.clone()),
            // It is the only entry of its own listing.
            FileKind::File | FileKind::Symlink => Task::Read(Box::new(fs.list_located(&root.path))),
        };
        Self { fs, root: root.path.clone(), tasks: vec![first], snapshottable }
    }

    /// The next step; `None` at the end. Directories that are deleted meanwhile are passed over.
    ///
    /// # Errors
    /// A directory may not be listed by this user; or a call fails: see [`FileSystem::call`].
    pub async fn next(&mut self) -> Result<Option<Step>> {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Tell(step) => return Ok(Some(step)),
                Task::Enter(path) => {
                    self.tasks.push(Task::Open(path.clone()));
                    if self.snapshottable.contains(&path) {
                        let slash = if path.ends_with('/') { "" } else { "/" };
                        self.tasks.push(Task::Enter(format!("{path}{slash}{SNAPSHOTS}")));
                    }
                    return Ok(Some(Step::Look));
                }
                Task::Open(path) => {
                    self.put_aside();
                    self.tasks.push(Task::Read(Box::new(self.fs.list_located(&path))));
                    return Ok(Some(Step::Directory(path)));
                }
                Task::Read(listing) => {
                    if let Some(step) = self.read(listing).await? {
                        return Ok(Some(step));
                    }
                }
            }
        }
        Ok(None)
    }

    async fn read(&mut self, mut listing: Box<Listing>) -> Result<Option<Step>> {
        let entry = match listing.next_located().await {
            // It was deleted meanwhile.
            Err(Error::Fs(base::FsError::NotFound(_))) if listing.path() != self.root => None,
            entry => entry?,
        };
        let Some((status, located)) = entry else { return Ok(None) };
        self.tasks.push(Task::Read(listing));
        let step = match status.kind {
            FileKind::Directory => {
                self.tasks.push(Task::Enter(status.path));
                return Ok(None);
            }
            FileKind::Symlink => Step::Symlink(status.path),
            FileKind::File => Step::File(Box::new((status, located.unwrap_or_default()))),
        };
        self.tasks.push(Task::Tell(step));
        Ok(Some(Step::Look))
    }

    /// Gives back the memory of the page that is furthest away.
    fn put_aside(&mut self) {
        let mut open = self.tasks.iter_mut().rev().filter_map(|task| match task {
            Task::Read(listing) => Some(listing),
            _ => None,
        });
        if let Some(listing) = open.nth(PAGES_MAX - 1) {
            listing.put_aside();
        }
    }
}
