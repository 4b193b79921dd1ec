//! The inodes that an edit must preserve for snapshots before it changes them.
//!
//! They are worked out in one place from the edit's body, and written into the edit: `apply` keeps the inodes named
//! there as they were, and never walks upwards to find a snapshot.

use crate::{
    Namespace,
    edit::{Body, DecodeError, codec},
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

/// The inodes that an edit changes while a snapshot sees them, each with the latest that does. A directory is
/// changed by what enters and leaves it.
pub(crate) fn of(ns: &Namespace, body: &Body) -> Vec<(InodeId, SnapshotId)> {
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
    changed(ns, body, &mut add);
    preserve
}

/// The inodes that exist before the edit and are changed by it. An inode that goes away changes its directory, not
/// itself.
fn changed(ns: &Namespace, body: &Body, add: &mut dyn FnMut(InodeId)) {
    match body {
        Body::Mkdirs(edit) => add(edit.parent),
        Body::Create(edit) => add(edit.parent),
        Body::Rename(edit) => {
            ns.parent_of(edit.inode).into_iter().for_each(&mut *add);
            add(edit.destination);
        }
        Body::Delete(edit) => ns.parent_of(edit.inode).into_iter().for_each(add),
        Body::AddBlock(edit) => add(edit.inode),
        Body::AbandonBlock(edit) => add(edit.inode),
        Body::Complete(edit) => add(edit.inode),
        Body::SetPermission(edit) => add(edit.inode),
        Body::SetOwner(edit) => add(edit.inode),
        Body::SetAcl(edit) => add(edit.inode),
        Body::SetXattrs(edit) => add(edit.inode),
        Body::SetTimes(edit) => add(edit.inode),
        Body::SetReplication(edit) => add(edit.inode),
        Body::SetStoragePolicy(edit) => add(edit.inode),
        Body::Fsync(edit) => add(edit.inode),
        Body::Append(edit) => add(edit.inode),
        Body::Truncate(edit) => add(edit.inode),
        Body::TruncateCopy(edit) => add(edit.inode),
        // The sources are in the same directory, and in no snapshot.
        Body::Concat(edit) => {
            add(edit.target);
            ns.parent_of(edit.target).into_iter().for_each(add);
        }
        Body::UpdatePipeline(edit) => add(edit.inode),
        Body::FinishRecovery(edit) => add(edit.inode),
        // A snapshot shows nothing of stamps that are to come and of who holds a lease.
        Body::NewStamp(_) | Body::StartRecovery(_) | Body::AllowDeletions(_) | Body::RaiseLevel(_) => {}
        Body::SetQuota(edit) => add(edit.directory),
        // Only what no snapshot sees.
        Body::Cleanup(_) | Body::Sweep(_) => {}
        // A snapshot keeps the time of its root itself.
        Body::SetSnapshottable(_)
        | Body::CreateSnapshot(_)
        | Body::RenameSnapshot(_)
        | Body::DeleteSnapshot(_) => {}
    }
}
