//! Makes a snapshot of a snapshottable directory. It costs the same whatever the directory holds.

use crate::{
    Context, Namespace, Reply, SnapshotId,
    access::Access,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    entry_limits,
    footprint::Marks,
    operation::{Applying, Operation},
    path::Path,
    plannable::plannable,
    questions::FileFact,
    resolve::{Purpose, Resolved, resolve},
    snapshots::{PER_DIRECTORY_MAX, Root, SNAPSHOT_ID_LIMIT, Taken, view::DOT_SNAPSHOT},
};
use base::{FsError, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// Not empty: the service has made a name if the client gave none.
    pub name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateSnapshotEdit {
    pub root: InodeId,
    pub id: SnapshotId,
    pub name: Box<str>,
}

record_fields! { CreateSnapshotEdit { root, id, name } }

/// # Errors
/// The path cannot be resolved or does not exist, or the caller is not the directory's owner (see [`crate::ops`]).
/// [`FsError::Io`] if the path is too long, [`FsError::PathIsNotDirectory`] if it is a file, [`FsError::Snapshot`] if
/// the directory is not snapshottable, the name is taken, or there are as many snapshots as there may be.
/// [`FsError::InvalidPath`] or [`FsError::InvalidArgument`] if the name is invalid, [`FsError::ComponentTooLong`] if it
/// is too long.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<CreateSnapshotEdit>> {
    Path::check_length(&req.path, "createSnapshot", ctx.limits)?;
    let resolved = resolve_owned(ns, ctx, &req.path)?;
    // HDFS: `isValidNameForComponent`.
    if matches!(&*req.name, "." | ".." | ".reserved" | DOT_SNAPSHOT) || req.name.contains([':', '/']) {
        return Err(invalid(&req.name));
    }
    check_name(ctx, &req.path, &req.name)?;
    let (root, taken) = root_of(ns, ctx, &resolved)?;
    if ns.tree.snapshots.last.0 + 1 >= SNAPSHOT_ID_LIMIT {
        return Err(FsError::Snapshot(format!(
            "Failed to create the snapshot. The FileSystem has run out of snapshot IDs and ID rollover is not \
             supported and the max snapshot limit is: {}",
            ctx.limits.snapshots_per_directory_max
        )));
    }
    check_room(ns, ctx, root, taken)?;
    if taken.is_some_and(|taken| taken.find(&req.name).is_some()) {
        return Err(FsError::Snapshot(format!(
            "Failed to add snapshot: there is already a snapshot with the same name \"{}\".",
            req.name
        )));
    }
    let id = SnapshotId(ns.tree.snapshots.last.0 + 1);
    let edit = CreateSnapshotEdit { root, id, name: req.name.as_str().into() };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

fn check_room(ns: &Namespace, ctx: &Context<'_>, root: InodeId, taken: Option<&Root>) -> FsResult<()> {
    let check = |count: usize, limit: usize, what: &str| {
        if count < limit {
            return Ok(());
        }
        Err(FsError::Snapshot(format!(
            "Failed to create snapshot: there are already {count} snapshot(s) and the {what} snapshot limit is \
             {limit}"
        )))
    };
    check(ns.tree.snapshots.living as usize, ctx.limits.snapshots_max, "file system")?;
    let count = taken.map_or(0, Root::len);
    // The root directory of HDFS is snapshottable from the beginning, with a quota of 0.
    let quota = match ns.tree.snapshots.roots.contains_key(&root) {
        true => PER_DIRECTORY_MAX,
        false => 0,
    };
    if count >= quota {
        return Err(FsError::Snapshot(format!(
            "Failed to add snapshot: there are already {count} snapshot(s) and the snapshot quota is {quota}"
        )));
    }
    check(count, ctx.limits.snapshots_per_directory_max, "per directory")
}

fn invalid(name: &str) -> FsError {
    FsError::InvalidPath(format!("Invalid snapshot name: {name}"))
}

/// HDFS's `verifySnapshotName`.
///
/// # Errors
/// [`FsError::InvalidArgument`] if the name has a slash or is `.snapshot`, [`FsError::InvalidPath`] if it has a NUL,
/// [`FsError::ComponentTooLong`] if it is too long.
pub(crate) fn check_name(ctx: &Context<'_>, path: &str, name: &str) -> FsResult<()> {
    if name.contains('/') {
        return Err(FsError::InvalidArgument("Snapshot name cannot contain \"/\"".into()));
    }
    if name == DOT_SNAPSHOT {
        return Err(FsError::InvalidArgument("\".snapshot\" is a reserved name.".into()));
    }
    if name.contains('\0') {
        return Err(invalid(name));
    }
    entry_limits::check_component(ctx, path, name)
}

/// Snapshots of a directory are its owner's business, where permissions are switched on.
pub(crate) fn resolve_owned<'req>(
    ns: &Namespace,
    ctx: &Context<'_>,
    path: &'req str,
) -> FsResult<Resolved<'req>> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, path, Purpose::Other)?;
    if access.enabled {
        match ctx.file_named(ns, &resolved) {
            FileFact::None => drop(access.check_owner(ns, &resolved)?),
            FileFact::File(file) => access.check_is_owner(ns, &resolved, &file.owner)?,
            // Its home does not say whose it is. It is no directory in any case.
            FileFact::Busy { .. } => {}
        }
    }
    Ok(resolved)
}

/// The snapshottable directory that a path names: HDFS's `getSnapshottableRoot`. It has no list only if it is
/// the root directory, before anybody allowed snapshots of it.
///
/// # Errors
/// [`FsError::NotFound`] if there is nothing, [`FsError::PathIsNotDirectory`] if it is a file,
/// [`FsError::Snapshot`] if it is not snapshottable.
pub(crate) fn root_of<'ns>(
    ns: &'ns Namespace,
    ctx: &Context<'_>,
    resolved: &Resolved<'_>,
) -> FsResult<(InodeId, Option<&'ns Root>)> {
    let path = resolved.path.as_str();
    if ctx.names_file(ns, resolved) {
        return Err(FsError::PathIsNotDirectory(path.into()));
    }
    let Some(target) = resolved.target else {
        return Err(FsError::NotFound(format!("Directory does not exist: {path}")));
    };
    let inode = ns.tree.inode(target);
    if inode.is_file() {
        return Err(FsError::PathIsNotDirectory(path.into()));
    }
    if !ns.has_dot_snapshot(target) {
        return Err(FsError::Snapshot(format!("Directory is not a snapshottable directory: {path}")));
    }
    Ok((inode.id(), ns.tree.snapshots.roots.get(&inode.id()).map(|root| &**root)))
}

/// The path of a snapshot, below the root as the client named it.
pub fn path_of(root: &str, name: &str) -> String {
    let slash = if root.ends_with('/') { "" } else { "/" };
    format!("{root}{slash}{DOT_SNAPSHOT}/{name}")
}

/// The name of a snapshot by its number, for an answer that is given again.
pub fn name_of(ns: &Namespace, id: SnapshotId) -> Option<&str> {
    let mut roots = ns.tree.snapshots.roots.iter();
    roots.find_map(|(_, root)| root.get(id)).map(|taken| &*taken.name)
}

plannable! { Request by plan => Planned<CreateSnapshotEdit>, (path) "Cannot create snapshot for {path}" }

impl Operation for CreateSnapshotEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Snapshot(self.id))
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
        let root = ns.expect(self.root);
        ns.set_modified(root, applying.time);
        ns.tree
            .snapshots
            .take(self.root, Taken { id: self.id, name: (&*self.name).into(), modified: applying.time });
        Reply::Snapshot(self.id)
    }
}
