//! A replica as its data server tells of it, to the metadata service and to other data servers.

use crate::Block;
use std::fmt;

/// Hadoop's states, with the numbers that they have in block reports. The order counts: the earlier a state, the more
/// a replica in it is worth to a recovery of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplicaState {
    /// Complete: its length and bytes never change at this generation stamp.
    Finalized = 0,
    /// Being written by a client's pipeline. Hadoop: RBW.
    BeingWritten = 1,
    /// Was being written when its server stopped; waits for its block to be recovered. Hadoop: RWR.
    WaitingRecovery = 2,
    /// A recovery of the block is settling its length. Hadoop: RUR.
    UnderRecovery = 3,
    /// Being copied from another server; never reported by Clover, gone after a restart.
    Temporary = 4,
}

impl ReplicaState {
    /// The state with this number in a block report.
    pub fn from_number(number: u64) -> Option<Self> {
        Some(match number {
            0 => Self::Finalized,
            1 => Self::BeingWritten,
            2 => Self::WaitingRecovery,
            3 => Self::UnderRecovery,
            4 => Self::Temporary,
            _ => return None,
        })
    }
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

/// The replica that one data server offers to a recovery of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The replica as it is on disk.
    pub block: Block,
    /// The replica's state before the recovery began.
    pub state: ReplicaState,
}
