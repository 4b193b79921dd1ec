//! The differences below a directory from one snapshot to another, or to now.
//!
//! The directory is walked as the earlier snapshot shows it, in the order of names, the way HDFS's
//! `DirectorySnapshottableFeature` walks it: a directory that was taken away is not entered, unless it was moved to
//! another place below. A walk can stop anywhere and go on from the path where it did.

use super::{AFTER_ALL, BEFORE_ALL};
use crate::{
    Namespace, SnapshotId,
    store::{NONE, inode::NAMED},
};
use base::InodeId;
use std::sync::Arc;

/// A change. Paths are relative to the directory that was asked about: paths of old entries in its earlier state,
/// paths of new entries in its later state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffEntry {
    /// The directory whose children changed; of what was modified, the inode itself.
    pub directory: InodeId,
    pub inode: InodeId,
    pub path: Vec<u8>,
    /// A flag that Hadoop's clients expect. It is set for a modified directory, for a created entry whose inode was
    /// elsewhere before, and for a deleted entry whose inode is elsewhere now.
    pub is_reference: bool,
    /// The present path of an inode that was deleted from its former place.
    pub target: Option<Vec<u8>>,
}

/// The place where a diff is to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffCursor {
    /// The path of the inode to go on with.
    pub path: Vec<u8>,
    /// How many of its created and then deleted children were told; -1: nothing of it.
    pub index: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffPage {
    pub modified: Vec<DiffEntry>,
    pub created: Vec<DiffEntry>,
    pub deleted: Vec<DiffEntry>,
    pub next: Option<DiffCursor>,
}

impl DiffPage {
    pub(crate) fn len(&self) -> usize {
        self.modified.len() + self.created.len() + self.deleted.len()
    }

    /// Adds what follows on this page.
    pub(crate) fn append(&mut self, rest: Self) {
        let Self { modified, created, deleted, next } = rest;
        self.modified.extend(modified);
        self.created.extend(created);
        self.deleted.extend(deleted);
        self.next = next;
    }
}

/// How much one page may hold and look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub entries: usize,
    pub inodes: usize,
}

pub(crate) struct Diff<'ns> {
    pub ns: &'ns Namespace,
    /// The directory that is asked about.
    pub scope: u32,
    pub earlier: SnapshotId,
    /// `None`: now.
    pub later: Option<SnapshotId>,
    pub budget: Budget,
    pub page: DiffPage,
}

/// A name and the inode that has it.
type Child = (Vec<u8>, u32);

/// A directory that is being walked, and the name of the child that was entered last.
struct Frame {
    directory: u32,
    entered: Vec<u8>,
}

/// The page is full, or was looked at for long enough.
struct Pause;

impl Diff<'_> {
    /// Fills the page from the cursor on.
    pub fn run(&mut self, start: &DiffCursor) {
        let mut frames = vec![Frame { directory: self.scope, entered: Vec::new() }];
        let begun = if start.path.is_empty() {
            self.visit(self.scope, &[], start.index)
        } else {
            self.resume(start, &mut frames)
        };
        if begun.is_ok() {
            let _ = self.walk(&mut frames);
        }
    }

    /// Goes down to where the last page ended. Names that are no longer there are passed over.
    fn resume(&mut self, start: &DiffCursor, frames: &mut Vec<Frame>) -> Result<(), Pause> {
        let names: Vec<&[u8]> = start.path.split(|byte| *byte == b'/').collect();
        for (depth, name) in names.iter().enumerate() {
            let Some(frame) = frames.last_mut() else { return Ok(()) };
            let directory = frame.directory;
            frame.entered = name.to_vec();
            let Some(child) = self.ns.child_at(directory, name, Some(self.earlier)) else { return Ok(()) };
            if !self.is_entered(directory, name, child) {
                return Ok(());
            }
            if depth + 1 == names.len() {
                self.visit(child, &start.path, start.index)?;
            }
            if self.ns.tree.inode(child).is_file() {
                return Ok(());
            }
            frames.push(Frame { directory: child, entered: Vec::new() });
        }
        Ok(())
    }

    fn walk(&mut self, frames: &mut Vec<Frame>) -> Result<(), Pause> {
        let ns = self.ns;
        while let Some(frame) = frames.last() {
            let directory = frame.directory;
            let mut descended = false;
            for (name, child) in ns.children_at(directory, &frame.entered, Some(self.earlier)) {
                if !self.is_entered(directory, name, child) {
                    continue;
                }
                let path = path_below(frames, name);
                self.visit(child, &path, -1)?;
                if ns.tree.inode(child).is_directory() {
                    descended = true;
                    let Some(frame) = frames.last_mut() else { break };
                    frame.entered = name.to_vec();
                    frames.push(Frame { directory: child, entered: Vec::new() });
                    break;
                }
            }
            if !descended {
                frames.pop();
            }
        }
        Ok(())
    }

    /// Whether a child that the earlier snapshot shows is still there, or moved to elsewhere below the directory.
    fn is_entered(&self, directory: u32, name: &[u8], child: u32) -> bool {
        self.ns.child_at(directory, name, self.later) == Some(child)
            || self.ns.path_below_at(child, self.scope, self.later).is_some()
    }

    fn visit(&mut self, handle: u32, path: &[u8], index: i32) -> Result<(), Pause> {
        if self.budget.inodes == 0 {
            self.page.next = Some(DiffCursor { path: path.to_vec(), index });
            return Err(Pause);
        }
        self.budget.inodes -= 1;
        let id = self.ns.tree.inode(handle).id();
        let key = |at| self.ns.record_key_at(id, at);
        if key(Some(self.earlier)) == key(self.later) {
            return Ok(());
        }
        if self.ns.tree.inode(handle).is_directory() {
            return self.visit_directory(handle, path, index);
        }
        let length = |at| self.ns.length_at(handle, at);
        let is_changed =
            length(Some(self.earlier)) != length(self.later) || self.has_other_attributes(handle);
        if is_changed {
            self.push(|page| &mut page.modified, path, -1, entry(id, id, path.to_vec(), false))?;
        }
        Ok(())
    }

    fn has_other_attributes(&self, handle: u32) -> bool {
        let ns = self.ns;
        ns.attributes_handle_at(handle, Some(self.earlier)) != ns.attributes_handle_at(handle, self.later)
            || ns.xattrs_at(handle, Some(self.earlier)) != ns.xattrs_at(handle, self.later)
            || ns.limits_at(handle, Some(self.earlier)) != ns.limits_at(handle, self.later)
    }

    /// Adds an entry, or stops before the one with this index.
    fn push(
        &mut self,
        list: impl FnOnce(&mut DiffPage) -> &mut Vec<DiffEntry>,
        path: &[u8],
        index: i32,
        entry: DiffEntry,
    ) -> Result<(), Pause> {
        if self.page.len() >= self.budget.entries {
            self.page.next = Some(DiffCursor { path: path.to_vec(), index });
            return Err(Pause);
        }
        list(&mut self.page).push(entry);
        Ok(())
    }

    fn visit_directory(&mut self, directory: u32, path: &[u8], index: i32) -> Result<(), Pause> {
        let ns = self.ns;
        let (created, deleted) = self.changed_children(directory);
        self.budget.inodes = self.budget.inodes.saturating_sub(created.len() + deleted.len());
        if created.is_empty() && deleted.is_empty() && !self.has_other_attributes(directory) {
            return Ok(());
        }
        let id = ns.tree.inode(directory).id();
        if index < 0 {
            self.push(|page| &mut page.modified, path, -1, entry(id, id, path.to_vec(), true))?;
        }
        let told = usize::try_from(index).unwrap_or(0);
        let below = |name: &[u8]| join(path, name);
        for (at, (name, child)) in created.iter().enumerate().skip(told) {
            let inode = ns.tree.inode(*child);
            let is_reference = inode.has(NAMED);
            let entry = entry(id, inode.id(), below(name), is_reference);
            self.push(|page| &mut page.created, path, at as i32, entry)?;
        }
        for (at, (name, child)) in deleted.iter().enumerate().skip(told.saturating_sub(created.len())) {
            let target = ns.path_below_at(*child, self.scope, self.later);
            let mut entry = entry(id, ns.tree.inode(*child).id(), below(name), target.is_some());
            entry.target = target;
            self.push(|page| &mut page.deleted, path, (created.len() + at) as i32, entry)?;
        }
        Ok(())
    }

    /// The children that only the later state has, and those that only the earlier one has.
    fn changed_children(&self, directory: u32) -> (Vec<Child>, Vec<Child>) {
        let mut earlier = self.ns.children_at(directory, b"", Some(self.earlier)).peekable();
        let mut later = self.ns.children_at(directory, b"", self.later).peekable();
        let (mut created, mut deleted) = (Vec::new(), Vec::new());
        loop {
            match (earlier.peek().copied(), later.peek().copied()) {
                (None, None) => return (created, deleted),
                (Some(one), Some(two)) if one == two => {
                    // Moved away and back again: HDFS tells that, too.
                    if self.is_another_entry(directory, one) {
                        deleted.push((one.0.to_vec(), one.1));
                        created.push((two.0.to_vec(), two.1));
                    }
                    earlier.next();
                    later.next();
                }
                (Some((name, child)), other) if other.is_none_or(|other| name <= other.0) => {
                    deleted.push((name.to_vec(), child));
                    earlier.next();
                }
                (_, Some((name, child))) => {
                    created.push((name.to_vec(), child));
                    later.next();
                }
                (Some(_), None) => unreachable!("told by the arm before"),
            }
        }
    }
}

impl Diff<'_> {
    /// Whether a child that has the same name as before has left it in between.
    fn is_another_entry(&self, directory: u32, (name, child): (&[u8], u32)) -> bool {
        self.ns.tree.inode(child).has(NAMED)
            && self.ns.born_at(directory, name, child, Some(self.earlier))
                != self.ns.born_at(directory, name, child, self.later)
    }
}

fn entry(directory: InodeId, inode: InodeId, path: Vec<u8>, is_reference: bool) -> DiffEntry {
    DiffEntry { directory, inode, path, is_reference, target: None }
}

fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = path.to_vec();
    if !joined.is_empty() {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

/// The path of a child of the last directory.
fn path_below(frames: &[Frame], name: &[u8]) -> Vec<u8> {
    let above = frames.iter().take(frames.len() - 1);
    let path = above.fold(Vec::new(), |path, frame| join(&path, &frame.entered));
    join(&path, name)
}

impl Namespace {
    /// The key of the record that tells how an inode was at that snapshot; `None` if the inode is unchanged since then.
    fn record_key_at(&self, inode: InodeId, at: Option<SnapshotId>) -> Option<SnapshotId> {
        let snapshots = &self.tree.snapshots;
        let mut records = snapshots.records.range((inode, at?)..=(inode, AFTER_ALL));
        records.next().map(|((_, key), _)| *key)
    }

    /// When the entry came into the directory by which the child is seen there.
    fn born_at(&self, directory: u32, name: &[u8], child: u32, at: Option<SnapshotId>) -> SnapshotId {
        let current = self.birth_of(child);
        let is_current = self.tree.inode(child).parent == directory && self.tree.name_of(child) == name;
        let Some(snapshot) = at.filter(|snapshot| !is_current || current >= *snapshot) else {
            return current;
        };
        let id = self.tree.inode(directory).id();
        let keys = (id, Arc::from(name), snapshot)..=(id, Arc::from(name), AFTER_ALL);
        let entry = self.tree.snapshots.entries.range(keys).next();
        entry.map_or(BEFORE_ALL, |(_, entry)| entry.born)
    }

    /// The directory that an inode is in, and its name there.
    fn place_at(&self, handle: u32, at: Option<SnapshotId>) -> Option<(u32, &[u8])> {
        let inode = self.tree.inode(handle);
        let current = (inode.parent != NONE).then(|| (inode.parent, self.tree.name_of(handle)));
        let Some(snapshot) = at else { return current };
        if current.is_some() && self.birth_of(handle) < snapshot {
            return current;
        }
        let names = self.tree.snapshots.named.get(&inode.id())?;
        let key = names.iter().find(|key| {
            let born = self.tree.snapshots.entries.get(*key).map(|entry| entry.born);
            snapshot <= key.2 && born.is_some_and(|born| born < snapshot)
        })?;
        Some((self.handle(key.0)?, &key.1))
    }

    /// The path of an inode relative to a directory; `None` if it is not below it.
    pub(crate) fn path_below_at(&self, handle: u32, top: u32, at: Option<SnapshotId>) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        let mut handle = handle;
        while handle != top {
            let (parent, name) = self.place_at(handle, at)?;
            names.push(name);
            handle = parent;
            if names.len() > DEPTH_MAX {
                return None;
            }
        }
        names.reverse();
        Some(names.join(&b'/'))
    }

    /// HDFS's `getFullPathName`: of what only snapshots have it is where it was last.
    pub(crate) fn last_path_of(&self, handle: u32) -> String {
        let mut names = Vec::new();
        let mut at = handle;
        while at != self.tree.root && names.len() <= DEPTH_MAX {
            let inode = self.tree.inode(at);
            let place = if inode.parent != NONE {
                Some((inode.parent, self.tree.name_of(at)))
            } else {
                let entries = self.tree.snapshots.named.get(&inode.id());
                let last = entries.and_then(|keys| keys.iter().max_by_key(|key| key.2));
                last.and_then(|key| Some((self.handle(key.0)?, &*key.1)))
            };
            let Some((parent, name)) = place else { break };
            names.push(name);
            at = parent;
        }
        if names.is_empty() {
            return "/".into();
        }
        names.into_iter().rev().fold(String::new(), |path, name| path + "/" + &String::from_utf8_lossy(name))
    }
}

/// Far above what a path may have; it ends the way up in an image that someone made up.
const DEPTH_MAX: usize = 100_000;
