//! Closes a file that was being written.
//!
//! All its blocks must have enough finished replicas. That is a fact which this module is told; while it is
//! not so, nothing changes, and the plan is made again when a replica is reported.

use crate::{
    BlockChange, BlockFacts, Context, Namespace, Reply,
    charge::{self, ledger::Ledger},
    codec::record_fields,
    edit::Edit,
    footprint::Marks,
    lease,
    operation::{Applying, Operation},
    ops::add_block,
    plannable::plannable,
    store::NONE,
};
use base::{Block, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub holder: String,
    /// The last block with its final length.
    pub last: Option<Block>,
    /// 0 from clients that do not know it.
    pub inode: InodeId,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Apply it; the answer is true.
    Close(Edit<CompleteEdit>),
    /// Closed already by this very call: the answer is true.
    Already,
    /// Too few finished replicas of this block were reported. Plan again when more are, or answer false.
    Waiting(Block),
}

/// Closes a file, whether its writer asks for it or its lease is taken away.
#[derive(Clone, Debug, PartialEq)]
pub struct CompleteEdit {
    pub inode: InodeId,
    /// The last block with its final length, if it was not yet committed.
    pub committed: Option<Block>,
    /// The last block was never written: it goes away.
    pub drop_last: bool,
}

record_fields! { CompleteEdit { inode, committed, drop_last } }

/// # Errors
/// The caller does not write the file (see [`crate::ops`]), unless it has closed it already; [`base::FsError::Io`] if `last`
/// is not the file's last block, or has an impossible length; or a quota has no room.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request, facts: &dyn BlockFacts) -> FsResult<Plan> {
    let found = lease::find(ns, ctx, &req.path, req.inode)?;
    let file = match lease::check(ns, &found, &req.holder) {
        Ok(file) => file,
        Err(error) => return closed_already(ns, &found, req).then_some(Plan::Already).ok_or(error),
    };
    let tree = &ns.tree;
    let last = tree.last_block(file);
    let mut committed = None;
    if last != NONE {
        let stored = tree.blocks.stored(last);
        committed = add_block::commit(ns, file, stored, req.last)?;
        // Another group vouches for the blocks in its pool.
        let blocks = tree.blocks_of(file).map(|stored| stored.block);
        let mut final_blocks = blocks.filter(|block| !ns.is_foreign(block.id));
        let waiting = final_blocks.find(|block| {
            if block.id == stored.block.id {
                // A length that nobody stated is not final.
                (committed.is_none() && !stored.committed)
                    || !facts.is_complete(&committed.unwrap_or(stored.block))
            } else {
                !facts.is_complete(block)
            }
        });
        if let Some(block) = waiting {
            return Ok(Plan::Waiting(committed.filter(|last| last.id == block.id).unwrap_or(block)));
        }
    }
    let edit = CompleteEdit { inode: tree.inode(file).id(), committed, drop_last: false };
    Ok(Plan::Close(Edit::plan(ns, ctx, edit)?))
}

/// A client that missed the answer may ask again: the file is closed and ends with the block it names.
fn closed_already(ns: &Namespace, found: &lease::Found<'_>, req: &Request) -> bool {
    let Some(file) = found.handle else {
        return false;
    };
    let inode = ns.tree.inode(file);
    if inode.is_directory() || inode.is_open() || !ns.tree.is_attached(file) {
        return false;
    }
    let last = ns.tree.last_block(file);
    add_block::is_same(req.last, (last != NONE).then(|| ns.tree.blocks.stored(last)))
}

plannable! { Request by plan with facts => Plan, (path) "Cannot complete file {path}" }

impl Operation for CompleteEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Bool(true))
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
        if self.drop_last {
            charge::drop_last(ns, ledger, file);
        }
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let file = ns.expect(self.inode);
        if let Some(block) = self.committed {
            add_block::apply_commit(ns, file, block, applying.changes);
        }
        if self.drop_last {
            ns.remove_last_block(file, applying.changes);
        }
        ns.close_file(file);
        ns.set_modified(file, applying.time);
        let last = ns.tree.last_block(file);
        if last != NONE && !ns.is_foreign(ns.tree.blocks.stored(last).block.id) {
            applying.changes.push(BlockChange::Completed { block: ns.tree.blocks.stored(last).block });
        }
        Reply::Bool(true)
    }
}
