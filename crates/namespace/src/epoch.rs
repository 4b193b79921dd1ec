//! What a new epoch means to the tree: ids that no cut-off tail can have used.

use crate::Namespace;
use base::{BlockId, GenerationStamp, InodeId, TxId};

impl Namespace {
    /// The first entry of an epoch: raises the id counters by these steps, so that an id given out in a tail
    /// that was cut off is never used again. The same on every member, from the journal.
    pub fn start_epoch(&mut self, at: TxId, inodes: u64, blocks: u64, generation_stamps: u64) {
        let counters = &mut self.tree.counters;
        counters.applied = at;
        counters.last_inode = InodeId(counters.last_inode.0 + inodes);
        counters.last_block = BlockId(counters.last_block.0 + blocks);
        counters.last_stamp = GenerationStamp(counters.last_stamp.0 + generation_stamps);
    }

    /// The newest block id and generation stamp given out: reports about later ones are about the future.
    pub fn last_allocated(&self) -> (BlockId, GenerationStamp) {
        let counters = &self.tree.counters;
        (counters.last_block, counters.last_stamp)
    }
}
