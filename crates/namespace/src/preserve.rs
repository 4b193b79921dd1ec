//! What an edit must leave visible in snapshots before it changes something.
//!
//! Worked out in one place from what the edit changes, and written into the edit: `apply` keeps what is named
//! there as it was, and never walks upwards to find a snapshot.

use crate::{
    Namespace,
    edit::{Body, DecodeError, codec},
};
use base::InodeId;

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

/// The inodes that an edit's body changes while a snapshot includes them. There are no snapshots yet.
pub(crate) fn of(_ns: &Namespace, _body: &Body) -> Vec<(InodeId, SnapshotId)> {
    Vec::new()
}
