//! Makes the new generation stamp of a repaired pipeline known.

use crate::{
    BlockChange, Context, Edit, Namespace, Planned, Reply,
    edit::{Body, codec::record_fields},
    ops::update_block_for_pipeline,
    store::block_list::{LENGTH_LIMIT, Stored},
};
use base::{Block, FsError, FsResult, InodeId};

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub holder: &'a str,
    pub old: Block,
    /// The block of `old` with the new stamp and the length so far.
    pub new: Block,
}

#[derive(Clone, Debug, PartialEq)]
pub struct UpdatePipelineEdit {
    pub inode: InodeId,
    pub block: Block,
}

record_fields! { UpdatePipelineEdit { inode, block } }

/// # Errors
/// [`FsError::LeaseExpired`] if the caller does not write the file; [`FsError::Io`] if no open file ends with the old
/// block, the file is being truncated, or the new block is another one, has a stamp that is not newer or was never
/// given out, or is shorter than the old one or longer than a block can be.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let Request { holder, old, new } = *req;
    let (file, last) = update_block_for_pipeline::check(ns, old, holder)?;
    if new.id != old.id {
        return Err(FsError::Io(format!("{new} and {old} has different block identifier")));
    }
    let stamp = new.generation_stamp;
    // A stamp that was never given out would let a client steal those of others.
    if stamp <= last.block.generation_stamp || stamp > ns.tree.counters.last_stamp {
        return Err(FsError::Io(format!(
            "Update {old} but the new block {new} does not have a larger generation stamp than the last \
             block {}",
            last.block
        )));
    }
    if new.length < last.block.length || new.length >= LENGTH_LIMIT {
        return Err(FsError::Io(format!(
            "Update {old} (size={}) to a smaller size block {new} (size={})",
            last.block.length, new.length
        )));
    }
    let edit = UpdatePipelineEdit { inode: ns.tree.inode(file).id(), block: new };
    Ok(Planned::Edit(Edit::plan(ns, ctx, Body::UpdatePipeline(edit))?))
}

pub(crate) fn apply(ns: &mut Namespace, edit: &UpdatePipelineEdit, changes: &mut Vec<BlockChange>) -> Reply {
    let file = ns.expect(edit.inode);
    ns.set_last(file, Stored { block: edit.block, committed: false });
    changes.push(BlockChange::Restamped { block: edit.block });
    Reply::Unit
}
