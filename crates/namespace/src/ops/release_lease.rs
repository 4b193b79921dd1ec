//! Takes a file away from a writer that is presumed dead: HDFS's `internalReleaseLease`.
//!
//! A file whose blocks are all finished is closed; a last block that was never written goes away; a new last
//! block that some server finished gets the length that was reported. Else the data servers must agree on a
//! length first: the block gets a new stamp for that, the file another holder, and
//! [`super::commit_block_synchronization`] finishes it.

use crate::{
    BlockFacts, Context, Namespace, Reply,
    access::Access,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::Edit,
    footprint::Marks,
    operation::{Applying, Operation},
    ops::{complete::CompleteEdit, update_block_for_pipeline::next_stamp},
    resolve::{Purpose, resolve},
    store::{NONE, block_list::LENGTH_LIMIT},
};
use base::{Block, BlockId, FsError, FsResult, GenerationStamp, InodeId};

/// The lease holder of a file while its last block is recovered. Hadoop: `HdfsServerConstants.NAMENODE_LEASE_HOLDER`.
pub const RECOVERY_HOLDER: &str = "HDFS_NameNode";

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// No client has the file open.
    Closed,
    /// Apply it: the file is closed then.
    Close(Edit<CompleteEdit>),
    /// The data servers must agree on a length of the last block.
    Recover(Recovery),
    /// Replicas of this block have still to be reported.
    Waiting(Block),
}

/// The recovery of a file's last block. Unless one is under way, `edit` is applied, and then the data servers of `block`
/// recover it under the new stamp.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    pub edit: Edit<StartRecoveryEdit>,
    pub block: Block,
    pub stamp: GenerationStamp,
    /// The bytes that stay, if the file is being truncated.
    pub truncation: Option<u64>,
    /// The block whose first bytes are copied, if that is another one.
    pub source: Option<BlockId>,
}

/// The plan of a request that wants to write a file which a client may have open.
#[derive(Clone, Debug, PartialEq)]
pub enum Freeing<P> {
    /// No silent writer is in the way.
    Free(P),
    /// The file of a silent writer is closed with this edit. Then the request is planned again.
    Close(Edit<CompleteEdit>),
    /// The file of a silent writer must be recovered first, and the request is refused meanwhile.
    Recover(Recovery, FsError),
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
        let body = CompleteEdit { inode, committed, drop_last };
        Plan::Close(Edit::of_service(ns, ctx, body))
    };
    let last = ns.tree.last_block(file);
    if last == NONE {
        return close(None, false);
    }
    let stored = ns.tree.blocks.stored(last);
    let block = stored.block;
    let blocks = ns.tree.blocks_of(file).map(|stored| stored.block);
    let mut earlier = blocks.filter(|other| other.id != block.id && !ns.is_foreign(other.id));
    if let Some(waiting) = earlier.find(|block| !facts.is_complete(block)) {
        return Plan::Waiting(waiting);
    }
    if stored.committed {
        return if ns.is_foreign(block.id) || facts.is_complete(&block) {
            close(None, false)
        } else {
            Plan::Waiting(block)
        };
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
            let edit = Edit::of_service(ns, ctx, edit);
            let source = ns.source_of(file).map(|source| source.id);
            Plan::Recover(Recovery { edit, block, stamp, truncation, source })
        }
        Err(_) => Plan::Waiting(block),
    }
}

/// Has a request go on to which `planned` said [`FsError::RecoveryInProgress`]: the file at `path` is taken from its writer. A
/// client that may create a file there, or write on this one, need not have a right to the file itself for that.
///
/// # Errors
/// That of `planned`, if nothing can be done for the file now.
pub(crate) fn free<P>(
    planned: FsResult<P>,
    ns: &Namespace,
    ctx: &Context<'_>,
    path: &str,
    facts: &dyn BlockFacts,
) -> FsResult<Freeing<P>> {
    let refusal = match planned {
        Ok(planned) => return Ok(Freeing::Free(planned)),
        Err(refusal) => refusal,
    };
    if !matches!(refusal, FsError::RecoveryInProgress(_)) {
        return Err(refusal);
    }
    let Ok(file) = resolve(ns, ctx, &Access::new(ctx), path, Purpose::Other).and_then(|found| found.file(ns))
    else {
        return Err(refusal);
    };
    match plan(ns, ctx, ns.tree.inode(file).id(), facts) {
        Plan::Close(edit) => Ok(Freeing::Close(edit)),
        Plan::Recover(recovery) => Ok(Freeing::Recover(recovery, refusal)),
        Plan::Closed | Plan::Waiting(_) => Err(refusal),
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
