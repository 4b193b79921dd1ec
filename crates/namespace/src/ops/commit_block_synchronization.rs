//! Ends a block recovery: the data servers agreed on a length, or found that nothing was written.

use crate::{
    BlockChange, Context, Namespace, Reply,
    charge::{self, ledger::Ledger},
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    ops::add_block,
    store::{
        NONE,
        block_list::{LENGTH_LIMIT, Stored},
    },
};
use base::{Block, BlockId, FsError, FsResult, GenerationStamp, InodeId};

#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub block: BlockId,
    pub stamp: GenerationStamp,
    pub length: u64,
    pub close_file: bool,
    pub delete_block: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FinishRecoveryEdit {
    pub inode: InodeId,
    /// `None`: the block goes away.
    pub block: Option<Block>,
    pub close: bool,
}

record_fields! { FinishRecoveryEdit { inode, block, close } }

/// The recovery must be the one that was started last.
///
/// # Errors
/// [`FsError::NotFound`] if the file is deleted; [`FsError::Io`] if no open file ends with the block, a later recovery
/// has begun, the length does not fit the file, or the block is to be deleted and is being copied, or had bytes before.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<FinishRecoveryEdit>> {
    let Some(file) = ns.file_of_open_block(req.block).and_then(|inode| ns.handle(inode)) else {
        // A repeated call finds its work done.
        if req.delete_block {
            return Ok(Planned::NoChange(Reply::Unit));
        }
        return Err(FsError::Io(format!("Block (={}) not found", req.block)));
    };
    // A file that only snapshots have is closed as well.
    if !ns.is_held(file) {
        let path = ns.tree.path_of(file);
        return Err(FsError::NotFound(format!(
            "File not found: {path}, likely due to delayed block removal"
        )));
    }
    let inode = ns.tree.inode(file);
    let recovery = ns.tree.open_files.get(inode.content).recovery;
    if recovery != req.stamp.0 {
        return Err(FsError::Io(format!(
            "The recovery id {} does not match current recovery id {recovery} for block {}",
            req.stamp, req.block
        )));
    }
    if req.length >= LENGTH_LIMIT {
        return Err(FsError::Io(format!("Block {} cannot have {} bytes", req.block, req.length)));
    }
    if let Some((_, _, wanted)) = ns.truncation_of(inode.id()).filter(|(_, _, wanted)| req.length > *wanted) {
        return Err(FsError::Io(format!(
            "Block {} is truncated to {wanted} bytes and cannot have {}",
            req.block, req.length
        )));
    }
    // The bytes that stay are in the block that is copied, whatever this server found.
    if req.delete_block && ns.source_of(file).is_some() {
        return Err(FsError::Io(format!("Block {} is copied and cannot be deleted", req.block)));
    }
    // Nor is a block that had bytes before: a data server that is away may have them.
    let known = ns.tree.blocks.stored(ns.tree.last_block(file)).block.length;
    if req.delete_block && known > 0 {
        return Err(FsError::Io(format!("Block {} has {known} bytes and cannot be deleted", req.block)));
    }
    let block = Block { id: req.block, generation_stamp: req.stamp, length: req.length };
    let edit = FinishRecoveryEdit {
        inode: inode.id(),
        block: (!req.delete_block).then_some(block),
        close: req.close_file,
    };
    Ok(Planned::Edit(Edit::of_service(ns, ctx, edit)))
}

impl Operation for FinishRecoveryEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.blocks(self.inode);
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.inode);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        let file = ns.expect(self.inode);
        match self.block {
            None => charge::drop_last(ns, ledger, file),
            // Without closing the block stays open.
            Some(block) if self.close => charge::commit_last(ns, ledger, file, Some(block)),
            Some(_) => {}
        }
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let file = ns.expect(self.inode);
        match self.block {
            None => ns.remove_last_block(file, applying.changes),
            Some(block) => {
                applying.changes.push(BlockChange::Restamped { block });
                if self.close {
                    add_block::apply_commit(ns, file, block, applying.changes);
                } else {
                    ns.set_last(file, Stored { block, committed: false });
                }
            }
        }
        ns.end_copying(file, applying.changes);
        if !self.close && ns.truncations.contains(&self.inode) {
            ns.set_truncation(file, GenerationStamp(0), None);
        }
        if self.close {
            ns.close_file(file);
            ns.set_modified(file, applying.time);
            let last = ns.tree.last_block(file);
            if last != NONE {
                applying.changes.push(BlockChange::Completed { block: ns.tree.blocks.stored(last).block });
            }
        }
        Reply::Unit
    }
}
