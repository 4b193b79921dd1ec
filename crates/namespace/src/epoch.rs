//! The effect of a new epoch on the tree: from then on it gives out ids that no cut-off tail can have used.

use crate::{BlockChange, Namespace, UnknownReplicas};
use base::{BlockId, GenerationStamp, TxId};

/// How far the counter of directories is raised at most: no more are in flight, and it has 35 bits for all epochs.
const DIRECTORIES_SKIPPED: u64 = 1_024;

/// The first entry of an epoch raises the counter of blocks by this much for each unclean election whose entries the tree may lack.
const BLOCKS_A_LOSS: u64 = 1 << 30;

/// The part of an epoch's first entry that concerns the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewEpoch {
    /// How far each counter is raised.
    pub inodes: u64,
    pub blocks: u64,
    pub generation_stamps: u64,
    /// The block ids that are skipped are remembered. Entries of earlier programs did not ask for that, so members
    /// that applied those have not kept the ids.
    pub keeps_skipped: bool,
    /// The tree may be older than what is on the data servers.
    pub holds_deletions: bool,
}

impl Namespace {
    /// The first entry of an epoch: raises the id counters, so that an id given out in a tail that was cut off is
    /// never used again. Every member does this from the journal, with an equal result. The block map has to be told
    /// the answer before it hears of any later id.
    pub fn start_epoch(&mut self, at: TxId, new: NewEpoch) -> BlockChange {
        let counters = &mut self.tree.counters;
        counters.applied = at;
        let last_block = counters.last_block;
        counters.skip_inodes(new.inodes);
        counters.skip_directories(new.inodes.min(DIRECTORIES_SKIPPED));
        counters.skip_blocks(new.blocks);
        counters.last_stamp = GenerationStamp(counters.last_stamp.0 + new.generation_stamps);
        if new.keeps_skipped {
            self.tree.unknown.skip(BlockId(last_block.0 + 1)..=counters.last_block);
        }
        if new.holds_deletions {
            self.tree.unknown.hold_since(at.epoch);
            self.begin_lines_of_messages(new.blocks / BLOCKS_A_LOSS);
        }
        BlockChange::UnknownReplicas(self.tree.unknown.clone())
    }

    /// The rules for replicas of blocks that no file has.
    pub fn unknown_replicas(&self) -> &UnknownReplicas {
        &self.tree.unknown
    }

    /// The newest block id and generation stamp given out: reports about later ones are about the future.
    pub fn last_allocated(&self) -> (BlockId, GenerationStamp) {
        let counters = &self.tree.counters;
        (counters.last_block, counters.last_stamp)
    }
}
