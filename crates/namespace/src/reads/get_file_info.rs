//! What a path names.

use crate::{
    Context, FileStatus, Namespace,
    access::Access,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult, InodeId};

/// `None` if there is no such file.
pub fn get<'ns>(ns: &'ns Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Option<FileStatus<'ns>>> {
    Ok(target(ns, ctx, path)?.map(|handle| ns.tree.status(handle)))
}

/// An ancestor that is a file hides the path from the superuser, and is an error for others: so HDFS does.
pub(crate) fn target(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Option<u32>> {
    let access = Access::new(ctx);
    match resolve(ns, ctx, &access, path, Purpose::Other) {
        Ok(resolved) => Ok(resolved.target),
        Err(FsError::AccessDenied(_)) if access.is_superuser => Ok(None),
        Err(error) => Err(error),
    }
}

/// The status of an inode, for replies such as that of `create`. `None` once it is gone.
pub fn by_id(ns: &Namespace, inode: InodeId) -> Option<FileStatus<'_>> {
    ns.handle(inode).map(|handle| ns.tree.status(handle))
}

fn file(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<u32> {
    resolve(ns, ctx, &Access::new(ctx), path, Purpose::Other)?.file(ns)
}

/// Hadoop: `isFileClosed`.
pub fn is_closed(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<bool> {
    Ok(!ns.tree.inode(file(ns, ctx, path)?).is_open())
}

/// Hadoop: `getPreferredBlockSize`.
pub fn preferred_block_size(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<u64> {
    Ok(ns.tree.attributes_of(file(ns, ctx, path)?).block_size)
}
