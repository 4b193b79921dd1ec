//! The snapshottable directories, and the snapshots of one of them.

use crate::{
    Context, FileStatus, Namespace, Sight, SnapshotId,
    access::{Access, READ},
    ops::create_snapshot::root_of,
    path::Path,
    readable::readable,
    resolve::{Purpose, walk},
    snapshots::PER_DIRECTORY_MAX,
};
use base::{FsError, FsResult};

/// Asks for the snapshots of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
}

readable! { Request => Vec<SnapshotStatus<'ns>>, (path) "getSnapshotListing", |ns, ctx, req| get(ns, ctx, &req.path) }

/// Asks for the snapshottable directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshottable;

readable! {
    Snapshottable => Option<Vec<SnapshottableDirectory<'ns>>>, () "getSnapshottableDirListing",
    |ns, ctx, _req| Ok(snapshottable(ns, ctx));
    fn sight(&self) -> Sight<'_> {
        Sight::Everything
    }
}

/// Hadoop: `SnapshottableDirectoryStatus`.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshottableDirectory<'ns> {
    pub status: FileStatus<'ns>,
    /// The path of the directory that it is in; empty for the root.
    pub parent: String,
    pub snapshots: u32,
    pub quota: u32,
}

/// The caller's own snapshottable directories, all for a superuser; in the order of their paths. `None` if there is
/// none of any user. HDFS distinguishes that from an empty list, which means that this user has none.
pub fn snapshottable<'ns>(ns: &'ns Namespace, ctx: &Context<'_>) -> Option<Vec<SnapshottableDirectory<'ns>>> {
    let access = Access::new(ctx);
    let mut exist = false;
    let mut found = Vec::new();
    for (inode, root) in ns.tree.snapshots.roots.iter() {
        let Some(handle) = ns.handle(*inode).filter(|handle| ns.tree.is_attached(*handle)) else { continue };
        exist = true;
        let status = ns.tree.status(handle);
        if !access.is_superuser && *status.owner != *ctx.caller.user {
            continue;
        }
        let parent = ns.tree.inode(handle).parent;
        let parent = if handle == ns.tree.root { String::new() } else { ns.tree.path_of(parent) };
        let quota = PER_DIRECTORY_MAX as u32;
        found.push(SnapshottableDirectory { status, parent, snapshots: root.len() as u32, quota });
    }
    found.sort_by(|one, two| (&one.parent, one.status.name).cmp(&(&two.parent, two.status.name)));
    exist.then_some(found)
}

/// Hadoop: `SnapshotStatus`.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotStatus<'ns> {
    /// The status of the snapshot's root, under the snapshot's name.
    pub status: FileStatus<'ns>,
    pub id: SnapshotId,
    /// The path of the directory.
    pub parent: String,
}

/// The snapshots of a directory in the order of their names.
///
/// # Errors
/// [`FsError::InvalidPath`] if the path is invalid, [`FsError::ParentNotDirectory`] if it leads through a file,
/// [`FsError::PathIsNotDirectory`] if it is one, [`FsError::Snapshot`] if the directory is not snapshottable. The path
/// does not exist, or the caller may not read it: see [`crate::reads`].
pub fn get<'ns>(ns: &'ns Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Vec<SnapshotStatus<'ns>>> {
    let access = Access::new(ctx);
    // HDFS looks for the path as it is, not for what it may stand for.
    let resolved = walk(ns, &access, Path::parse(path)?);
    resolved.check_not_blocked(Purpose::Create)?;
    if access.enabled {
        resolved.check_traverse(ns, &access)?;
    }
    access.check_target(ns, &resolved, READ)?;
    // The top of a snapshot has no snapshots.
    if resolved.target.is_some_and(|target| ns.is_top_of(target, resolved.snapshot)) {
        return Err(FsError::Snapshot(format!("Directory is not a snapshottable directory: {path}")));
    }
    let (_, list) = root_of(ns, ctx, &resolved)?;
    let (Some(list), Some(root)) = (list, resolved.target) else { return Ok(Vec::new()) };
    let parent = ns.tree.path_of(root);
    let status = |name: &'ns str, id| FileStatus {
        // HDFS tells how many there are now.
        children_count: ns.tree.inode(root).children_count(),
        ..ns.status_at(root, name.as_bytes(), Some(id))
    };
    let snapshots = list.after_name("").map(|taken| SnapshotStatus {
        status: status(&taken.name, taken.id),
        id: taken.id,
        parent: parent.clone(),
    });
    Ok(snapshots.collect())
}
