//! Takes a deleted subtree apart, at most 1,000 inodes an edit.

use crate::{
    BlockChange, Context, Edit, Namespace, Reply,
    edit::{Body, codec::record_fields},
    ops::delete::INODES_AT_ONCE,
};
use base::InodeId;

/// Each inode comes after those below it.
#[derive(Clone, Debug, PartialEq)]
pub struct CleanupEdit {
    pub inodes: Vec<InodeId>,
}

record_fields! { CleanupEdit { inodes } }

/// The next step, or `None` when nothing is left to do.
pub fn plan(ns: &Namespace, ctx: &Context<'_>) -> Option<Edit> {
    let top = *ns.tree.orphans.front()?;
    let mut inodes = Vec::new();
    // A directory and the rank of the child to visit next.
    let mut stack = vec![(top, 0)];
    while let Some((directory, rank)) = stack.pop() {
        if inodes.len() == INODES_AT_ONCE {
            break;
        }
        let mut rank = rank;
        let mut descended = false;
        for child in ns.tree.children_of(directory, rank) {
            if inodes.len() == INODES_AT_ONCE {
                break;
            }
            rank += 1;
            if ns.tree.inode(child).is_directory() {
                stack.push((directory, rank));
                stack.push((child, 0));
                descended = true;
                break;
            }
            inodes.push(ns.tree.inode(child).id());
        }
        let done = rank == ns.tree.inode(directory).children_count();
        if !descended && done && inodes.len() < INODES_AT_ONCE {
            inodes.push(ns.tree.inode(directory).id());
        } else if !descended {
            break;
        }
    }
    Some(Edit::of_service(ns, ctx, Body::Cleanup(CleanupEdit { inodes })))
}

pub(crate) fn apply(ns: &mut Namespace, edit: &CleanupEdit, changes: &mut Vec<BlockChange>) -> Reply {
    for inode in &edit.inodes {
        let handle = ns.expect(*inode);
        if ns.tree.orphans.front() == Some(&handle) {
            ns.tree.orphans.pop_front();
        } else {
            ns.unlink(handle);
        }
        ns.remove_inode(handle, changes);
    }
    Reply::Unit
}
