//! The states of a replica and what is kept of it in memory.

use base::Block;
use std::fmt;

/// Hadoop's states; the numbers are those of block reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplicaState {
    /// Complete: its length and bytes never change at this generation stamp.
    Finalized = 0,
    /// Being written by a client's pipeline.
    BeingWritten = 1,
    /// Was being written when the server stopped; waits for its lease to be recovered.
    WaitingRecovery = 2,
    /// A recovery of the block is settling its length.
    UnderRecovery = 3,
    /// Being copied from another server; never reported, gone after a restart.
    Temporary = 4,
}

impl fmt::Display for ReplicaState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Finalized => "FINALIZED",
            Self::BeingWritten => "RBW",
            Self::WaitingRecovery => "RWR",
            Self::UnderRecovery => "RUR",
            Self::Temporary => "TEMPORARY",
        })
    }
}

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
