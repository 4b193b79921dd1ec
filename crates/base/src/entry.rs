//! An entry of a group's log, as the group, the journal and those who apply it speak of it.

use crate::{Epoch, Sn, TxId};
use bytes::Bytes;
use rapidhash::v3::rapidhash_v3;
use std::fmt;

/// The purpose of an entry. The journal and the wire hold its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// An edit of the state machine. The payload is the state machine's own.
    Operation = 1,
    /// A new active's first entry: it commits all that was inherited and raises the id floors.
    EpochStart = 2,
    /// An image has become usable.
    Checkpoint = 3,
    // 4 to 9 are kept for transactions over several groups, 10 for notes about the in-sync set.
}

impl EntryKind {
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Operation),
            2 => Some(Self::EpochStart),
            3 => Some(Self::Checkpoint),
            _ => None,
        }
    }
}

/// A hash over an entry and all entries before it. Two logs whose entries at one place have the same chain
/// are the same up to that place.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain(pub u64);

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A place in a log with the proof of what leads up to it. The default is the empty log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPoint {
    pub id: TxId,
    pub chain: Chain,
}

impl fmt::Display for LogPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.id, self.chain)
    }
}

/// One entry. Entries follow each other without gaps in `sn` and never go back in `epoch`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub id: TxId,
    pub kind: EntryKind,
    /// The chain of the entry before this one.
    pub previous_chain: Chain,
    pub payload: Bytes,
}

impl Entry {
    /// The entry that follows `previous` in `epoch`.
    pub fn after(previous: LogPoint, epoch: Epoch, kind: EntryKind, payload: Bytes) -> Self {
        let id = TxId { epoch, sn: Sn(previous.id.sn.0 + 1) };
        Self { id, kind, previous_chain: previous.chain, payload }
    }

    /// The point of the log right behind this entry.
    ///
    /// The chain is `h(previous chain, epoch, sn, kind, h(payload))`, all little-endian, `h` being
    /// rapidhash version 3 with its default seed. It finds diverged logs, not forgers.
    pub fn point(&self) -> LogPoint {
        let mut link = [0; 33];
        link[..8].copy_from_slice(&self.previous_chain.0.to_le_bytes());
        link[8..16].copy_from_slice(&self.id.epoch.0.to_le_bytes());
        link[16..24].copy_from_slice(&self.id.sn.0.to_le_bytes());
        link[24] = self.kind as u8;
        link[25..].copy_from_slice(&rapidhash_v3(&self.payload).to_le_bytes());
        LogPoint { id: self.id, chain: Chain(rapidhash_v3(&link)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_is_the_one_in_the_journals_on_disk() {
        let first =
            Entry::after(LogPoint::default(), Epoch(1), EntryKind::Operation, Bytes::from_static(b"mkdir"));
        assert_eq!(first.id, TxId { epoch: Epoch(1), sn: Sn(1) });
        assert_eq!(first.point().chain, Chain(GOLDEN));
    }

    const GOLDEN: u64 = 0x9a3f_5122_4544_d8d4;
}
