//! The status of the inode that a path names.

use crate::{
    Context, FileStatus, Namespace,
    access::Access,
    readable::readable,
    reserved,
    resolve::{Purpose, Resolved, resolve},
};
use base::{FsError, FsResult, InodeId, Timestamp};

/// Hadoop has two calls for this, `getFileInfo` and `getFileLinkInfo`: they would differ about symbolic links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
}

readable! { Request => Option<FileStatus<'ns>>, (path) "getFileInfo", |ns, ctx, req| get(ns, ctx, &req.path) }

/// Asks whether a file has no writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsClosed {
    pub path: String,
}

readable! { IsClosed => bool, (path) "isFileClosed", |ns, ctx, req| is_closed(ns, ctx, &req.path) }

/// Asks for the block size of a file. In bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSize {
    pub path: String,
}

readable! { BlockSize => u64, (path) "getPreferredBlockSize", |ns, ctx, req| preferred_block_size(ns, ctx, &req.path) }

/// `None` if there is no such file.
///
/// # Errors
/// The path cannot be resolved: see [`crate::reads`].
pub fn get<'ns>(ns: &'ns Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Option<FileStatus<'ns>>> {
    if reserved::is_top(path) {
        return Ok(Some(reserved::status()));
    }
    let Some(resolved) = find(ns, ctx, path)? else { return Ok(None) };
    if let Some(root) = resolved.snapshots_of {
        return Ok(Some(dot_snapshot(ns, root)));
    }
    Ok(resolved.target.map(|handle| ns.status_at(handle, b"", resolved.snapshot)))
}

/// HDFS's `DOT_SNAPSHOT_DIR_STATUS`: a directory without an owner.
fn dot_snapshot(ns: &Namespace, root: u32) -> FileStatus<'_> {
    FileStatus {
        id: InodeId(0),
        name: b"",
        permission: 0o777,
        owner: "",
        group: "",
        modified: Timestamp::default(),
        accessed: Timestamp::default(),
        children_count: 0,
        storage_policy: 0,
        snapshottable: false,
        has_acl: false,
        ..ns.tree.status(root)
    }
}

/// An ancestor that is a file hides the path from the superuser, and is an error for others: so HDFS does.
///
/// # Errors
/// Those of [`resolve`]; but a superuser is never denied.
pub(crate) fn find<'p>(ns: &Namespace, ctx: &Context<'_>, path: &'p str) -> FsResult<Option<Resolved<'p>>> {
    let access = Access::new(ctx);
    match resolve(ns, ctx, &access, path, Purpose::Read) {
        Ok(resolved) => Ok(Some(resolved)),
        Err(FsError::AccessDenied(_)) if access.is_superuser => Ok(None),
        Err(error) => Err(error),
    }
}

/// The status of an inode, for replies such as that of `create`. `None` once it is gone.
pub fn by_id(ns: &Namespace, inode: InodeId) -> Option<FileStatus<'_>> {
    ns.handle(inode).filter(|_| ns.exported_to(inode).is_none()).map(|handle| ns.tree.status(handle))
}

fn file(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<u32> {
    resolve(ns, ctx, &Access::new(ctx), path, Purpose::Read)?.file(ns)
}

/// Hadoop: `isFileClosed`.
///
/// # Errors
/// The path cannot be resolved (see [`crate::reads`]), does not exist, or is not a file.
pub fn is_closed(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<bool> {
    let resolved = resolve(ns, ctx, &Access::new(ctx), path, Purpose::Read)?;
    let file = resolved.file_called(ns, path)?;
    Ok(resolved.in_snapshot || !ns.tree.inode(file).is_open())
}

/// Hadoop: `getPreferredBlockSize`.
///
/// # Errors
/// The path cannot be resolved (see [`crate::reads`]), does not exist, or is not a file.
pub fn preferred_block_size(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<u64> {
    Ok(ns.tree.attributes_of(file(ns, ctx, path)?).block_size)
}
