//! All replicas by block id: some thirty bytes for each finalized one.

use crate::{active::Active, replica::ReplicaFacts, volume::VolumeIndex};
use base::{Block, BlockId, GenerationStamp, ReplicaState};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The place and the state of a replica; its path follows from this and its id.
#[derive(Clone)]
pub(crate) enum Record {
    Finalized(Settled),
    /// Found in `rbw` at start.
    Waiting(Settled),
    Active(Arc<Active>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub volume: VolumeIndex,
    /// 0 when the meta file is missing: the metadata server takes such a replica for corrupt, as in Hadoop.
    pub generation_stamp: GenerationStamp,
    pub length: u64,
    /// The number of this finish among all of the pool since the start; 0 for what the start has found. A replica that was
    /// opened again, moved, or removed and made anew, is never equal to the one before, even at the same stamp and length.
    pub turn: u32,
}

#[derive(Default)]
pub(crate) struct ReplicaMap {
    pub records: HashMap<BlockId, Record>,
    /// Blocks whose record is forgotten and whose files are not yet removed: a replica of the same id cannot be made.
    pub removing: HashSet<BlockId>,
    /// Blocks whose replica is being copied to another volume, under a temporary name there.
    pub moving: HashSet<BlockId>,
    /// Blocks whose length is being settled, each with the stamp of the recovery that does it; and, with the stamp that it
    /// has, one whose copy on another volume is about to take its place. Nobody else may change these replicas.
    pub recovering: HashMap<BlockId, GenerationStamp>,
}

impl Record {
    pub fn volume(&self) -> VolumeIndex {
        match self {
            Self::Finalized(settled) | Self::Waiting(settled) => settled.volume,
            Self::Active(active) => active.volume,
        }
    }

    pub fn state(&self) -> ReplicaState {
        match self {
            Self::Finalized(_) => ReplicaState::Finalized,
            Self::Waiting(_) => ReplicaState::WaitingRecovery,
            Self::Active(active) => active.state(),
        }
    }

    pub fn block(&self, id: BlockId) -> Block {
        match self {
            Self::Finalized(settled) | Self::Waiting(settled) => {
                Block { id, generation_stamp: settled.generation_stamp, length: settled.length }
            }
            Self::Active(active) => active.block(),
        }
    }

    pub fn facts(&self, id: BlockId) -> ReplicaFacts {
        match self {
            Self::Active(active) => active.facts(),
            settled => {
                let block = settled.block(id);
                ReplicaFacts { block, state: settled.state(), visible_length: block.length }
            }
        }
    }

    pub fn is_active(&self, active: &Arc<Active>) -> bool {
        matches!(self, Self::Active(this) if Arc::ptr_eq(this, active))
    }
}

impl Settled {
    pub fn block(self, id: BlockId) -> Block {
        Block { id, generation_stamp: self.generation_stamp, length: self.length }
    }
}
