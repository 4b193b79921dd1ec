//! The inodes that an edit must preserve for snapshots before it changes them.
//!
//! They are worked out when the edit is planned, and written into it: `apply` keeps the inodes named
//! there as they were, and never walks upwards to find a snapshot.

use crate::{
    Namespace,
    edit::{DecodeError, codec},
    operation::Operation,
};
use base::InodeId;

/// Snapshots of all directories are numbered in the order in which they were made; a number is never used
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(pub u32);

impl codec::Field for SnapshotId {
    fn encode(&self, out: &mut codec::Writer<'_>) {
        out.number(u64::from(self.0));
    }

    fn decode(input: &mut codec::Reader<'_>) -> Result<Self, DecodeError> {
        input.number_below(1 << 32, "a snapshot id of more than 32 bits").map(|id| Self(id as u32))
    }
}

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
