//! Makes a directory snapshottable, or no longer so. The service has checked that a superuser asks.
//!
//! Snapshottable directories are not nested. A directory that has snapshots stays snapshottable.

use crate::{
    Context, Namespace, Reply,
    access::Access,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    path::Path,
    plannable::plannable,
    resolve::{Purpose, walk},
    store::inode::SNAPSHOTTABLE,
};
use base::{FsError, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
}

/// The request of `disallowSnapshot`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disallowing {
    pub path: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetSnapshottableEdit {
    pub inode: InodeId,
    pub allow: bool,
}

record_fields! { SetSnapshottableEdit { inode, allow } }

/// # Errors
/// The path cannot be resolved or does not exist (see [`crate::ops`]); [`FsError::PathIsNotDirectory`] if it is a file;
/// [`FsError::Snapshot`] if a directory above or below is snapshottable already.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<SetSnapshottableEdit>> {
    let (directory, inode) = directory(ns, ctx, &req.path)?;
    for root in ns.tree.snapshots.roots.iter().filter_map(|(root, _)| ns.handle(*root)) {
        let nested = match root {
            root if root == directory => continue,
            root if ns.is_at_or_below(root, directory) => format!("subdirectory {}", ns.tree.path_of(root)),
            root if ns.is_at_or_below(directory, root) => format!("ancestor {}", ns.tree.path_of(root)),
            _ => continue,
        };
        return Err(FsError::Snapshot(format!(
            "Nested snapshottable directories not allowed: path={}, the {nested} is already a snapshottable \
             directory.",
            req.path
        )));
    }
    if ns.tree.inode(directory).has(SNAPSHOTTABLE) {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let body = SetSnapshottableEdit { inode, allow: true };
    Ok(Planned::Edit(Edit::plan(ns, ctx, body)?))
}

/// Hadoop: `disallowSnapshot`.
///
/// # Errors
/// The path cannot be resolved or does not exist (see [`crate::ops`]); [`FsError::PathIsNotDirectory`] if it is a file;
/// [`FsError::Snapshot`] if the directory has snapshots.
pub fn plan_disallow(
    ns: &Namespace,
    ctx: &Context<'_>,
    req: &Disallowing,
) -> FsResult<Planned<SetSnapshottableEdit>> {
    let (_, inode) = directory(ns, ctx, &req.path)?;
    match ns.tree.snapshots.roots.get(&inode) {
        None => Ok(Planned::NoChange(Reply::Unit)),
        Some(root) if root.len() > 0 => Err(FsError::Snapshot(format!(
            "The directory {} has snapshot(s). Please redo the operation after removing all the snapshots.",
            req.path
        ))),
        Some(_) => {
            let body = SetSnapshottableEdit { inode, allow: false };
            Ok(Planned::Edit(Edit::plan(ns, ctx, body)?))
        }
    }
}

/// HDFS's `INodeDirectory.valueOf`, for a superuser.
fn directory(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<(u32, InodeId)> {
    let access = Access::new(ctx);
    let resolved = walk(ns, &access, Path::parse(path)?);
    resolved.check_writable()?;
    resolved.check_not_blocked(Purpose::Create)?;
    if ctx.names_file(ns, &resolved) {
        return Err(FsError::PathIsNotDirectory(path.into()));
    }
    let Some(target) = resolved.target else {
        return Err(FsError::NotFound(format!("Directory does not exist: {path}")));
    };
    let inode = ns.tree.inode(target);
    if inode.is_file() {
        return Err(FsError::PathIsNotDirectory(path.into()));
    }
    Ok((target, inode.id()))
}

/// Refuses to delete or move an inode that is, or holds, a directory with snapshots. Answers the snapshottable
/// directories in it.
///
/// # Errors
/// [`FsError::Snapshot`] names the first directory that has snapshots.
pub(crate) fn check_removable(ns: &Namespace, top: u32) -> FsResult<Vec<InodeId>> {
    if ns.tree.snapshots.roots.is_empty() {
        return Ok(Vec::new());
    }
    let below = ns.snapshottable_below(top);
    let has_snapshots =
        |root: &&InodeId| ns.tree.snapshots.roots.get(*root).is_some_and(|root| root.len() > 0);
    let paths = below.iter().filter(has_snapshots).filter_map(|root| ns.handle(*root));
    // HDFS walks down in the order of names.
    let first = paths.map(|root| ns.tree.path_of(root)).min_by(|one, two| one.split('/').cmp(two.split('/')));
    let Some(path) = first else {
        return Ok(below);
    };
    Err(FsError::Snapshot(format!(
        "The directory {path} cannot be deleted since {path} is snapshottable and already has snapshots"
    )))
}

/// HDFS's `validateNestSnapshot`, with the snapshottable directories in what is moved.
///
/// # Errors
/// [`FsError::Snapshot`] if a snapshottable directory would come below another.
pub(crate) fn check_not_nested(ns: &Namespace, moved: &[InodeId], source: &str, parent: u32) -> FsResult<()> {
    // The root of HDFS counts as snapshottable before anybody allows it.
    if moved.is_empty() || (parent != ns.tree.root && ns.snapshottable_above(parent).is_none()) {
        return Ok(());
    }
    Err(FsError::Snapshot(format!(
        "Unable to rename because {source} has snapshottable descendant directories and {} is a descent of a \
         snapshottable directory, and HDFS does not support nested snapshottable directory.",
        ns.tree.path_of(parent)
    )))
}

plannable! { Request by plan => Planned<SetSnapshottableEdit>, (path) "Cannot allow snapshot for {path}" }
plannable! { Disallowing by plan_disallow => Planned<SetSnapshottableEdit>, (path) "Cannot disallow snapshot for {path}" }

impl Operation for SetSnapshottableEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.passage(self.inode);
        marks.past();
    }

    fn changed(&self, _: &Namespace, _: &mut dyn FnMut(InodeId)) {
        // A snapshot keeps the time of its root itself.
    }

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {}

    fn followed(&self, ns: &Namespace) -> Option<Self> {
        ns.has_directory(self.inode).then(|| self.clone())
    }

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        if self.allow {
            allow(ns, self.inode);
        } else {
            forget(ns, self.inode);
        }
        Reply::Unit
    }
}

/// Makes a directory snapshottable.
pub(crate) fn allow(ns: &mut Namespace, inode: InodeId) {
    let handle = ns.expect(inode);
    ns.tree.inodes.get_mut(handle).set_flag(SNAPSHOTTABLE, true);
    ns.tree.snapshots.add_root(inode);
}

/// Makes a directory without snapshots no longer snapshottable.
pub(crate) fn forget(ns: &mut Namespace, inode: InodeId) {
    let handle = ns.expect(inode);
    ns.tree.inodes.get_mut(handle).set_flag(SNAPSHOTTABLE, false);
    ns.tree.snapshots.remove_root(inode);
}
