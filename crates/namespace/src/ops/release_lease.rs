//! Takes a file away from a writer that is presumed dead: HDFS's `internalReleaseLease`.
//!
//! A file whose blocks are all finished is closed; a last block that was never written goes away; a new last
//! block that some server finished gets the length that was reported. Else the data servers must agree on a
//! length first: the block gets a new stamp for that, the file another holder, and
//! [`super::commit_block_synchronization`] finishes it.

use crate::{
    BlockFacts, Context, Edit, Namespace, Reply,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::Body,
    footprint::Marks,
    operation::{Applying, Operation},
    ops::{complete::CompleteEdit, update_block_for_pipeline::next_stamp},
    store::{NONE, block_list::LENGTH_LIMIT},
};
use base::{Block, BlockId, GenerationStamp, InodeId};

/// The lease holder of a file while its last block is recovered. Hadoop: `HdfsServerConstants.NAMENODE_LEASE_HOLDER`.
pub const RECOVERY_HOLDER: &str = "HDFS_NameNode";

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// No client has the file open.
    Closed,
    /// Apply it: the file is closed then.
    Close(Edit),
    /// Apply it, then have the data servers of `block` recover it under the new stamp; to `truncation` bytes, if
    /// the file is being truncated, and from the first bytes of `source`, if that is another block.
    Recover {
        edit: Edit,
        block: Block,
        stamp: GenerationStamp,
        truncation: Option<u64>,
        source: Option<BlockId>,
    },
    /// Replicas of this block have still to be reported.
    Waiting(Block),
}

#[derive(Clone, Debug, PartialEq)]
pub struct StartRecoveryEdit {
    pub inode: InodeId,
    pub holder: Box<str>,
    pub stamp: GenerationStamp,
}

record_fields! { StartRecoveryEdit { inode, holder, stamp } }

/// One file of an expired holder; see [`crate::Renewals::take_hard_expired`] and [`Namespace::files_of`].
/// To be planned again for a recovery that led to nothing: it then gets another stamp.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, inode: InodeId, facts: &dyn BlockFacts) -> Plan {
    let Some(file) = ns.handle(inode).filter(|handle| ns.tree.inode(*handle).is_open()) else {
        return Plan::Closed;
    };
    let close = |committed, drop_last| {
        let body = Body::Complete(CompleteEdit { inode, committed, drop_last });
        Plan::Close(Edit::of_service(ns, ctx, body))
    };
    let last = ns.tree.last_block(file);
    if last == NONE {
        return close(None, false);
    }
    let stored = ns.tree.blocks.stored(last);
    let block = stored.block;
    let mut earlier = ns.tree.blocks_of(file).map(|stored| stored.block).filter(|other| other.id != block.id);
    if let Some(waiting) = earlier.find(|block| !facts.is_complete(block)) {
        return Plan::Waiting(waiting);
    }
    if stored.committed {
        return if facts.is_complete(&block) { close(None, false) } else { Plan::Waiting(block) };
    }
    let truncation = ns.truncation_of(inode).map(|(_, _, length)| length);
    if truncation.is_none() && block.length == 0 && !facts.is_located(&block) {
        return close(None, true);
    }
    let finished = facts.recovered_length(&block).filter(|length| *length < LENGTH_LIMIT);
    // A block that is to be shorter is not finished, whatever the data servers have. Nor is a block that had bytes
    // before: an append, or a repaired pipeline, may have given the replicas another stamp that was not reported yet,
    // and a block finished under the old stamp would have no good replica.
    if truncation.is_none()
        && block.length == 0
        && let Some(length) = finished
    {
        return close(Some(Block { length, ..block }), false);
    }
    match next_stamp(ns) {
        Ok(stamp) => {
            let edit = StartRecoveryEdit { inode, holder: RECOVERY_HOLDER.into(), stamp };
            let edit = Edit::of_service(ns, ctx, Body::StartRecovery(edit));
            let source = ns.source_of(file).map(|source| source.id);
            Plan::Recover { edit, block, stamp, truncation, source }
        }
        Err(_) => Plan::Waiting(block),
    }
}

impl Operation for StartRecoveryEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.blocks(self.inode);
    }

    fn changed(&self, _: &Namespace, _: &mut dyn FnMut(InodeId)) {
        // A snapshot shows nothing of leases, and of stamps that are to come.
    }

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {}

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        let file = ns.expect(self.inode);
        ns.reassign(file, &self.holder, self.stamp);
        Reply::Unit
    }
}
