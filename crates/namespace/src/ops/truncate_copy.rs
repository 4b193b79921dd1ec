//! Cuts a file inside a block that a snapshot shows: HDFS's copy-on-truncate.
//!
//! The snapshot keeps the block. The file gets a new last one in its place, which a recovery fills with the first
//! bytes of the old one; until then the old one stays, whatever becomes of the snapshot.

use crate::{
    BlockChange, Namespace, Reply,
    charge::{self, CutBlock, ledger::Ledger},
    codec::record_fields,
    footprint::Marks,
    operation::{Applying, Operation},
    store::block_list::Stored,
};
use base::{Block, BlockId, FsResult, GenerationStamp, InodeId};

#[derive(Clone, Debug, PartialEq)]
pub struct TruncateCopyEdit {
    pub inode: InodeId,
    /// How many blocks the file has then, the new one included.
    pub kept: u64,
    pub cut: Cut,
    /// The new last block.
    pub block: BlockId,
}

/// How the last of the blocks that stay is made shorter.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    pub holder: Box<str>,
    pub machine: Box<str>,
    /// The stamp of the recovery, and of the block once it is shorter.
    pub stamp: GenerationStamp,
    /// Bytes of the block that stay; at least one.
    pub length: u64,
}

record_fields! { Cut { holder, machine, stamp, length } }
record_fields! { TruncateCopyEdit { inode, kept, cut, block } }

/// # Errors
/// There are no block ids left.
pub(crate) fn planned(ns: &Namespace, file: u32, kept: u64, cut: Cut) -> FsResult<TruncateCopyEdit> {
    let block = ns.tree.counters.next_block()?;
    Ok(TruncateCopyEdit { inode: ns.tree.inode(file).id(), kept, cut, block })
}

impl Operation for TruncateCopyEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Bool(false))
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.blocks(self.inode);
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.inode);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        charge::truncate(ns, ledger, ns.expect(self.inode), self.kept, CutBlock::Copied);
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let file = ns.expect(self.inode);
        let before = self.kept - 1;
        let source =
            ns.tree.blocks_of(file).nth(before as usize).expect("the block that is cut is there").block;
        ns.cut_blocks(file, before, applying.changes);
        ns.set_modified(file, applying.time);
        ns.open_file(file, &self.cut.holder, &self.cut.machine);
        // Until it has its bytes the file is as long as it was and read from the old block, as if that were cut. The stamp
        // is less than the one of the recovery.
        let block = Block { id: self.block, ..source };
        ns.append_block(file, Stored { block, committed: false });
        let replication = ns.tree.attributes_of(file).replication;
        applying.changes.push(BlockChange::Allocated { block, inode: self.inode, replication });
        ns.set_truncation(file, self.cut.stamp, Some(self.cut.length));
        ns.set_source(file, source);
        Reply::Bool(false)
    }
}
