//! The directories that all groups of a namespace have: how changes of them become entries of the directory log, how a new group comes to
//! them, and whether two groups have the same.

use crate::{
    Context, Edit, GroupLevel, Namespace, contents,
    digest::Digester,
    directory_log::DirectoryLog,
    edit_bytes,
    footprint::Marks,
    homes::{contents_of, files_of},
    operation::Operation,
    ops::{
        Body, allow_snapshot,
        ordered::OrderedEdit,
        relay::{self, NotFollowed},
    },
    quota::{Amounts, Quota},
    store::inode::{Inode, SNAPSHOTTABLE},
    tree::Counters,
};
use base::{
    GroupId, InodeId, TxId,
    directory_log::{Dix, Entry, Mark, Point},
};
use bytes::Bytes;
use std::ops::Range;

/// Why a tree cannot be the beginning of another group's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotShared {
    #[error("there are {0} snapshots, which several groups cannot share yet: delete them first")]
    Snapshots(u64),
}

/// Entries of the directory log, and the place before them. `None`: the tree has dropped them.
pub type ReadEntries = Option<(Point, Vec<Entry>)>;

impl Namespace {
    /// The groups that hold a part of the namespace, without the root group.
    pub fn further_groups(&self) -> impl Iterator<Item = GroupId> {
        self.tree.directory_log.groups.iter().copied()
    }

    /// The home of a directory: the group that holds its files. It is asked for directories of this tree.
    pub fn home_of(&self, directory: InodeId) -> GroupId {
        self.tree.directory_log.slots.home_of(directory)
    }

    /// Ranges of slots, rising, and the group that has each. Empty while the root group is the home of all directories.
    pub fn slots(&self) -> Vec<(Range<u16>, GroupId)> {
        self.tree.directory_log.slots.ranges()
    }

    /// Whether other groups hold a part of the namespace as well.
    pub fn is_shared(&self) -> bool {
        !self.tree.directory_log.groups.is_empty()
    }

    /// If this edit has to become an entry of the directory log: its marks there, and its bytes. To be asked in the root group before the edit
    /// is applied. `None`: the edit is no change of directories, or no other group is there.
    pub fn as_entry(&self, edit: &Edit) -> Option<(Vec<Mark>, Bytes)> {
        let is_first = matches!(edit.body, Body::AddGroup(_));
        if self.group() != GroupId::ROOT || !(self.is_shared() || is_first) {
            return None;
        }
        edit.body.followed(self)?;
        let mut marks = Vec::new();
        edit.body.mark(&mut Marks::new(self, &mut marks));
        let mut marks: Vec<Mark> = marks.into_iter().map(Mark::from).collect();
        if let Body::MoveFile(moved) = &edit.body {
            // Homes may hold that a directory has no files.
            marks.extend([files_of(moved.source), files_of(moved.destination)]);
        }
        marks.extend(contents::raised_by(self, &edit.body).into_iter().map(contents_of));
        marks.sort_unstable();
        marks.dedup();
        let mut payload = Vec::new();
        edit_bytes::encode_plain(edit, &mut payload);
        Some((marks, payload.into()))
    }

    /// The edit as this entry of the directory log. Every entry up to `visible` is visible, and every group has carried out those up to
    /// `dropped`.
    pub fn ordered(edit: Edit, entry: Entry, visible: Dix, dropped: Dix) -> Edit {
        let Edit { time, origin, dues, body } = edit;
        let dropped = dropped.min(visible);
        Edit {
            time,
            origin,
            dues,
            body: Body::Ordered(OrderedEdit { entry, visible, dropped, change: Box::new(body) }),
        }
    }

    /// The entries behind `after`: as many as fit into `bytes_max`, and one at least. `None`: the tree has dropped them.
    pub fn directory_entries(&self, after: Dix, bytes_max: usize) -> ReadEntries {
        let kept = &self.tree.directory_log.kept;
        let previous = kept.point(after)?;
        let mut bytes = 0;
        let mut entries = Vec::new();
        for entry in kept.after(after) {
            bytes += entry.bytes();
            if bytes > bytes_max && !entries.is_empty() {
                break;
            }
            entries.push(entry.clone());
        }
        Some((previous, entries))
    }

    /// The entries of which the log does not say that they are visible, and the place before them.
    pub fn directory_entries_in_doubt(&self) -> (Point, Vec<Entry>) {
        let kept = &self.tree.directory_log.kept;
        let visible = kept.visible().max(kept.base().dix);
        let base = kept.point(visible).unwrap_or(self.tree.directory_log.end);
        (base, kept.after(base.dix).cloned().collect())
    }

    /// The place behind which the entries of the directory log are kept.
    pub fn kept_directory_entries_from(&self) -> Dix {
        self.tree.directory_log.kept.base().dix
    }

    /// How many entries of the directory log are kept for groups that may lack them, and about how many bytes these take.
    pub fn kept_directory_entries(&self) -> (u64, usize) {
        let kept = &self.tree.directory_log.kept;
        (kept.len(), kept.bytes())
    }

    /// Whether several groups can share this tree.
    ///
    /// # Errors
    /// [`NotShared`] names what they cannot share yet.
    pub fn check_can_be_shared(&self) -> Result<(), NotShared> {
        match self.counts().snapshots {
            0 => Ok(()),
            snapshots => Err(NotShared::Snapshots(snapshots)),
        }
    }

    /// Plans to follow the entry of the directory log that ends at `point`. `entry` is the root group's edit; its time and its
    /// call stay, and what it owed to the root group's snapshots and quotas does not count here.
    ///
    /// # Errors
    /// [`NotFollowed`] if the entry is not the next one, or is no change of directories that this tree has.
    pub fn follow(&self, ctx: &Context<'_>, entry: &Edit, point: Point) -> Result<Edit, NotFollowed> {
        relay::plan(self, ctx, entry, point).map(Edit::from)
    }

    /// The tree with which another group begins, at the place in the directory log to which this tree has come: all directories of this one,
    /// which is the root group's, and no file. Deleted directories, also those that are still being taken apart, are not among them.
    ///
    /// # Errors
    /// [`NotShared`] if this tree has what several groups cannot share yet.
    pub fn for_joining(&self, seed: u64, group: GroupId) -> Result<Self, NotShared> {
        self.check_can_be_shared()?;
        let mut ns = Self::empty(seed);
        ns.tree.counters = Counters { time: self.tree.counters.time, ..Counters::of_group(group) };
        // The new group's log has no entry that raised the level.
        ns.tree.level = GroupLevel { since: TxId::default(), ..self.tree.level.clone() };
        ns.tree.server_orders = self.tree.server_orders.clone();
        let DirectoryLog { end, groups, slots, .. } = &self.tree.directory_log;
        let (groups, slots) = (groups.clone(), slots.clone());
        ns.tree.directory_log = DirectoryLog { end: *end, groups, slots, ..DirectoryLog::default() };
        ns.tree.snapshots.last = self.tree.snapshots.last;
        ns.tree.root = ns.copy_directory(self, self.tree.root, None);
        let mut stack = vec![(self.tree.root, ns.tree.root)];
        while let Some((source, target)) = stack.pop() {
            for child in
                self.tree.children_of(source, 0).filter(|child| self.tree.inode(*child).is_directory())
            {
                stack.push((child, ns.copy_directory(self, child, Some(target))));
            }
        }
        Ok(ns)
    }

    fn copy_directory(&mut self, from: &Self, source: u32, parent: Option<u32>) -> u32 {
        let old = from.tree.inode(source);
        let attributes = self.acquire_attributes(from.tree.attributes_of(source));
        let new = Inode::directory(old.id(), attributes, old.modified());
        let handle = match parent {
            Some(parent) => self.insert_child(parent, new, from.tree.name_of(source)),
            None => self.insert_inode(new, b""),
        };
        if let Some(xattrs) = from.tree.xattrs_of(source) {
            self.set_xattrs(handle, Some(xattrs.clone()));
        }
        if let Some(quota) = from.tree.quotas.get(&old.id()) {
            self.set_quota(handle, Some(Quota { limits: quota.limits, used: Amounts::default() }));
            self.set_share(old.id(), from.tree.shares.get(&old.id()).cloned());
        }
        if old.has(SNAPSHOTTABLE) {
            allow_snapshot::allow(self, old.id());
        }
        handle
    }

    /// A digest of what all groups hold of directories. It is equal in all groups that have come to the same place in the directory log.
    /// Times and numbers of children are not in it: each group has its own. It walks the whole tree, so it is for tests and checks.
    pub fn directories_digest(&self) -> u64 {
        let tree = &self.tree;
        let mut slots = Digester::new(b's');
        tree.directory_log.slots.digest(&mut slots);
        let mut sum = slots.finish();
        let mut stack = vec![tree.root];
        while let Some(handle) = stack.pop() {
            let inode = tree.inode(handle);
            let mut digester = Digester::new(b'd');
            digester.number(inode.id().0);
            digester.number(if handle == tree.root { 0 } else { tree.inode(inode.parent).id().0 });
            digester.bytes(tree.name_of(handle));
            digester.number(tree.attributes.get(inode.attributes).digest);
            digester.number(u64::from(inode.has(SNAPSHOTTABLE)));
            if let Some(xattrs) = tree.xattrs_of(handle) {
                xattrs.digest(&mut digester);
            }
            if let Some(quota) = tree.quotas.get(&inode.id()) {
                quota.limits.numbers().for_each(|limit| digester.number(limit as u64));
                digester.number(tree.shares.get(&inode.id()).map_or(0, |share| share.digest(inode.id())));
            }
            for taken in tree.snapshots.roots.get(&inode.id()).into_iter().flat_map(|root| root.iter()) {
                digester.number(u64::from(taken.id.0));
                digester.bytes(taken.name.as_bytes());
            }
            sum = sum.wrapping_add(digester.finish());
            stack.extend(tree.children_of(handle, 0).filter(|child| tree.inode(*child).is_directory()));
        }
        sum
    }
}
