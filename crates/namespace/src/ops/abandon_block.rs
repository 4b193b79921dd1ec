//! Takes back the last block of a file that is being written, after its pipeline could not be set up.

use crate::{
    BlockChange, Context, Edit, Namespace, Planned, Reply,
    edit::{Body, codec::record_fields},
    lease,
    store::NONE,
};
use base::{BlockId, FsResult, InodeId};

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    pub holder: &'a str,
    pub block: BlockId,
    /// 0 from clients that do not know it.
    pub inode: InodeId,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AbandonBlockEdit {
    pub inode: InodeId,
}

record_fields! { AbandonBlockEdit { inode } }

/// A block that is not the last one is gone already: nothing happens, as in HDFS.
///
/// # Errors
/// The caller does not write the file: see [`crate::ops`].
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let found = lease::find(ns, ctx, req.path, req.inode)?;
    let file = lease::check(ns, &found, req.holder)?;
    let last = ns.tree.last_block(file);
    if last == NONE || ns.tree.blocks.stored(last).block.id != req.block {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let edit = AbandonBlockEdit { inode: ns.tree.inode(file).id() };
    Ok(Planned::Edit(Edit::plan(ns, ctx, Body::AbandonBlock(edit))?))
}

pub(crate) fn apply(ns: &mut Namespace, edit: &AbandonBlockEdit, changes: &mut Vec<BlockChange>) -> Reply {
    let file = ns.expect(edit.inode);
    ns.remove_last_block(file, changes);
    Reply::Unit
}
