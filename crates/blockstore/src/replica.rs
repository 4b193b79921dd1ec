//! The facts about a replica that the store keeps in memory.

use base::{Block, ReplicaState};

/// A replica as reports and look-ups show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaFacts {
    /// Its `length` is the bytes on disk.
    pub block: Block,
    pub state: ReplicaState,
    /// The length that readers may see. While the replica is being written, these are the bytes that the whole
    /// pipeline has acknowledged.
    pub visible_length: u64,
}
