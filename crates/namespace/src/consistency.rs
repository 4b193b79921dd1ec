//! The complete check: everything that is derived is derived again and compared.

use crate::{
    Namespace,
    exports::export_digest,
    ops::satisfy_storage_policy,
    snapshots::{AFTER_ALL, Snapshots},
    store::block_list::block_digest,
    store::{
        NONE,
        inode::{BORN, NAMED, SNAPSHOTTABLE},
    },
    tree::Tree,
};
use base::{BlockId, InodeId};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The counts of a walk over the whole tree.
#[derive(Default)]
struct Walked {
    named: usize,
    born: usize,
    snapshottable: usize,
    sum: u64,
    files: u64,
    directories: u64,
    blocks: u64,
    attribute_uses: BTreeMap<u32, u32>,
    quotas: usize,
    shares: usize,
    leases: BTreeMap<Arc<str>, BTreeSet<InodeId>>,
    open_blocks: BTreeMap<BlockId, InodeId>,
    truncations: BTreeSet<InodeId>,
    xattrs: usize,
    satisfying: BTreeSet<InodeId>,
}

impl Namespace {
    /// Walks the whole tree. It takes as long as reading an image, so it is for tests and simulations.
    ///
    /// # Errors
    /// An invariant is broken. The text names the first one found.
    pub fn check_consistency(&self) -> Result<(), String> {
        let tree = &self.tree;
        let mut walked = Walked::default();
        let mut stack = vec![tree.root];
        stack.extend(&tree.orphans);
        stack.extend(tree.snapshots.kept.iter().map(|(_, handle)| *handle));
        for (file, export) in tree.exports.iter() {
            let inode = tree.inode(export.handle);
            hold(inode.id() == *file && inode.is_file() && !inode.is_open(), || {
                format!("{file} is no export")
            })?;
            let is_of_others = tree.blocks_of(export.handle).any(|stored| self.is_foreign(stored.block.id));
            hold(!is_of_others, || format!("the export {file} has blocks of other groups"))?;
            walked.sum = walked.sum.wrapping_add(export_digest(*file, export.to));
            stack.push(export.handle);
        }
        hold(self.orders.is_empty(), || "an edit has given orders that are in no outbox".into())?;
        for top in &stack {
            hold(tree.inode(*top).parent == NONE, || format!("a top has a parent: {top}"))?;
        }
        while let Some(handle) = stack.pop() {
            let id = tree.inode(handle).id();
            hold(self.handle(id) == Some(handle), || format!("the index does not find inode {id}"))?;
            hold(tree.directory_log.slots.have_group_for(id), || format!("no group has the slot of {id}"))?;
            walked.visit(tree, handle);
            if tree.inode(handle).is_directory() {
                let children: Vec<u32> = tree.children_of(handle, 0).collect();
                check_children(tree, handle, &children)?;
                stack.extend(children);
            }
        }
        self.check_snapshots(&mut walked)?;
        let counters = &tree.counters;
        hold(walked.sum == tree.sum, || "the sum of digests is another".into())?;
        hold((walked.files, walked.directories) == (counters.files, counters.directories), || {
            format!("{} files and {} directories are there", walked.files, walked.directories)
        })?;
        let inodes = walked.files + walked.directories;
        hold(inodes == u64::from(tree.inodes.live()), || "an inode is in no directory".into())?;
        hold(walked.blocks == u64::from(tree.blocks.live()), || "a block is in no file".into())?;
        hold(walked.leases == self.leases, || "the leases are others".into())?;
        hold(walked.open_blocks == self.open_blocks, || "the blocks being written are others".into())?;
        hold(walked.truncations == self.truncations, || "the files being truncated are others".into())?;
        hold(walked.xattrs == tree.xattrs.len(), || "extended attributes are nobody's".into())?;
        hold(walked.satisfying == self.satisfying, || "other inodes wait for their policies".into())?;
        hold(walked.quotas == tree.quotas.len(), || "a quota is nobody's".into())?;
        hold(walked.shares == tree.shares.len(), || "a share belongs to no quota".into())?;
        let has_policy = |(handle, _): &(&u32, &u32)| tree.attributes.get(**handle).storage_policy != 0;
        let with_policy = walked.attribute_uses.iter().filter(has_policy).map(|(_, uses)| u64::from(*uses));
        hold(with_policy.sum::<u64>() == tree.policies, || "storage policies are miscounted".into())?;
        self.check_quotas()?;
        let combinations = walked.attribute_uses.len() as u64;
        hold(combinations == u64::from(tree.attributes.live()), || "attributes are used by nobody".into())?;
        let counted = |(handle, uses): (&u32, &u32)| tree.attributes.get(*handle).uses() == *uses;
        hold(walked.attribute_uses.iter().all(counted), || "uses of attributes are miscounted".into())
    }
}

impl Namespace {
    fn check_snapshots(&self, walked: &mut Walked) -> Result<(), String> {
        let (tree, snapshots) = (&self.tree, &self.tree.snapshots);
        let counted = (walked.named, walked.born, walked.snapshottable);
        let tables = (snapshots.named.len(), snapshots.births.len(), snapshots.roots.len());
        hold(counted == tables, || format!("flags {counted:?} stand for tables {tables:?}"))?;
        hold(self.preserving.is_empty(), || "an edit is still being preserved for".into())?;
        let mut again = Snapshots::default();
        for (inode, root) in snapshots.roots.iter() {
            again.add_root(*inode);
            root.iter().for_each(|taken| again.take(*inode, taken.clone()));
        }
        for (key, past) in snapshots.records.iter() {
            hold(self.handle(key.0).is_some(), || format!("record {key:?} is of nobody"))?;
            *walked.attribute_uses.entry(past.attributes).or_default() += 1;
            again.add_record(&tree.attributes, *key, (**past).clone());
        }
        for (key, entry) in snapshots.entries.iter() {
            let both = self.handle(key.0).zip(self.handle(entry.inode));
            hold(both.is_some() && entry.born < key.2, || format!("entry {key:?} is of nobody"))?;
            again.add_entry(key.clone(), entry.clone());
        }
        snapshots.births.iter().for_each(|(inode, born)| again.set_birth(*inode, *born));
        hold(again.sum == snapshots.sum, || "the sum of the snapshots' digests is another".into())?;
        hold(again.living == snapshots.living, || "snapshots are miscounted".into())?;
        hold(again.named.iter().eq(snapshots.named.iter()), || "past names are others".into())?;
        let is_loose = |handle: u32| tree.inode(handle).has(NAMED) && tree.inode(handle).parent == NONE;
        hold(snapshots.kept.iter().all(|(_, handle)| is_loose(*handle)), || {
            "a kept inode is in a directory, or nothing names it".into()
        })
    }

    /// Checks that the usage noted for each directory with a quota is its true one.
    fn check_quotas(&self) -> Result<(), String> {
        let tree = &self.tree;
        for (id, quota) in tree.quotas.iter() {
            let handle = self.handle(*id).filter(|handle| tree.inode(*handle).has_quota());
            let handle = handle.ok_or_else(|| format!("inode {id} has a quota and does not know of it"))?;
            // A directory that was unlinked is charged to no quota any more.
            if tree.is_attached(handle) {
                let counted = self.subtree_amounts(handle, tree.policy_of(handle), AFTER_ALL, true);
                hold(counted == quota.used, || {
                    format!("directory {id} holds {counted:?}, charged are {:?}", quota.used)
                })?;
            }
        }
        Ok(())
    }
}

impl Walked {
    fn visit(&mut self, tree: &Tree, handle: u32) {
        let inode = tree.inode(handle);
        self.sum = self.sum.wrapping_add(tree.inode_digest(handle));
        *self.attribute_uses.entry(inode.attributes).or_default() += 1;
        self.named += usize::from(inode.has(NAMED));
        self.born += usize::from(inode.has(BORN));
        self.snapshottable += usize::from(inode.has(SNAPSHOTTABLE));
        self.xattrs += usize::from(tree.xattrs_of(handle).is_some());
        if tree.xattrs_of(handle).is_some_and(|xattrs| satisfy_storage_policy::is_noted(xattrs)) {
            self.satisfying.insert(inode.id());
        }
        if let Some(quota) = tree.quotas.get(&inode.id()) {
            self.sum = self.sum.wrapping_add(quota.digest(inode.id()));
            self.quotas += 1;
            if let Some(share) = tree.shares.get(&inode.id()) {
                self.sum = self.sum.wrapping_add(share.digest(inode.id()));
                self.shares += 1;
            }
        }
        if inode.is_directory() {
            self.directories += 1;
            return;
        }
        self.files += 1;
        for stored in tree.blocks_of(handle) {
            self.blocks += 1;
            self.sum = self.sum.wrapping_add(block_digest(inode.id(), stored));
            if !stored.committed {
                self.open_blocks.insert(stored.block.id, inode.id());
            }
        }
        if let Some((holder, _)) = tree.writer_of(handle) {
            self.leases.entry(holder.into()).or_default().insert(inode.id());
            if tree.open_files.get(inode.content).truncation.is_some() {
                self.truncations.insert(inode.id());
            }
        }
    }
}

fn check_children(tree: &Tree, directory: u32, children: &[u32]) -> Result<(), String> {
    let id = tree.inode(directory).id();
    hold(children.len() == tree.inode(directory).children_count() as usize, || {
        format!("directory {id} has {} children", children.len())
    })?;
    hold(children.iter().all(|child| tree.inode(*child).parent == directory), || {
        format!("a child of directory {id} has another parent")
    })?;
    hold(children.is_sorted_by(|one, two| tree.name_of(*one) < tree.name_of(*two)), || {
        format!("the children of directory {id} are not in order")
    })
}

fn hold(condition: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(otherwise()) }
}
