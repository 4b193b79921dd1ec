//! The blocks that a server which is to leave has to keep until others have them.

use crate::{in_turn::InTurn, lap::Lap};
use base::BlockId;

/// Blocks that are noted for one server. If more need it, another lap finds them once these have gone.
const NOTED_MAX: usize = 1_000_000;

/// The search for blocks that need one server, which is to leave.
pub struct Leaving {
    /// All blocks have been looked at when the broom has come here.
    pub until: Lap,
    /// Blocks that need the server, as far as is known.
    pub noted: InTurn,
    /// The number of blocks that were found since the lap began and not noted, for want of room.
    pub beyond: u64,
}

impl Leaving {
    pub fn until(until: Lap) -> Self {
        Self { until, noted: InTurn::default(), beyond: 0 }
    }

    /// A block needs the server.
    pub fn note(&mut self, id: BlockId) {
        if self.noted.len() < NOTED_MAX {
            self.noted.insert(id);
        } else {
            self.beyond += u64::from(!self.noted.contains(id));
        }
    }

    /// The number of blocks that need the server, as far as is known.
    pub fn need(&self) -> u64 {
        self.noted.len() as u64 + self.beyond
    }
}
