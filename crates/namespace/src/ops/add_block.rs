//! Gives a file that is being written its next block.
//!
//! The client names the block that it believes to be the last, with its final length, which is thereby
//! committed. A client that missed the answer asks again with the same previous block, and is given the
//! same new one; anything else is refused.

use crate::{
    BlockChange, BlockFacts, Context, Namespace, Reply,
    charge::{self, ledger::Ledger},
    codec::record_fields,
    edit::Edit,
    entry_limits,
    footprint::Marks,
    lease,
    operation::{Applying, Operation},
    ops::{
        fsync::{self, FsyncEdit},
        update_block_for_pipeline,
    },
    plannable::plannable,
    quota::replicated,
    snapshots::AFTER_ALL,
    store::block_list::{LENGTH_LIMIT, Stored},
};
use base::{Block, FsError, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub holder: String,
    /// The block that the client believes to be the last, with its final length.
    pub previous: Option<Block>,
    /// 0 from clients that do not know it.
    pub inode: InodeId,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Choose targets, then apply; the answer is [`Reply::Block`].
    New { edit: Edit<AddBlockEdit>, block: NewBlock },
    /// The client repeats itself: answer with the last block, as this [`Reply::Block`] has it, and the targets that it
    /// already has. If it has none, choose some.
    Again(Reply),
    /// A quota has no room for the block. HDFS has made a change already when it says so: the length of the block before it
    /// is known. Apply `edit`, which answers no call, and refuse the request.
    Refused { edit: Edit<FsyncEdit>, error: FsError },
}

/// A new block, as its file wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewBlock {
    pub inode: InodeId,
    pub replication: u16,
    pub block_size: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AddBlockEdit {
    pub inode: InodeId,
    /// The last block so far, with its final length, if it was not yet committed.
    pub committed: Option<Block>,
    pub block: Block,
}

record_fields! { AddBlockEdit { inode, committed, block } }

/// # Errors
/// The caller does not write the file, or there is no room (see [`crate::ops`]); [`FsError::Io`] if `previous` is not
/// the file's last block or has an impossible length, or the file has as many blocks as it may;
/// [`FsError::NotReplicatedYet`] if the block before the last is not complete yet; or a quota has no room, and nothing is
/// news.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request, facts: &dyn BlockFacts) -> FsResult<Plan> {
    entry_limits::check_objects(ns, ctx)?;
    let found = lease::find(ns, ctx, &req.path, req.inode)?;
    let file = lease::check(ns, &found, &req.holder)?;
    let tree = &ns.tree;
    let attributes = tree.attributes_of(file);
    let (replication, block_size) = (attributes.replication, attributes.block_size);
    let inode = tree.inode(file).id();
    let mut count = 0u32;
    let mut offset = 0;
    let (mut last, mut penultimate) = (None::<Stored>, None::<Stored>);
    for stored in tree.blocks_of(file) {
        count += 1;
        offset += stored.block.length;
        (penultimate, last) = (last, Some(stored));
    }
    if !is_same(req.previous, last) {
        let is_full = |last: Stored| last.block.length >= block_size || ns.is_foreign(last.block.id);
        let full = last.is_some_and(|last| last.committed && is_full(last));
        if req.previous.is_none() && full {
            // The client appends behind a full block, or one of another group's pool, which it was not told of.
        } else if let Some(last) = last.filter(|_| is_same(req.previous, penultimate)) {
            if last.block.length != 0 {
                return Err(FsError::Io(format!(
                    "Request looked like a retry to allocate block {} but it already contains {} bytes",
                    last.block, last.block.length
                )));
            }
            let reply = Reply::Block { inode, block: last.block, offset };
            return Ok(Plan::Again(reply));
        } else {
            return Err(FsError::Io(format!(
                "Cannot allocate block in {}: passed 'previous' block {} does not match actual last block \
                 in file {}",
                tree.path_of(file),
                name(req.previous),
                name(last.map(|last| last.block))
            )));
        }
    }
    let penultimate = penultimate.filter(|block| !ns.is_foreign(block.block.id));
    if penultimate.is_some_and(|block| !facts.is_complete(&block.block)) {
        return Err(FsError::NotReplicatedYet(format!("Not replicated yet: {}", tree.path_of(file))));
    }
    if count >= ctx.limits.blocks_per_file_max {
        return Err(FsError::Io(format!(
            "File has reached the limit on maximum number of blocks \
             (dfs.namenode.fs-limits.max-blocks-per-file): {count} >= {}",
            ctx.limits.blocks_per_file_max
        )));
    }
    let committed = match last {
        Some(last) => commit(ns, file, last, req.previous)?,
        None => None,
    };
    let block = Block {
        id: tree.counters.next_block()?,
        generation_stamp: update_block_for_pipeline::next_stamp(ns)?,
        length: 0,
    };
    match Edit::plan(ns, ctx, AddBlockEdit { inode, committed, block }) {
        Ok(edit) => Ok(Plan::New { edit, block: NewBlock { inode, replication, block_size } }),
        Err(error) => refused(ns, ctx, file, req, error),
    }
}

/// No data server is asked for a block that a quota refuses.
fn refused(ns: &Namespace, ctx: &Context<'_>, file: u32, req: &Request, error: FsError) -> FsResult<Plan> {
    let length = req.previous.map_or(0, |previous| previous.length);
    match fsync::news(ns, file, length) {
        Ok(Some(edit)) => Ok(Plan::Refused { edit: Edit::of_service(ns, ctx, edit), error }),
        _ => Err(error),
    }
}

fn name(block: Option<Block>) -> String {
    block.map_or_else(|| "null".into(), |block| block.to_string())
}

/// HDFS's `matchingIdAndGenStamp`.
pub(crate) fn is_same(claimed: Option<Block>, stored: Option<Stored>) -> bool {
    let key = |block: Block| (block.id, block.generation_stamp);
    claimed.map(key) == stored.map(|stored| key(stored.block))
}

/// The last block with its final length, when its writer says that it is finished; `None` if that length is known
/// already.
///
/// # Errors
/// [`FsError::Io`] if `claimed` is not the last block, is shorter than what is known of it, or is longer than a block
/// can be.
pub(crate) fn commit(
    ns: &Namespace,
    file: u32,
    last: Stored,
    claimed: Option<Block>,
) -> FsResult<Option<Block>> {
    let Some(claimed) = claimed.filter(|_| !last.committed) else {
        return Ok(None);
    };
    if !is_same(Some(claimed), Some(last)) {
        return Err(FsError::Io(format!(
            "Commit block with mismatching GS. NN has {}, client submits {claimed}",
            last.block
        )));
    }
    if claimed.length < last.block.length || claimed.length >= LENGTH_LIMIT {
        return Err(FsError::Io(format!(
            "Cannot commit block {claimed} of {} with {} bytes: it has at least {} and at most {}",
            ns.tree.path_of(file),
            claimed.length,
            last.block.length,
            LENGTH_LIMIT - 1
        )));
    }
    Ok(Some(claimed))
}

/// Makes the length of the last block final.
pub(crate) fn apply_commit(ns: &mut Namespace, file: u32, block: Block, changes: &mut Vec<BlockChange>) {
    ns.set_last(file, Stored { block, committed: true });
    changes.push(BlockChange::Committed { block });
}

plannable! { Request by plan with facts => Plan, (path) "Cannot add block to {path}" }

impl Operation for AddBlockEdit {
    /// `None`: the call is planned anew, and recognises its own repetition.
    fn answer(&self) -> Option<Reply> {
        None
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.blocks(self.inode);
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.inode);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        let file = ns.expect(self.inode);
        charge::commit_last(ns, ledger, file, self.committed);
        let attributes = ns.tree.attributes_of(file);
        let room =
            |replication| replicated(attributes.block_size as i64, replication, ns.tree.policy_of(file));
        let parent = ns.tree.inode(file).parent;
        ledger.verify(parent, room(attributes.replication), None);
        ledger.charge(parent, room(ns.held_replication(file, AFTER_ALL, &[])));
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let file = ns.expect(self.inode);
        if let Some(block) = self.committed {
            apply_commit(ns, file, block, applying.changes);
        }
        let offset = ns.tree.length_of(file);
        ns.append_block(file, Stored { block: self.block, committed: false });
        let replication = ns.tree.attributes_of(file).replication;
        applying.changes.push(BlockChange::Allocated { block: self.block, inode: self.inode, replication });
        Reply::Block { inode: self.inode, block: self.block, offset }
    }
}
