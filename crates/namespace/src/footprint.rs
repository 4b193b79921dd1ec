//! Which inodes an edit changes, and which a path leads over: enough for a service to know whether an answer
//! may rest on an edit that is not yet durable.
//!
//! An edit's footprint is what it changes and the parents of that. A look at a path sees the inodes on it
//! and, for a listing, the children of the last: whatever changes in a child leaves its mark on the parent.
//! So an answer rests on an edit only if footprint and path have an inode in common.

use crate::{Edit, Namespace, edit::Body, path::Path, reserved, store::NONE};
use base::InodeId;

impl Namespace {
    /// Adds the footprint of an edit. To be asked before it is applied, while what it removes is still there.
    pub fn footprint_of(&self, edit: &Edit, footprint: &mut Vec<InodeId>) {
        let mut changes = |inode: InodeId| {
            footprint.push(inode);
            footprint.extend(self.parent_of(inode));
        };
        match &edit.body {
            Body::Mkdirs(edit) => {
                changes(edit.parent);
                edit.directories.iter().for_each(|directory| changes(directory.id));
            }
            Body::Create(edit) => {
                changes(edit.parent);
                edit.missing.iter().for_each(|directory| changes(directory.id));
                edit.replaced.into_iter().for_each(&mut changes);
                changes(edit.id);
            }
            Body::Rename(edit) => {
                changes(edit.inode);
                self.parent_of(edit.inode).into_iter().for_each(&mut changes);
                changes(edit.destination);
                edit.replaced.into_iter().for_each(&mut changes);
            }
            Body::Delete(edit) => {
                changes(edit.inode);
                self.parent_of(edit.inode).into_iter().for_each(&mut changes);
            }
            // Nobody sees a subtree once it was unlinked.
            Body::Cleanup(_) => {}
            Body::AddBlock(edit) => changes(edit.inode),
            Body::AbandonBlock(edit) => changes(edit.inode),
            Body::Complete(edit) => changes(edit.inode),
            Body::SetPermission(edit) => changes(edit.inode),
            Body::SetOwner(edit) => changes(edit.inode),
            Body::SetAcl(edit) => changes(edit.inode),
            Body::SetXattrs(edit) => changes(edit.inode),
            Body::SetTimes(edit) => changes(edit.inode),
            Body::SetReplication(edit) => changes(edit.inode),
            Body::Append(edit) => changes(edit.inode),
            Body::Truncate(edit) => changes(edit.inode),
            Body::TruncateCopy(edit) => changes(edit.inode),
            Body::Concat(edit) => {
                // The sources have the target's parent, and may be many.
                changes(edit.target);
                footprint.extend_from_slice(&edit.sources);
            }
            Body::Fsync(edit) => changes(edit.inode),
            Body::NewStamp(edit) => changes(edit.inode),
            Body::UpdatePipeline(edit) => changes(edit.inode),
            Body::StartRecovery(edit) => changes(edit.inode),
            Body::FinishRecovery(edit) => changes(edit.inode),
            Body::SetSnapshottable(edit) => changes(edit.inode),
            Body::CreateSnapshot(edit) => changes(edit.root),
            Body::RenameSnapshot(edit) => changes(edit.root),
            Body::DeleteSnapshot(edit) => changes(edit.root),
            // What goes is seen by no snapshot that is left.
            Body::Sweep(_) => {}
            Body::SetQuota(edit) => changes(edit.directory),
            Body::SetStoragePolicy(edit) => changes(edit.inode),
        }
    }

    /// The inodes that exist on a path, from the root; none for a path that is malformed, about which there
    /// is nothing to see.
    pub fn inodes_on(&self, path: &str, inodes: &mut Vec<InodeId>) {
        inodes.extend(reserved::inode_of(path));
        let Ok(path) = reserved::real(self, path).and_then(|real| Path::parse(real.text)) else { return };
        let mut at = self.tree.root;
        inodes.push(self.tree.inode(at).id());
        if path.is_root() {
            return;
        }
        for name in path.components() {
            if self.tree.inode(at).is_file() {
                return;
            }
            match self.tree.child(at, name.as_bytes()) {
                None => return,
                Some(child) => at = child,
            }
            inodes.push(self.tree.inode(at).id());
        }
    }

    pub(crate) fn parent_of(&self, inode: InodeId) -> Option<InodeId> {
        let parent = self.tree.inode(self.handle(inode)?).parent;
        (parent != NONE).then(|| self.tree.inode(parent).id())
    }
}
