//! The snapshots that see an inode.
//!
//! An inode has one current entry at most and any number of past ones; a snapshot sees it through the one that
//! lived then, in a directory that the snapshot sees, up to the root of the snapshot. So the question is walked
//! upwards with an interval of numbers that narrows at each entry.

use super::{AFTER_ALL, BEFORE_ALL};
use crate::{
    Namespace, SnapshotId,
    store::{
        NONE,
        inode::{BORN, NAMED, SNAPSHOTTABLE},
    },
    tree::Tree,
};
use base::InodeId;

const STEPS_MAX: usize = 1 << 20;

impl Namespace {
    /// The latest living snapshot that sees the inode: the one that a change of it must be preserved for.
    pub(crate) fn cover(&self, handle: u32) -> Option<SnapshotId> {
        self.latest_seeing(handle, BEFORE_ALL, AFTER_ALL)
    }

    /// Whether the tables have something of the inode's past, if only for a snapshot that is deleted and not swept away.
    pub(crate) fn has_past(&self, handle: u32) -> bool {
        let inode = self.tree.inode(handle);
        inode.has(NAMED) || self.tree.snapshots.records_of(inode.id()).next().is_some()
    }

    /// The latest living snapshot after `low`, and no later than `high`, that sees the inode.
    pub(crate) fn latest_seeing(&self, handle: u32, low: SnapshotId, high: SnapshotId) -> Option<SnapshotId> {
        self.tree.latest_seeing(handle, low, high, |directory| self.handle(directory))
    }

    /// The latest snapshot that does not see the current entry of an inode.
    #[inline]
    pub(crate) fn birth_of(&self, handle: u32) -> SnapshotId {
        self.tree.birth_of(handle)
    }

    /// Whether the inode lies in the tree or in a subtree that a snapshot may see: not in one that is being
    /// taken apart.
    pub(crate) fn is_held(&self, handle: u32) -> bool {
        let mut top = handle;
        while self.tree.inode(top).parent != NONE {
            top = self.tree.inode(top).parent;
        }
        top == self.tree.root || self.tree.inode(top).has(NAMED)
    }

    /// The snapshottable directory at or above an inode.
    pub(crate) fn snapshottable_above(&self, handle: u32) -> Option<u32> {
        if self.tree.snapshots.roots.is_empty() {
            return None;
        }
        let mut at = handle;
        loop {
            let inode = self.tree.inode(at);
            if inode.has(SNAPSHOTTABLE) {
                return Some(at);
            }
            if inode.parent == NONE {
                return None;
            }
            at = inode.parent;
        }
    }

    /// The snapshottable directories at or below an inode, in the order of their ids.
    pub(crate) fn snapshottable_below(&self, top: u32) -> Vec<InodeId> {
        let roots = self.tree.snapshots.roots.iter().map(|(root, _)| *root);
        roots.filter(|root| self.handle(*root).is_some_and(|root| self.is_at_or_below(root, top))).collect()
    }

    pub(crate) fn is_at_or_below(&self, handle: u32, top: u32) -> bool {
        let mut at = handle;
        while at != top {
            at = self.tree.inode(at).parent;
            if at == NONE {
                return false;
            }
        }
        true
    }
}

impl Tree {
    /// The latest living snapshot after `low`, and no later than `high`, that sees the inode. `find` knows the handles of the
    /// directories that had entries.
    pub(crate) fn latest_seeing(
        &self,
        handle: u32,
        low: SnapshotId,
        high: SnapshotId,
        find: impl Fn(InodeId) -> Option<u32>,
    ) -> Option<SnapshotId> {
        let snapshots = &self.snapshots;
        if snapshots.living == 0 {
            return None;
        }
        let floor = low;
        let mut best = low;
        let mut stack = vec![(handle, low, high)];
        // No tree comes near it; it ends the walk in an image that someone made up.
        let mut steps = 0;
        while let Some((handle, low, high)) = stack.pop() {
            steps += 1;
            if steps > STEPS_MAX {
                break;
            }
            let low = low.max(best);
            if low >= high {
                continue;
            }
            let inode = self.inode(handle);
            if inode.has(SNAPSHOTTABLE)
                && let Some(root) = snapshots.roots.get(&inode.id())
            {
                best = best.max(root.latest(low, high).unwrap_or(best));
            }
            if inode.parent != NONE {
                stack.push((inode.parent, low.max(self.birth_of(handle)), high));
            }
            if inode.has(NAMED) {
                for key in snapshots.named.get(&inode.id()).into_iter().flat_map(|names| names.iter()) {
                    let Some(entry) = snapshots.entries.get(key) else { continue };
                    let Some(directory) = find(key.0) else { continue };
                    stack.push((directory, low.max(entry.born), high.min(key.2)));
                }
            }
        }
        (best > floor).then_some(best)
    }

    /// The latest snapshot that does not see the current entry of an inode.
    #[inline]
    pub(crate) fn birth_of(&self, handle: u32) -> SnapshotId {
        let inode = self.inode(handle);
        if !inode.has(BORN) {
            return BEFORE_ALL;
        }
        self.snapshots.births.get(&inode.id()).copied().unwrap_or(BEFORE_ALL)
    }
}
