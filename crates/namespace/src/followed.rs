//! The directories that all groups of a namespace have: how a new group comes to them, and whether two groups have the same.

use crate::{
    Context, Edit, Namespace,
    digest::Digester,
    ops::{
        allow_snapshot,
        relay::{self, NotFollowed},
    },
    store::inode::{Inode, SNAPSHOTTABLE},
    tree::Counters,
};
use base::{GroupId, directory_log::Point};

/// Why a tree cannot be the beginning of another group's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotShared {
    #[error(
        "{0} directories have a quota, which several groups cannot share yet: take them off with `hdfs dfsadmin -clrQuota` first"
    )]
    Quotas(usize),
    #[error("there are {0} snapshots, which several groups cannot share yet: delete them first")]
    Snapshots(u64),
}

impl Namespace {
    /// Plans to follow the entry of the directory log that ends at `point`. `entry` is the root group's edit; its time and its
    /// call stay, and what it owed to the root group's snapshots and quotas does not count here.
    ///
    /// # Errors
    /// [`NotFollowed`] if the entry is not the next one, or is no change of directories that this tree has.
    pub fn follow(&self, ctx: &Context<'_>, entry: &Edit, point: Point) -> Result<Edit, NotFollowed> {
        relay::plan(self, ctx, entry, point).map(Edit::from)
    }

    /// The tree with which another group begins, when it joins at this place in the directory log: all directories of this one,
    /// which is the root group's, and no file. Deleted directories, also those that are still being taken apart, are not among them.
    ///
    /// # Errors
    /// [`NotShared`] if this tree has what several groups cannot share yet.
    pub fn for_joining(&self, seed: u64, group: GroupId, at: Point) -> Result<Self, NotShared> {
        if !self.tree.quotas.is_empty() {
            return Err(NotShared::Quotas(self.tree.quotas.len()));
        }
        match self.counts().snapshots {
            0 => {}
            snapshots => return Err(NotShared::Snapshots(snapshots)),
        }
        let mut ns = Self::empty(seed);
        ns.tree.counters = Counters { time: self.tree.counters.time, ..Counters::of_group(group) };
        ns.tree.level = self.tree.level.clone();
        ns.tree.directory_log = at;
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
        if old.has(SNAPSHOTTABLE) {
            allow_snapshot::allow(self, old.id());
        }
        handle
    }

    /// A digest of what all groups hold of directories. It is equal in all groups that have come to the same place in the directory log.
    /// Times and numbers of children are not in it: each group has its own. It walks the whole tree, so it is for tests and checks.
    pub fn directories_digest(&self) -> u64 {
        let tree = &self.tree;
        let mut sum = 0_u64;
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
