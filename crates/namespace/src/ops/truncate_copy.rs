//! Cuts a file inside a block that a snapshot shows: HDFS's copy-on-truncate.
//!
//! The snapshot keeps the block. The file gets a new last one in its place, which a recovery fills with the first
//! bytes of the old one; until then the old one stays, whatever becomes of the snapshot.

use super::truncate::Cut;
use crate::{BlockChange, Namespace, Reply, edit::codec::record_fields, store::block_list::Stored};
use base::{Block, BlockId, InodeId, Timestamp};

#[derive(Clone, Debug, PartialEq)]
pub struct TruncateCopyEdit {
    pub inode: InodeId,
    /// How many blocks the file has then, the new one included.
    pub kept: u64,
    pub cut: Cut,
    /// The new last block.
    pub block: BlockId,
}

record_fields! { TruncateCopyEdit { inode, kept, cut, block } }

pub(crate) fn planned(ns: &Namespace, file: u32, kept: u64, cut: Cut) -> TruncateCopyEdit {
    let block = BlockId(ns.tree.counters.last_block.0 + 1);
    TruncateCopyEdit { inode: ns.tree.inode(file).id(), kept, cut, block }
}

pub(crate) fn apply(
    ns: &mut Namespace,
    time: Timestamp,
    edit: &TruncateCopyEdit,
    changes: &mut Vec<BlockChange>,
) -> Reply {
    let file = ns.expect(edit.inode);
    let before = edit.kept - 1;
    let source = ns.tree.blocks_of(file).nth(before as usize).expect("the block that is cut is there").block;
    ns.cut_blocks(file, before, changes);
    ns.set_modified(file, time);
    ns.open_file(file, &edit.cut.holder, &edit.cut.machine);
    // Until it has its bytes the file is as long as it was and read from the old block, as if that were cut. The stamp
    // is less than the one of the recovery.
    let block = Block { id: edit.block, ..source };
    ns.append_block(file, Stored { block, committed: false });
    let replication = ns.tree.attributes_of(file).replication;
    changes.push(BlockChange::Allocated { block, inode: edit.inode, replication });
    ns.set_truncation(file, edit.cut.stamp, Some(edit.cut.length));
    ns.set_source(file, source);
    Reply::Bool(false)
}
