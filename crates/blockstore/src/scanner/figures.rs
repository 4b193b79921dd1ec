//! What the scanners of a server have done since it started, over all volumes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that only rise, but for the two lengths.
#[derive(Debug, Default)]
pub struct ScanFigures {
    /// Replicas that the block scanner has looked at.
    pub blocks: AtomicU64,
    /// Bytes of data and sums that it has read.
    pub bytes: AtomicU64,
    /// Replicas that it has found damaged, each time.
    pub damaged: AtomicU64,
    /// Replicas that it has looked at because somebody could not read them.
    pub suspects: AtomicU64,
    /// Rounds that it has completed: one over one pool on one volume.
    pub rounds: AtomicU64,
    /// How long the last of them took.
    pub last_round_ms: AtomicU64,
    /// Volumes that the directory scanner has compared with memory.
    pub directory_scans: AtomicU64,
    /// How long the last of them took.
    pub last_directory_scan_ms: AtomicU64,
    /// Differences that it has found, each time, by [`Kind`].
    differences: [AtomicU64; Kind::ALL.len()],
}

/// A kind of difference between a volume and the memory of its replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A block file that memory lacks: taken up, if it is whole.
    Unknown,
    /// A replica without a block file: forgotten.
    Missing,
    /// A replica without its meta file: told as damaged.
    MetaMissing,
    /// A replica whose block file has another length: told as damaged.
    Length,
    /// A meta file without a block file: left.
    MetaAlone,
    /// A block file in a directory that is not its own: moved to its own and taken up, if it is whole.
    Misplaced,
    /// A second block file of a replica: left.
    Duplicate,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::Unknown,
        Kind::Missing,
        Kind::MetaMissing,
        Kind::Length,
        Kind::MetaAlone,
        Kind::Misplaced,
        Kind::Duplicate,
    ];

    /// The word for it in figures and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Unknown => "unknown",
            Kind::Missing => "missing",
            Kind::MetaMissing => "meta_missing",
            Kind::Length => "length",
            Kind::MetaAlone => "meta_alone",
            Kind::Misplaced => "misplaced",
            Kind::Duplicate => "duplicate",
        }
    }
}

impl ScanFigures {
    pub(crate) fn count(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn note(&self, kind: Kind) {
        Self::count(&self.differences[kind as usize], 1);
    }

    /// Differences of a kind that were found since the start.
    pub fn differences(&self, kind: Kind) -> u64 {
        self.differences[kind as usize].load(Ordering::Relaxed)
    }
}
