//! The tree as a snapshot sees it. `None` everywhere means: as it is now.

use super::{AFTER_ALL, BEFORE_ALL, EntryKey, PastInode};
use crate::{
    FileStatus, Namespace, SnapshotId,
    quota::{Amounts, replicated},
    snapshots::Taken,
    store::{attributes::AttributeValues, block_list::Stored, inode::SNAPSHOTTABLE},
    xattr::Xattrs,
};
use base::{InodeId, POLICY_UNSPECIFIED};
use std::{iter::Peekable, sync::Arc};

/// The name under which the snapshots of a directory are found.
pub(crate) const DOT_SNAPSHOT: &str = ".snapshot";

impl Namespace {
    fn record(&self, handle: u32, at: Option<SnapshotId>) -> Option<&Arc<PastInode>> {
        let snapshots = &self.tree.snapshots;
        if snapshots.records.is_empty() {
            return None;
        }
        snapshots.record_at(self.tree.inode(handle).id(), at?)
    }

    /// Whether `.snapshot` below the directory means its snapshots. HDFS's root directory has an empty list of
    /// them even before anybody allowed any.
    pub(crate) fn has_dot_snapshot(&self, handle: u32) -> bool {
        handle == self.tree.root || self.tree.inode(handle).has(SNAPSHOTTABLE)
    }

    pub(crate) fn snapshot_named(&self, root: u32, name: &str) -> Option<&Taken> {
        self.tree.snapshots.roots.get(&self.tree.inode(root).id())?.find(name)
    }

    /// The latest snapshot of a directory.
    pub(crate) fn latest_of(&self, root: u32) -> Option<SnapshotId> {
        self.tree.snapshots.roots.get(&self.tree.inode(root).id())?.latest(BEFORE_ALL, AFTER_ALL)
    }

    pub(crate) fn attributes_at(&self, handle: u32, at: Option<SnapshotId>) -> AttributeValues<'_> {
        self.tree.attributes.values(self.attributes_handle_at(handle, at), &self.tree.strings)
    }

    /// Which combination of attributes the inode has, or had.
    pub(crate) fn attributes_handle_at(&self, handle: u32, at: Option<SnapshotId>) -> u32 {
        match self.record(handle, at) {
            Some(past) => past.attributes,
            None => self.tree.inode(handle).attributes,
        }
    }

    pub(crate) fn xattrs_at(&self, handle: u32, at: Option<SnapshotId>) -> Option<&Arc<Xattrs>> {
        match self.record(handle, at) {
            Some(past) => past.xattrs.as_ref(),
            None => self.tree.xattrs_of(handle),
        }
    }

    pub(crate) fn child_at(&self, directory: u32, name: &[u8], at: Option<SnapshotId>) -> Option<u32> {
        let current = self.tree.child(directory, name);
        let Some(snapshot) = at else {
            return current;
        };
        if let Some(child) = current.filter(|child| self.birth_of(*child) < snapshot) {
            return Some(child);
        }
        let directory = self.tree.inode(directory).id();
        let (low, high): (EntryKey, EntryKey) =
            ((directory, Arc::from(name), snapshot), (directory, Arc::from(name), AFTER_ALL));
        let (_, entry) = self.tree.snapshots.entries.range(low..=high).next()?;
        if entry.born < snapshot { self.handle(entry.inode) } else { None }
    }

    /// The children whose names come after `after` (empty: all), in the order of their names' bytes.
    pub(crate) fn children_at<'ns>(
        &'ns self,
        directory: u32,
        after: &[u8],
        at: Option<SnapshotId>,
    ) -> Children<'ns> {
        let rank = if after.is_empty() { 0 } else { self.tree.rank_after(directory, after) };
        let current: Box<dyn Iterator<Item = u32> + 'ns> = Box::new(self.tree.children_of(directory, rank));
        let id = self.tree.inode(directory).id();
        let has_past = at.is_some() && self.tree.snapshots.has_entries(id);
        let past: PastChildren<'ns> = match at {
            Some(snapshot) if has_past => {
                let first: EntryKey = (id, Arc::from(after), AFTER_ALL);
                let end: EntryKey = (InodeId(id.0 + 1), Arc::from(&b""[..]), SnapshotId(0));
                let entries = self.tree.snapshots.entries.range(first..end);
                let seen = entries.filter(move |(key, entry)| entry.born < snapshot && snapshot <= key.2);
                Box::new(seen.filter_map(|(key, entry)| Some((&*key.1, self.handle(entry.inode)?))))
            }
            _ => Box::new(std::iter::empty()),
        };
        Children { ns: self, at, current: current.peekable(), past: past.peekable() }
    }

    /// The amounts of a file or subtree in a snapshot, as it counts against quotas; zero if it has more inodes than
    /// `limit`.
    pub(crate) fn amounts_at(&self, top: u32, at: SnapshotId, limit: usize) -> Amounts {
        let mut sum = Amounts::default();
        let mut stack = vec![(top, self.tree.policy_of(top))];
        let mut counted = 0;
        while let Some((handle, policy)) = stack.pop() {
            counted += 1;
            if counted > limit {
                return Amounts::default();
            }
            if self.tree.inode(handle).is_file() {
                sum += Amounts::ONE_INODE;
                let replication = self.attributes_at(handle, Some(at)).replication;
                sum += replicated(self.length_at(handle, Some(at)) as i64, replication, policy);
                continue;
            }
            sum += self.directory_amounts();
            let children = self.children_at(handle, b"", Some(at)).map(|(_, child)| child);
            stack.extend(children.map(|child| (child, self.tree.policy_below(child, policy))));
        }
        sum
    }

    /// The limits of a directory.
    pub(crate) fn limits_at(&self, directory: u32, at: Option<SnapshotId>) -> Amounts {
        let inode = self.tree.inode(directory);
        let limits = match self.record(directory, at) {
            Some(past) => past.limits.as_deref().copied(),
            None => {
                let quota = self.tree.quotas.get(&inode.id()).filter(|_| inode.has_quota());
                quota.map(|quota| quota.limits)
            }
        };
        limits.unwrap_or(Amounts::default_limits(inode.id() == InodeId::ROOT))
    }

    /// Whether a snapshot was made of this very directory.
    pub(crate) fn is_top_of(&self, handle: u32, at: Option<SnapshotId>) -> bool {
        let root = self.tree.snapshots.roots.get(&self.tree.inode(handle).id());
        at.is_some_and(|at| root.is_some_and(|root| root.get(at).is_some()))
    }

    /// The storage policy that HDFS tells of something in a snapshot: that which holds now, but that the top of the
    /// snapshot keeps its own.
    pub(crate) fn policy_at(&self, handle: u32, at: Option<SnapshotId>) -> u8 {
        if self.is_top_of(handle, at) {
            let own = self.attributes_at(handle, at).storage_policy;
            if own != POLICY_UNSPECIFIED {
                return own;
            }
        }
        self.policy_in_force(handle)
    }

    pub(crate) fn length_at(&self, file: u32, at: Option<SnapshotId>) -> u64 {
        match self.record(file, at) {
            Some(past) => past.size,
            None if at.is_some() => self.final_length_of(file),
            None => self.tree.length_of(file),
        }
    }

    /// The blocks of a file, as many as hold its length.
    pub(crate) fn blocks_at(&self, file: u32, at: Option<SnapshotId>) -> Vec<Stored> {
        let Some(past) = self.record(file, at) else {
            let blocks = self.tree.blocks_of(file);
            return match at {
                // A block to which its writer has not given a length yet is not in a snapshot.
                Some(_) => blocks.filter(|stored| stored.block.length > 0).collect(),
                None => blocks.collect(),
            };
        };
        let within = |blocks: &mut dyn Iterator<Item = Stored>| {
            let mut offset = 0;
            blocks
                .take_while(|stored| {
                    let begins = offset;
                    offset += stored.block.length;
                    begins < past.size
                })
                .collect()
        };
        match &past.blocks {
            Some(blocks) => within(&mut blocks.iter().copied()),
            None => within(&mut self.tree.blocks_of(file)),
        }
    }

    /// `name`: how the snapshot calls it.
    pub(crate) fn status_at<'ns>(
        &'ns self,
        handle: u32,
        name: &'ns [u8],
        at: Option<SnapshotId>,
    ) -> FileStatus<'ns> {
        if at.is_none() {
            return FileStatus { name, ..self.tree.status(handle) };
        }
        self.status_in(handle, name, at, self.policy_at(handle, at))
    }

    /// The status like [`Self::status_at`], with a storage policy that the caller knows already.
    pub(crate) fn status_in<'ns>(
        &'ns self,
        handle: u32,
        name: &'ns [u8],
        at: Option<SnapshotId>,
        storage_policy: u8,
    ) -> FileStatus<'ns> {
        let mut status = FileStatus { name, ..self.tree.status_under(handle, storage_policy) };
        if at.is_none() {
            return status;
        }
        status.under_construction = false;
        status.snapshottable = false;
        if !status.is_directory() {
            status.length = self.final_length_of(handle);
        }
        if let Some(past) = self.record(handle, at) {
            let attributes = self.attributes_at(handle, at);
            status.permission = attributes.mode;
            status.owner = attributes.owner;
            status.group = attributes.group;
            status.replication = attributes.replication;
            status.block_size = attributes.block_size;
            status.has_acl = attributes.acl.is_some();
            status.modified = past.modified;
            status.accessed = past.accessed;
            if status.is_directory() {
                status.children_count = past.size as u32;
            } else {
                status.length = past.size;
            }
        }
        let root = self.tree.snapshots.roots.get(&status.id);
        if let Some(taken) = root.and_then(|root| root.get(at?)) {
            status.modified = taken.modified;
        }
        status
    }
}

/// The children of a directory by name, current and past ones merged.
pub(crate) struct Children<'ns> {
    ns: &'ns Namespace,
    at: Option<SnapshotId>,
    current: Peekable<Box<dyn Iterator<Item = u32> + 'ns>>,
    past: Peekable<PastChildren<'ns>>,
}

type PastChildren<'ns> = Box<dyn Iterator<Item = (&'ns [u8], u32)> + 'ns>;

impl<'ns> Iterator for Children<'ns> {
    type Item = (&'ns [u8], u32);

    fn next(&mut self) -> Option<Self::Item> {
        let ns = self.ns;
        if let Some(snapshot) = self.at {
            while self.current.next_if(|child| ns.birth_of(*child) >= snapshot).is_some() {}
        }
        let current = self.current.peek().map(|child| (ns.tree.name_of(*child), *child));
        match (current, self.past.peek().copied()) {
            (Some(current), Some(past)) if past.0 < current.0 => self.past.next(),
            (None, Some(_)) => self.past.next(),
            (current, _) => {
                self.current.next();
                current
            }
        }
    }
}
