//! What a path names.

use crate::{Context, FileStatus, Namespace};
use base::{FsResult, InodeId};

/// `None` if there is no such file.
pub fn get<'ns>(ns: &'ns Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Option<FileStatus<'ns>>> {
    let _ = (ns, ctx, path);
    todo!()
}

/// The status of an inode, for replies such as that of `create`. `None` once it is gone.
pub fn by_id(ns: &Namespace, inode: InodeId) -> Option<FileStatus<'_>> {
    let _ = (ns, inode);
    todo!()
}

/// Hadoop: `isFileClosed`.
pub fn is_closed(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<bool> {
    let _ = (ns, ctx, path);
    todo!()
}

/// Hadoop: `getPreferredBlockSize`.
pub fn preferred_block_size(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<u64> {
    let _ = (ns, ctx, path);
    todo!()
}
