//! Takes a snapshot off its directory's list. Inodes and entries that only it saw are swept away afterwards, in
//! steps; see [`super::sweep`].

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
    pub name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DeleteSnapshotEdit {
    pub root: InodeId,
    pub id: SnapshotId,
}

record_fields! { DeleteSnapshotEdit { root, id } }

/// # Errors
/// [`FsError::Io`] if the name is empty. The path cannot be resolved or does not exist, or the caller is not the
/// directory's owner (see [`crate::ops`]). [`FsError::PathIsNotDirectory`] if it is a file; [`FsError::Snapshot`] if
/// the directory is not snapshottable, or there is no snapshot of that name.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<DeleteSnapshotEdit>> {
    if req.name.is_empty() {
        return Err(FsError::Io("The snapshot name is null or empty.".into()));
    }
    let resolved = create_snapshot::resolve_owned(ns, ctx, &req.path)?;
    let (root, taken) = create_snapshot::root_of(ns, ctx, &resolved)?;
    let Some(taken) = taken.and_then(|taken| taken.find(&req.name)) else {
        return Err(FsError::Snapshot(format!(
            "Cannot delete snapshot {} from path {}: the snapshot does not exist.",
            req.name,
            resolved.path.as_str()
        )));
    };
    let edit = DeleteSnapshotEdit { root, id: taken.id };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

plannable! { Request by plan => Planned<DeleteSnapshotEdit>, (path) "Cannot delete snapshot for {path}" }

impl Operation for DeleteSnapshotEdit {
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

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {
        // The sweep that follows gives back what only this snapshot has.
    }

    fn followed(&self, ns: &Namespace) -> Option<Self> {
        ns.has_directory(self.root).then(|| self.clone())
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let root = ns.expect(self.root);
        ns.tree.snapshots.untake(self.root, self.id);
        ns.tree.snapshots.request_sweep();
        ns.set_modified(root, applying.time);
        Reply::Unit
    }
}
