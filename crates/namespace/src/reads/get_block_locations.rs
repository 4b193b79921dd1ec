//! The blocks of a file.

use crate::{Context, FileBlocks, FileStatus, Namespace};
use base::{FsResult, InodeId};

/// The blocks that overlap `length` bytes from `offset`. A path that names nothing is an error.
pub fn get(ns: &Namespace, ctx: &Context<'_>, path: &str, offset: u64, length: u64) -> FsResult<FileBlocks> {
    let _ = (ns, ctx, path, offset, length);
    todo!()
}

/// All blocks of a file, for located listings and statuses; `None` if it is not a file.
pub fn by_id(ns: &Namespace, inode: InodeId) -> Option<FileBlocks> {
    let _ = (ns, inode);
    todo!()
}

/// Hadoop: `getLocatedFileInfo`. `None` if there is no such file; a directory has no blocks.
pub fn get_located_file_info<'ns>(
    ns: &'ns Namespace,
    ctx: &Context<'_>,
    path: &str,
) -> FsResult<Option<(FileStatus<'ns>, Option<FileBlocks>)>> {
    let _ = (ns, ctx, path);
    todo!()
}
