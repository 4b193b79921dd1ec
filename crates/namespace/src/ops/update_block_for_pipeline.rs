//! Gives a writer whose pipeline broke a new generation stamp. The block keeps the old one until
//! [`super::update_pipeline`].

use crate::{
    Context, Namespace, Reply,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    plannable::plannable,
    store::{
        NONE,
        block_list::{LENGTH_LIMIT, Stored},
    },
};
use base::{Block, FsError, FsResult, GenerationStamp, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub block: Block,
    pub holder: String,
    /// The block pool that the client names, for the sentence in safe mode. Nothing is checked against it.
    pub pool: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewStampEdit {
    pub inode: InodeId,
    /// The block as the client named it, with the new stamp.
    pub block: Block,
}

record_fields! { NewStampEdit { inode, block } }

/// The answer is [`Reply::Block`] with the new stamp; its offset means nothing.
///
/// # Errors
/// [`FsError::LeaseExpired`] if the caller does not write the file; [`FsError::Io`] if no open file ends with the
/// block, the file is being truncated, the length is beyond what a block can have, or no generation stamp is left.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<NewStampEdit>> {
    let (file, _) = check(ns, req.block, &req.holder)?;
    if req.block.length >= LENGTH_LIMIT {
        return Err(FsError::Io(format!("Block {} cannot have {} bytes", req.block, req.block.length)));
    }
    let stamp = next_stamp(ns)?;
    let block = Block { generation_stamp: stamp, ..req.block };
    let edit = NewStampEdit { inode: ns.tree.inode(file).id(), block };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

/// # Errors
/// [`FsError::Io`] if no generation stamp is left.
pub(crate) fn next_stamp(ns: &Namespace) -> FsResult<GenerationStamp> {
    let next = GenerationStamp(ns.tree.counters.last_stamp.0 + 1);
    if next.0 < GenerationStamp::LIMIT {
        Ok(next)
    } else {
        Err(FsError::Io("There are no generation stamps left".into()))
    }
}

/// HDFS's `checkUCBlock`: the block is being written, by this holder.
///
/// # Errors
/// [`FsError::Io`] if no open file ends with the block, or the file is being truncated or is deleted;
/// [`FsError::LeaseExpired`] if `holder` does not write it.
pub(crate) fn check(ns: &Namespace, block: Block, holder: &str) -> FsResult<(u32, Stored)> {
    // HDFS has a sentence for each; which of the two it is cannot be told here.
    let missing = || FsError::Io(format!("{block} does not exist or is not UNDER_CONSTRUCTION."));
    let inode = ns.open_blocks.get(&block.id).ok_or_else(missing)?;
    let file = ns.handle(*inode).ok_or_else(missing)?;
    if ns.truncations.contains(inode) {
        return Err(FsError::Io(format!(
            "Unexpected BlockUCState: {block} is UNDER_RECOVERY but not UNDER_CONSTRUCTION"
        )));
    }
    let last = ns.tree.last_block(file);
    if last == NONE || !ns.tree.is_attached(file) {
        return Err(FsError::Io(format!(
            "The file {block} belonged to does not exist or it is not under construction."
        )));
    }
    if ns.tree.writer_of(file).is_none_or(|(owner, _)| owner != holder) {
        return Err(FsError::LeaseExpired(format!(
            "Lease mismatch: {block} is accessed by a non lease holder {holder}"
        )));
    }
    Ok((file, ns.tree.blocks.stored(last)))
}

plannable! { Request by plan => Planned<NewStampEdit>, (; pool, block) "Cannot get a new generation stamp and an access token for block {pool}:{block}" }

impl Operation for NewStampEdit {
    /// `None`: the call is planned anew, and recognises its own repetition.
    fn answer(&self) -> Option<Reply> {
        None
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.blocks(self.inode);
    }

    fn changed(&self, _: &Namespace, _: &mut dyn FnMut(InodeId)) {
        // A snapshot shows nothing of stamps that are to come.
    }

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {}

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        ns.note_stamp(self.block.generation_stamp);
        Reply::Block { inode: self.inode, block: self.block, offset: 0 }
    }
}
