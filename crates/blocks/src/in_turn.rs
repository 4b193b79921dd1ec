//! Blocks that are looked at again, some at a time and each in its turn.

use base::BlockId;
use std::collections::BTreeSet;

/// A set of blocks with the place where the next look begins. So blocks that stay in it do not keep the others from their turn.
#[derive(Default)]
pub struct InTurn {
    blocks: BTreeSet<BlockId>,
    cursor: BlockId,
}

impl InTurn {
    pub fn insert(&mut self, id: BlockId) {
        self.blocks.insert(id);
    }

    pub fn remove(&mut self, id: BlockId) {
        self.blocks.remove(&id);
    }

    pub fn contains(&self, id: BlockId) -> bool {
        self.blocks.contains(&id)
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.blocks.iter().copied()
    }

    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    /// At most `count` of the blocks, which stay in the set.
    pub fn next(&mut self, count: usize) -> Vec<BlockId> {
        let (before, behind) = (self.blocks.range(..self.cursor), self.blocks.range(self.cursor..));
        let next: Vec<BlockId> = behind.chain(before).copied().take(count).collect();
        self.cursor = next.last().map_or(BlockId(0), |last| BlockId(last.0.saturating_add(1)));
        next
    }
}
