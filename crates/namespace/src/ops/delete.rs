//! Unlinks a file or a subtree.
//!
//! A small subtree goes away at once. A large one is taken out of the tree at once, and taken apart by
//! [`super::cleanup`] in steps of at most [`INODES_AT_ONCE`] inodes, each an edit of its own.

use crate::{
    Context, Namespace, Reply,
    access::Access,
    charge::{self, ledger::Ledger},
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    ops::allow_snapshot,
    plannable::plannable,
    reserved,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult, InodeId};

/// How many inodes an edit touches at most.
pub(crate) const INODES_AT_ONCE: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub recursive: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DeleteEdit {
    pub inode: InodeId,
    /// The subtree is small enough to be removed at once.
    pub at_once: bool,
}

record_fields! { DeleteEdit { inode, at_once } }

/// The answer is false for the root, and for a path that does not exist.
///
/// # Errors
/// [`FsError::InvalidPath`] if the path is `/.reserved`. The path cannot be resolved (see [`crate::ops`]); the caller
/// may not write the directory above or a directory below. [`FsError::NotEmpty`] if the directory is not empty and
/// `recursive` is not set. It is protected, or holds a directory with snapshots ([`FsError::Snapshot`]).
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<DeleteEdit>> {
    reserved::check_not_top(&req.path)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    access.check_parent_write(ns, &resolved)?;
    access.check_subtree(ns, ctx, &resolved)?;
    let Some(target) = resolved.target else {
        return Ok(Planned::NoChange(Reply::Bool(false)));
    };
    let inode = ns.tree.inode(target);
    let has_files = || inode.is_directory() && ctx.has_files(ns, target);
    if !req.recursive && (inode.children_count() > 0 || has_files()) {
        // The text of Hadoop's `PathIsNotEmptyDirectoryException`, which dresses up the path that it is given.
        let message = format!("`{} is non empty': Directory is not empty", resolved.path.as_str());
        return Err(FsError::NotEmpty(message));
    }
    resolved.check_unprotected(ns, ctx)?;
    if resolved.path.is_root() {
        return Ok(Planned::NoChange(Reply::Bool(false)));
    }
    allow_snapshot::check_removable(ns, target)?;
    let edit = DeleteEdit { inode: inode.id(), at_once: is_small(ns, target) };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

/// Whether a subtree has no more inodes than an edit may touch.
fn is_small(ns: &Namespace, top: u32) -> bool {
    let mut stack = vec![top];
    let mut count = 1;
    while let Some(handle) = stack.pop() {
        let inode = ns.tree.inode(handle);
        count += inode.children_count() as usize;
        if count > INODES_AT_ONCE {
            return false;
        }
        if inode.children_count() > 0 {
            let children = ns.tree.children_of(handle, 0);
            stack.extend(children.filter(|child| ns.tree.inode(*child).is_directory()));
        }
    }
    true
}

plannable! { Request by plan => Planned<DeleteEdit>, (path) "Cannot delete {path}" }

impl Operation for DeleteEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Bool(true))
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.own_entry(self.inode);
    }

    fn changed(&self, ns: &Namespace, add: &mut dyn FnMut(InodeId)) {
        ns.parent_of(self.inode).into_iter().for_each(add);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        charge::delete(ns, ledger, ns.expect(self.inode));
    }

    fn followed(&self, ns: &Namespace) -> Option<Self> {
        let target = ns.handle(self.inode).filter(|_| ns.has_directory(self.inode))?;
        Some(Self { at_once: is_small(ns, target), ..self.clone() })
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let target = ns.expect(self.inode);
        let parent = ns.tree.inode(target).parent;
        ns.set_modified(parent, applying.time);
        for root in ns.snapshottable_below(target) {
            allow_snapshot::forget(ns, root);
        }
        ns.unlink(target);
        ns.discard(target, self.at_once, applying.changes);
        Reply::Bool(true)
    }
}
