//! A frozen tree as values, for formats that are not this crate's.
//!
//! A [`Tour`] stops once at each inode that is in the tree, or that a living snapshot sees. A [`Stop`] tells the inode as it is, the
//! entries of a directory, and how it differed in the past. The past is told as HDFS keeps it: a *difference* belongs to a snapshot, and says
//! what came into a directory and what was taken out of it after that snapshot and before the next difference. Snapshots that were deleted, and what
//! only they saw, are left out.
//!
//! A tour keeps the handles of snapshottable directories, of directories with past entries, and of subtrees that only snapshots see. Its memory does not
//! grow with the rest of the tree.

mod past;

pub use past::{DirectoryDiff, FileDiff};

use crate::{
    Amounts, FrozenTree, SnapshotId,
    acl::AclEntry,
    snapshots::{BEFORE_ALL, EntryKey, PastEntry, Taken},
    store::{
        attributes::AttributeValues,
        inode::{NAMED, SNAPSHOTTABLE},
    },
    tree::Tree,
    xattr::{Xattr, Xattrs},
};
use base::{Block, BlockId, GenerationStamp, InodeId, Timestamp, TxId};
use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    io,
};

/// The tree is a part of a namespace only: other groups hold most of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the namespace is held by several groups, and each of them knows its own files alone")]
pub struct SeveralGroups;

/// A walk over all inodes. See the module's first lines.
pub struct Tour<'t> {
    tree: &'t Tree,
    /// The handles of the snapshottable directories, and of those that have past entries.
    directories: BTreeMap<InodeId, u32>,
    /// The tops of the subtrees that are in no directory and that living snapshots see.
    kept: Vec<u32>,
    inodes: u64,
}

/// Numbers of the whole tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// The last edit that the tree contains.
    pub applied: TxId,
    /// The number of stops.
    pub inodes: u64,
    pub last_inode: InodeId,
    pub last_block: BlockId,
    pub last_stamp: GenerationStamp,
    /// The highest number that a snapshot ever had; 0 before the first.
    pub last_snapshot: SnapshotId,
    /// Living snapshots.
    pub snapshots: u32,
}

/// The attributes of an inode, now or in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State<'a> {
    pub owner: &'a str,
    pub group: &'a str,
    /// Nine permission bits and the sticky bit.
    pub mode: u16,
    /// 0 for directories, as are the next two.
    pub replication: u16,
    /// In bytes.
    pub block_size: u64,
    pub accessed: Timestamp,
    pub modified: Timestamp,
    /// The inode's own; 0 if it has none.
    pub storage_policy: u8,
    /// The entries that the mode does not tell.
    pub acl: &'a [AclEntry],
    pub xattrs: &'a [Xattr],
    /// The limits of a directory.
    pub limits: Amounts,
}

/// A snapshot of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<'a> {
    pub id: SnapshotId,
    pub name: &'a str,
    /// The directory as it was, with the time at which the snapshot was made or renamed.
    pub state: State<'a>,
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link<'a> {
    /// The only entry that names the inode.
    Only(InodeId),
    /// The inode's present entry, or its last one: snapshots see it by others as well.
    Latest {
        inode: InodeId,
        /// The latest snapshot of this directory in which the entry is not yet.
        since: Option<SnapshotId>,
    },
    /// An entry out of which the inode was moved.
    Former {
        inode: InodeId,
        name: &'a [u8],
        /// The last snapshot that sees the entry.
        last: SnapshotId,
    },
}

/// One inode of a tour.
#[derive(Clone, Copy)]
pub struct Stop<'a> {
    tour: &'a Tour<'a>,
    handle: u32,
}

impl FrozenTree {
    /// Prepares a tour. It walks over the tree once, and over what only snapshots see once more.
    ///
    /// # Errors
    /// [`SeveralGroups`]: the tree is not a whole namespace.
    pub fn tour(&self) -> Result<Tour<'_>, SeveralGroups> {
        let tree = self.tree();
        if !tree.directory_log.is_unused() || !tree.exports.is_empty() {
            return Err(SeveralGroups);
        }
        let snapshots = &tree.snapshots;
        let wanted: BTreeSet<InodeId> =
            snapshots.entries.iter().map(|((directory, ..), _)| *directory).collect();
        let mut tour = Tour { tree, directories: BTreeMap::new(), kept: Vec::new(), inodes: 0 };
        let loose = snapshots.kept.iter().map(|(_, handle)| *handle).chain(tree.orphans.iter().copied());
        let loose: Vec<u32> = loose.collect();
        let mut inodes = 0;
        for top in loose.iter().copied().chain([tree.root]) {
            each_below(tree, top, &mut |handle| {
                let inode = tree.inode(handle);
                inodes += u64::from(top == tree.root);
                if inode.is_directory() && (inode.has(SNAPSHOTTABLE) || wanted.contains(&inode.id())) {
                    tour.directories.insert(inode.id(), handle);
                }
                Ok::<_, Infallible>(true)
            })
            .unwrap_or_else(|never| match never {});
        }
        // A subtree that is being taken apart may have something in it that was moved there and that snapshots still see.
        let mut kept = Vec::new();
        for top in loose {
            each_below(tree, top, &mut |handle| {
                let inode = tree.inode(handle);
                let is_seen = inode.has(NAMED) && !tour.names(inode.id()).is_empty();
                if is_seen {
                    kept.push(handle);
                }
                Ok::<_, Infallible>(!is_seen)
            })
            .unwrap_or_else(|never| match never {});
        }
        tour.kept = kept;
        for top in tour.kept.iter().copied() {
            each_below(tree, top, &mut |_| {
                inodes += 1;
                Ok::<_, Infallible>(true)
            })
            .unwrap_or_else(|never| match never {});
        }
        tour.inodes = inodes;
        Ok(tour)
    }
}

/// Visits an inode and all that is below it now, each directory before its children, which come in the order of their names. `visit` answers
/// whether those are to be visited.
fn each_below<E>(tree: &Tree, top: u32, visit: &mut dyn FnMut(u32) -> Result<bool, E>) -> Result<(), E> {
    let mut stack = Vec::new();
    let mut next = Some(top);
    loop {
        if let Some(handle) = next
            && visit(handle)?
            && tree.inode(handle).children_count() > 0
        {
            stack.push(tree.children_of(handle, 0));
        }
        let Some(children) = stack.last_mut() else { return Ok(()) };
        next = children.next();
        if next.is_none() {
            stack.pop();
        }
    }
}

/// A past entry that a living snapshot sees.
struct Name<'a> {
    key: &'a EntryKey,
    entry: &'a PastEntry,
    /// The latest living snapshot of the directory that does not see it yet.
    born: SnapshotId,
    /// The latest living snapshot that sees it.
    died: SnapshotId,
}

impl<'t> Tour<'t> {
    pub fn figures(&self) -> Figures {
        let counters = &self.tree.counters;
        Figures {
            applied: counters.applied,
            inodes: self.inodes,
            last_inode: counters.last_inode,
            last_block: counters.last_block,
            last_stamp: counters.last_stamp,
            last_snapshot: self.tree.snapshots.last,
            snapshots: self.tree.snapshots.living,
        }
    }

    fn tops(&self) -> impl Iterator<Item = u32> {
        [self.tree.root].into_iter().chain(self.kept.iter().copied())
    }

    /// Stops at the root and at all that is below it, then at what only snapshots see.
    ///
    /// # Errors
    /// The error of `visit`, which ends the tour.
    pub fn each(&self, visit: &mut dyn FnMut(Stop<'_>) -> io::Result<()>) -> io::Result<()> {
        for top in self.tops() {
            each_below(self.tree, top, &mut |handle| visit(Stop { tour: self, handle }).map(|()| true))?;
        }
        Ok(())
    }

    /// Whether there are living snapshots.
    pub fn has_past(&self) -> bool {
        self.tree.snapshots.living > 0
    }

    /// The snapshottable directories with their snapshots, in the order of ids.
    pub fn snapshottable(&self) -> impl Iterator<Item = (InodeId, Vec<Snapshot<'_>>)> {
        self.tree.snapshots.roots.iter().filter_map(|(root, taken)| {
            let handle = *self.directories.get(root)?;
            Some((*root, taken.iter().map(|taken| self.snapshot(handle, taken)).collect()))
        })
    }

    fn snapshot<'a>(&'a self, root: u32, taken: &'a Taken) -> Snapshot<'a> {
        let stop = Stop { tour: self, handle: root };
        let past = self.tree.snapshots.record_at(self.tree.inode(root).id(), taken.id);
        let state = past.map_or_else(|| stop.state(), |past| stop.state_of(past));
        Snapshot { id: taken.id, name: &taken.name, state: State { modified: taken.modified, ..state } }
    }

    fn latest_seeing(&self, handle: u32, high: SnapshotId) -> Option<SnapshotId> {
        let find = |directory| self.directories.get(&directory).copied();
        self.tree.latest_seeing(handle, BEFORE_ALL, high, find)
    }

    fn name<'a>(&'a self, key: &'a EntryKey, entry: &'a PastEntry) -> Option<Name<'a>> {
        let directory = *self.directories.get(&key.0)?;
        let died = self.latest_seeing(directory, key.2)?;
        let born = self.latest_seeing(directory, entry.born).unwrap_or(BEFORE_ALL);
        (born < died).then_some(Name { key, entry, born, died })
    }

    /// The past entries of an inode that living snapshots see, in the order in which it left them.
    fn names(&self, inode: InodeId) -> Vec<Name<'_>> {
        let snapshots = &self.tree.snapshots;
        let keys = snapshots.named.get(&inode).into_iter().flat_map(|keys| keys.iter());
        let mut names: Vec<Name<'_>> =
            keys.filter_map(|key| self.name(key, snapshots.entries.get(key)?)).collect();
        names.sort_by_key(|name| name.key.2);
        names
    }

    /// The present entry of an inode.
    fn link_of(&self, child: u32) -> Link<'_> {
        let inode = self.tree.inode(child);
        if !inode.has(NAMED) || self.names(inode.id()).is_empty() {
            return Link::Only(inode.id());
        }
        let since = self.latest_seeing(inode.parent, self.tree.birth_of(child));
        Link::Latest { inode: inode.id(), since }
    }

    fn past_link<'a>(&'a self, name: &Name<'a>) -> Link<'a> {
        let inode = name.entry.inode;
        if let Some(kept) = self.tree.snapshots.kept.get(&inode) {
            let names = self.names(inode);
            let is_last = names.last().is_some_and(|last| last.key == name.key);
            let was_moved = name.entry.charged.is_some() || *name.key.1 != *self.tree.name_of(*kept);
            if is_last && !was_moved {
                let since = Some(name.born).filter(|born| *born > BEFORE_ALL);
                return if names.len() == 1 { Link::Only(inode) } else { Link::Latest { inode, since } };
            }
        }
        Link::Former { inode, name: &name.key.1, last: name.died }
    }
}

impl<'a> Stop<'a> {
    pub fn id(&self) -> InodeId {
        self.tour.tree.inode(self.handle).id()
    }

    /// Empty for the root.
    pub fn name(&self) -> &'a [u8] {
        self.tour.tree.name_of(self.handle)
    }

    pub fn is_directory(&self) -> bool {
        self.tour.tree.inode(self.handle).is_directory()
    }

    /// The attributes of now.
    pub fn state(&self) -> State<'a> {
        let tree = self.tour.tree;
        let inode = tree.inode(self.handle);
        let limits = tree.quotas.get(&inode.id()).filter(|_| inode.has_quota()).map(|quota| quota.limits);
        self.state_with(
            tree.attributes_of(self.handle),
            (inode.modified(), inode.accessed()),
            tree.xattrs_of(self.handle).map(|xattrs| &**xattrs),
            limits,
        )
    }

    fn state_with(
        &self,
        attributes: AttributeValues<'a>,
        (modified, accessed): (Timestamp, Timestamp),
        xattrs: Option<&'a Xattrs>,
        limits: Option<Amounts>,
    ) -> State<'a> {
        State {
            owner: attributes.owner,
            group: attributes.group,
            mode: attributes.mode,
            replication: attributes.replication,
            block_size: attributes.block_size,
            accessed,
            modified,
            storage_policy: attributes.storage_policy,
            acl: attributes.acl.map_or(&[], |acl| acl.entries()),
            xattrs: xattrs.map_or(&[], Xattrs::all),
            limits: limits.unwrap_or(Amounts::default_limits(self.id() == InodeId::ROOT)),
        }
    }

    /// The blocks of a file. While the last one is being written, its length is what is known of it.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + 'a {
        let tree = self.tour.tree;
        let is_file = tree.inode(self.handle).is_file();
        let blocks = is_file.then(|| tree.blocks_of(self.handle)).into_iter().flatten();
        blocks.map(|stored| stored.block)
    }

    /// The lease holder of an open file, and the machine that it writes from.
    pub fn writer(&self) -> Option<(&'a str, &'a str)> {
        let tree = self.tour.tree;
        if tree.inode(self.handle).is_directory() { None } else { tree.writer_of(self.handle) }
    }

    /// `None`: it is in no directory any more.
    pub fn path(&self) -> Option<String> {
        let tree = self.tour.tree;
        tree.is_attached(self.handle).then(|| tree.path_of(self.handle))
    }

    /// The present entries of a directory with their names, in the order of these names' bytes.
    pub fn children(&self) -> impl Iterator<Item = (&'a [u8], Link<'a>)> + 'a {
        let tour = self.tour;
        let is_directory = self.is_directory();
        let children = is_directory.then(|| tour.tree.children_of(self.handle, 0)).into_iter().flatten();
        children.map(move |child| (tour.tree.name_of(child), tour.link_of(child)))
    }

    /// The name of the inode in a snapshot that sees it.
    fn name_at(&self, snapshot: SnapshotId) -> &'a [u8] {
        let tour = self.tour;
        if !tour.tree.inode(self.handle).has(NAMED) {
            return self.name();
        }
        let names = tour.names(self.id());
        let seen = names.iter().find(|name| name.born < snapshot && snapshot <= name.died);
        seen.map_or(self.name(), |name| &name.key.1)
    }

    /// The latest living snapshot that sees the inode and is no later.
    fn seen_until(&self, high: SnapshotId) -> Option<SnapshotId> {
        self.tour.latest_seeing(self.handle, high)
    }
}
