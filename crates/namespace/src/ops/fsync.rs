//! Records how much of the last block has been flushed.

use crate::{
    Context, Namespace, Reply,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    lease,
    operation::{Applying, Operation},
    plannable::plannable,
    store::{
        NONE,
        block_list::{LENGTH_LIMIT, Stored},
    },
};
use base::{FsError, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub holder: String,
    /// -1: not told.
    pub last_block_length: i64,
    /// 0 from clients that do not know it.
    pub inode: InodeId,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FsyncEdit {
    pub inode: InodeId,
    pub last_block_length: u64,
}

record_fields! { FsyncEdit { inode, last_block_length } }

/// All blocks are journaled when they are allocated, so that only a new length is news.
///
/// # Errors
/// The caller does not write the file (see [`crate::ops`]); [`FsError::Io`] if the length is beyond what a block can
/// have; or a quota has no room.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<FsyncEdit>> {
    let found = lease::find(ns, ctx, &req.path, req.inode)?;
    let file = lease::check(ns, &found, &req.holder)?;
    match news(ns, file, u64::try_from(req.last_block_length).unwrap_or(0))? {
        Some(edit) => Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?)),
        None => Ok(Planned::NoChange(Reply::Unit)),
    }
}

/// The edit by which the last block of an open file has so many bytes; `None` if that is no news.
///
/// # Errors
/// [`FsError::Io`] if the length is beyond what a block can have.
pub(crate) fn news(ns: &Namespace, file: u32, length: u64) -> FsResult<Option<FsyncEdit>> {
    let last = ns.tree.last_block(file);
    let open = (last != NONE).then(|| ns.tree.blocks.stored(last)).filter(|last| !last.committed);
    // A length that the client learnt before another call went past this one is no news either.
    let Some(last) = open.filter(|last| last.block.length < length) else { return Ok(None) };
    if length >= LENGTH_LIMIT {
        return Err(FsError::Io(format!("Cannot fsync block {} with {length} bytes", last.block)));
    }
    Ok(Some(FsyncEdit { inode: ns.tree.inode(file).id(), last_block_length: length }))
}

plannable! { Request by plan => Planned<FsyncEdit>, (path) "Cannot fsync file {path}" }

impl Operation for FsyncEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.blocks(self.inode);
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.inode);
    }

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {
        // The block counts as a full one until its length is final.
    }

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        let file = ns.expect(self.inode);
        let stored = ns.tree.blocks.stored(ns.tree.last_block(file));
        let block = base::Block { length: self.last_block_length, ..stored.block };
        ns.set_last(file, Stored { block, ..stored });
        Reply::Unit
    }
}
