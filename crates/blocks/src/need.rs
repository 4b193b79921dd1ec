//! The blocks that a server which is to leave has to keep until others have them.

use crate::lap::Lap;
use base::BlockId;
use std::collections::BTreeSet;

/// Blocks that are noted for one server. If more need it, another lap finds them once these have gone.
const NOTED_MAX: usize = 1_000_000;

/// What is known of a server that is to leave.
pub struct Leaving {
    /// All blocks have been looked at when the broom has come here.
    pub until: Lap,
    /// Blocks that need the server, as far as is known.
    pub noted: BTreeSet<BlockId>,
    /// The number of blocks that were found since the lap began and not noted, for want of room.
    pub beyond: u64,
    /// Where the next look begins.
    cursor: BlockId,
}

impl Leaving {
    pub fn until(until: Lap) -> Self {
        Self { until, noted: BTreeSet::new(), beyond: 0, cursor: BlockId(0) }
    }

    /// A block needs the server.
    pub fn note(&mut self, id: BlockId) {
        if self.noted.len() < NOTED_MAX {
            self.noted.insert(id);
        } else {
            self.beyond += u64::from(!self.noted.contains(&id));
        }
    }

    /// Some of the noted blocks, in turn.
    pub fn next(&mut self, count: usize) -> Vec<BlockId> {
        let (before, behind) = (self.noted.range(..self.cursor), self.noted.range(self.cursor..));
        let next: Vec<BlockId> = behind.chain(before).copied().take(count).collect();
        self.cursor = next.last().map_or(BlockId(0), |last| BlockId(last.0.saturating_add(1)));
        next
    }
}
