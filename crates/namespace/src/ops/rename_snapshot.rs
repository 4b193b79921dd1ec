//! Gives a snapshot another name.

use super::create_snapshot;
use crate::{
    Context, Namespace, Reply, SnapshotId,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    plannable::plannable,
};
use base::{FsError, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub old: String,
    pub new: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RenameSnapshotEdit {
    pub root: InodeId,
    pub id: SnapshotId,
    pub name: Box<str>,
}

record_fields! { RenameSnapshotEdit { root, id, name } }

/// # Errors
/// [`FsError::Io`] if the new name is empty. The path cannot be resolved or does not exist, or the caller is not the
/// directory's owner (see [`crate::ops`]). [`FsError::PathIsNotDirectory`] if it is a file; [`FsError::Snapshot`] if
/// the directory is not snapshottable, there is no snapshot of the old name, or the new name is taken;
/// [`FsError::InvalidPath`], [`FsError::InvalidArgument`] or [`FsError::ComponentTooLong`] if the new name is invalid
/// or too long.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<RenameSnapshotEdit>> {
    if req.new.is_empty() {
        return Err(FsError::Io("The new snapshot name is null or empty.".into()));
    }
    let resolved = create_snapshot::resolve_owned(ns, ctx, &req.path)?;
    create_snapshot::check_name(ctx, &req.path, &req.new)?;
    let (root, taken) = create_snapshot::root_of(ns, ctx, &resolved)?;
    let Some(old) = taken.and_then(|taken| taken.find(&req.old)) else {
        return Err(FsError::Snapshot(format!(
            "The snapshot {} does not exist for directory {}",
            req.old, req.path
        )));
    };
    if req.new == req.old {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    if taken.is_some_and(|taken| taken.find(&req.new).is_some()) {
        return Err(FsError::Snapshot(format!(
            "The snapshot {} already exists for directory {}",
            req.new, req.path
        )));
    }
    let edit = RenameSnapshotEdit { root, id: old.id, name: req.new.as_str().into() };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

plannable! { Request by plan => Planned<RenameSnapshotEdit>, (path) "Cannot rename snapshot for {path}" }

impl Operation for RenameSnapshotEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.passage(self.root);
        marks.past();
    }

    fn changed(&self, _: &Namespace, _: &mut dyn FnMut(InodeId)) {
        // A snapshot keeps the time of its root itself.
    }

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {}

    fn followed(&self, ns: &Namespace) -> Option<Self> {
        ns.has_directory(self.root).then(|| self.clone())
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        ns.tree.snapshots.rename(self.root, self.id, &self.name, applying.time);
        Reply::Unit
    }
}
