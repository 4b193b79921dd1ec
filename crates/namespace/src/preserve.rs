//! The inodes that an edit must preserve for snapshots before it changes them.
//!
//! They are worked out when the edit is planned, and written into it: `apply` keeps the inodes named
//! there as they were, and never walks upwards to find a snapshot.

use crate::{Namespace, SnapshotId, operation::Operation};
use base::InodeId;

/// The inodes that an edit changes while a snapshot sees them, each with the latest that does.
pub(crate) fn of(ns: &Namespace, edit: &impl Operation) -> Vec<(InodeId, SnapshotId)> {
    let mut preserve = Vec::new();
    if ns.tree.snapshots.living == 0 {
        return preserve;
    }
    let mut add = |inode: InodeId| {
        let Some(handle) = ns.handle(inode) else { return };
        if preserve.iter().any(|(other, _)| *other == inode) {
            return;
        }
        let Some(cover) = ns.cover(handle) else { return };
        // The entries of a directory need to know the snapshot each time, a file only once.
        let is_known = ns.tree.inode(handle).is_file() && ns.tree.snapshots.record_at(inode, cover).is_some();
        if !is_known {
            preserve.push((inode, cover));
        }
    };
    edit.changed(ns, &mut add);
    preserve
}
