//! The number of a snapshot.

use crate::codec::{self, DecodeError};

/// Snapshots of all directories are numbered in the order in which they were made; a number is never used
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(pub u32);

impl codec::Field for SnapshotId {
    fn encode(&self, out: &mut codec::Writer<'_>) {
        out.number(u64::from(self.0));
    }

    fn decode(input: &mut codec::Reader<'_>) -> Result<Self, DecodeError> {
        input.number_below(1 << 32, "a snapshot id of more than 32 bits").map(|id| Self(id as u32))
    }
}
