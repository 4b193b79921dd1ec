//! Makes the new generation stamp of a repaired pipeline known.

use crate::{
    BlockChange, Context, Namespace, Reply,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    ops::update_block_for_pipeline,
    plannable::plannable,
    store::block_list::{LENGTH_LIMIT, Stored},
};
use base::{Block, FsError, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub holder: String,
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
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<UpdatePipelineEdit>> {
    let Request { holder, old, new } = req;
    let (old, new) = (*old, *new);
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
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

plannable! { Request by plan => Planned<UpdatePipelineEdit>, () "Pipeline not updated" }

impl Operation for UpdatePipelineEdit {
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

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let file = ns.expect(self.inode);
        ns.set_last(file, Stored { block: self.block, committed: false });
        applying.changes.push(BlockChange::Restamped { block: self.block });
        Reply::Unit
    }
}
