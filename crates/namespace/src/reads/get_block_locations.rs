//! The blocks of a file.

use crate::{
    Context, FileBlock, FileBlocks, FileStatus, Namespace, SnapshotId,
    access::{Access, READ},
    path::Path,
    readable::readable,
    reserved,
    resolve::{Purpose, walk},
    store::block_list::Stored,
};
use base::{FsError, FsResult, InodeId};

/// Asks for the blocks that overlap `length` bytes from `offset`. Java's numbers are signed: above the half of the range they are
/// negative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub offset: u64,
    pub length: u64,
}

readable! {
    Request => FileBlocks, (path) "getBlockLocations", |ns, ctx, req| get(ns, ctx, &req.path, req.offset, req.length)
}

/// Asks for the status of what is at a path, and for the blocks of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusAndBlocks {
    pub path: String,
}

readable! {
    StatusAndBlocks => Option<(FileStatus<'ns>, Option<FileBlocks>)>, (path) "getLocatedFileInfo",
    |ns, ctx, req| get_located_file_info(ns, ctx, &req.path)
}

/// The blocks that overlap `length` bytes from `offset`. A path that names nothing is an error; that is told
/// even to those who may not look there, as by HDFS.
///
/// # Errors
/// [`FsError::InvalidArgument`] if `offset` or `length` is negative as a signed number. The path cannot be resolved,
/// does not exist or is not a file, or the caller may not read it: see [`crate::reads`].
pub fn get(ns: &Namespace, ctx: &Context<'_>, path: &str, offset: u64, length: u64) -> FsResult<FileBlocks> {
    // Before anything is known about the path, as in HDFS: the client's numbers are signed.
    for (what, number) in [("offset", offset), ("length", length)] {
        if number > i64::MAX as u64 {
            let message = format!("Negative {what} is not supported. File: {path}");
            return Err(FsError::InvalidArgument(message));
        }
    }
    let access = Access::new(ctx);
    let resolved = walk(ns, &access, Path::parse(reserved::real(ns, path)?.text)?);
    resolved.check_not_blocked(Purpose::Read)?;
    let file = resolved.file(ns)?;
    // HDFS's `checkUnreadableBySuperuser`.
    if access.enabled && access.is_superuser && is_unreadable_by_superuser(ns, file, resolved.snapshot) {
        return Err(FsError::AccessDenied(format!(
            "Access is denied for {} since the superuser is not allowed to perform this operation.",
            ctx.caller.user
        )));
    }
    if access.enabled {
        resolved.check_traverse(ns, &access)?;
    }
    access.check_target(ns, &resolved, READ)?;
    let mut blocks = blocks_of(ns, file, resolved.snapshot, offset, length);
    let precision = ctx.limits.access_time_precision_ms;
    let accessed = ns.tree.inode(file).accessed().ms;
    blocks.wants_access_time =
        precision != 0 && resolved.snapshot.is_none() && ctx.now.ms > accessed + precision;
    Ok(blocks)
}

fn is_unreadable_by_superuser(ns: &Namespace, file: u32, at: Option<SnapshotId>) -> bool {
    let xattrs = ns.xattrs_at(file, at);
    xattrs.is_some_and(|xattrs| xattrs.all().iter().any(|xattr| xattr.name.is_unreadable_by_superuser()))
}

/// All blocks of a file, for located listings and statuses; `None` if it is not a file.
pub fn by_id(ns: &Namespace, inode: InodeId) -> Option<FileBlocks> {
    by_id_at(ns, inode, None)
}

/// All blocks of a file as a snapshot sees it; `None` if it is not a file.
pub fn by_id_at(ns: &Namespace, inode: InodeId, snapshot: Option<SnapshotId>) -> Option<FileBlocks> {
    let is_here = ns.exported_to(inode).is_none();
    let file = ns.handle(inode).filter(|handle| is_here && ns.tree.inode(*handle).is_file())?;
    Some(blocks_of(ns, file, snapshot, 0, u64::MAX))
}

fn blocks_of(
    ns: &Namespace,
    file: u32,
    snapshot: Option<SnapshotId>,
    offset: u64,
    length: u64,
) -> FileBlocks {
    let inode = ns.tree.inode(file);
    let mut answer = FileBlocks {
        inode: inode.id(),
        length: 0,
        under_construction: inode.is_open() && snapshot.is_none(),
        blocks: Vec::new(),
        last: None,
        is_past: snapshot.is_some(),
        wants_access_time: false,
    };
    // Nothing from somewhere on is the block that is there: HDFS looks at one block at least.
    let end = offset.saturating_add(length.max(1));
    let mut at = 0;
    let source = ns.source_of(file);
    for mut stored in ns.blocks_at(file, snapshot) {
        // Nobody has a byte of a copy until it is done.
        if let Some(block) = source.filter(|_| !stored.committed) {
            stored = Stored { block, committed: true };
        }
        // A snapshot shows a length that is final, whatever became of the file.
        let committed = stored.committed || snapshot.is_some();
        let block = FileBlock { block: stored.block, offset: at, committed };
        at += stored.block.length;
        if committed {
            answer.length = at;
        }
        // As in HDFS, a block that is being written counts with the length that was told so far; a first block of
        // which none was told is in every range. Its true length only its replicas know, and clients ask them about
        // the last block.
        let is_in_range = block.offset < end && at > offset;
        if is_in_range || at == 0 {
            answer.blocks.push(block);
        }
        answer.last = Some(block);
    }
    if snapshot.is_some() {
        answer.length = ns.length_at(file, snapshot);
    }
    answer
}

/// Hadoop: `getLocatedFileInfo`. `None` if there is no such file; a directory has no blocks.
///
/// # Errors
/// The path cannot be resolved: see [`crate::reads`].
pub fn get_located_file_info<'ns>(
    ns: &'ns Namespace,
    ctx: &Context<'_>,
    path: &str,
) -> FsResult<Option<(FileStatus<'ns>, Option<FileBlocks>)>> {
    let Some(status) = super::get_file_info::get(ns, ctx, path)? else {
        return Ok(None);
    };
    let resolved = super::get_file_info::find(ns, ctx, path)?;
    let file = resolved.and_then(|resolved| Some((resolved.target?, resolved.snapshot)));
    let file = file.filter(|(target, _)| ns.tree.inode(*target).is_file());
    Ok(Some((status, file.map(|(file, snapshot)| blocks_of(ns, file, snapshot, 0, u64::MAX)))))
}
