//! Facts about blocks that are given beforehand, where no data server speaks: in tests, simulations and measurements.

use crate::BlockFacts;
use base::{Block, BlockId};
use std::collections::BTreeSet;

/// Stands where a server has its block map. No server uses it.
#[derive(Clone, Debug)]
pub struct GivenFacts {
    finished: Finished,
    is_located: bool,
}

/// The blocks that have enough finished replicas.
#[derive(Clone, Debug)]
enum Finished {
    /// All of them, each with the length that its writer said.
    All,
    /// These, and their replicas have so many bytes.
    Only { blocks: BTreeSet<BlockId>, bytes: u64 },
}

impl Finished {
    const NONE: Self = Self::Only { blocks: BTreeSet::new(), bytes: 0 };
}

impl GivenFacts {
    /// All replicas are there, as their writers said.
    pub const fn all_finished() -> Self {
        Self { finished: Finished::All, is_located: true }
    }

    /// Only these blocks have enough finished replicas, of so many bytes. For every block servers were chosen.
    pub fn only_finished(blocks: impl IntoIterator<Item = BlockId>, bytes: u64) -> Self {
        let blocks = blocks.into_iter().collect();
        Self { finished: Finished::Only { blocks, bytes }, is_located: true }
    }

    /// Servers were chosen for every block, and none of them has spoken yet.
    pub const fn silence() -> Self {
        Self { finished: Finished::NONE, is_located: true }
    }

    /// No server was ever chosen for any block.
    pub const fn nowhere() -> Self {
        Self { finished: Finished::NONE, is_located: false }
    }
}

impl BlockFacts for GivenFacts {
    fn is_complete(&self, block: &Block) -> bool {
        self.recovered_length(block).is_some()
    }

    fn recovered_length(&self, block: &Block) -> Option<u64> {
        match &self.finished {
            Finished::All => Some(block.length),
            Finished::Only { blocks, bytes } => blocks.contains(&block.id).then_some(*bytes),
        }
    }

    fn is_located(&self, _: &Block) -> bool {
        self.is_located
    }
}
