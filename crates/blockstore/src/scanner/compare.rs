//! What the directories of a volume have, beside what memory has: values in, values out.

use super::figures::Kind;
use crate::map::Settled;
use base::{BlockId, GenerationStamp, Moment};
use std::{collections::BTreeMap, path::PathBuf};

/// The replica files of one block in one directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// The length of the block file, if there is one.
    pub block: Option<u64>,
    /// The newest meta file.
    pub meta: Option<GenerationStamp>,
    /// Whether there is a meta file of the stamp that memory has; known only where memory has the replica.
    pub has_own_meta: bool,
}

/// A difference, to be looked at a second time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub kind: Kind,
    pub id: BlockId,
    /// What memory has.
    pub settled: Option<Settled>,
    /// The newest meta file beside the block file.
    pub stamp: Option<GenerationStamp>,
    /// The directory, if it is not the block's own.
    pub directory: Option<PathBuf>,
}

/// Compares the files that lie where they should with the replicas that memory has there. Each difference has one kind, the
/// gravest.
pub(crate) fn compare(
    files: &BTreeMap<BlockId, Files>,
    memory: &BTreeMap<BlockId, Settled>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    for (id, settled) in memory {
        let here = files.get(id).cloned().unwrap_or_default();
        let kind = match here.block {
            None => Kind::Missing,
            Some(_) if !here.has_own_meta => Kind::MetaMissing,
            Some(length) if length != settled.length => Kind::Length,
            Some(_) => continue,
        };
        found.push(Difference { kind, id: *id, settled: Some(*settled), stamp: here.meta, directory: None });
    }
    for (id, here) in files.iter().filter(|(id, _)| !memory.contains_key(id)) {
        let kind = match here.block {
            Some(_) => Kind::Unknown,
            None => Kind::MetaAlone,
        };
        found.push(Difference { kind, id: *id, settled: None, stamp: here.meta, directory: None });
    }
    found
}

/// Keeps the directory scanner to its share of each second.
#[derive(Debug)]
pub(crate) struct Throttle {
    ms_per_second: u64,
    /// When the present second began.
    began: Moment,
}

impl Throttle {
    /// `ms_per_second`: 1 to 1000; with 1000 nothing is ever waited for.
    pub fn new(ms_per_second: u64, now: Moment) -> Self {
        Self { ms_per_second, began: now }
    }

    /// How long to wait before the next piece of work.
    pub fn wait_ms(&mut self, now: Moment) -> u64 {
        let worked = now.ms_since(self.began);
        if worked < self.ms_per_second {
            return 0;
        }
        // A piece of work that took longer than its share is paid for, too: with as much rest as the share asks.
        let rest = worked.saturating_mul(1_000 - self.ms_per_second.min(1_000)) / self.ms_per_second;
        self.began = now.plus_ms(rest);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::VolumeIndex;

    const STAMP: GenerationStamp = GenerationStamp(1_001);

    fn settled(length: u64) -> Settled {
        Settled { volume: VolumeIndex(0), generation_stamp: STAMP, length, turn: 0 }
    }

    fn files(block: Option<u64>, meta: Option<u64>, has_own_meta: bool) -> Files {
        Files { block, meta: meta.map(GenerationStamp), has_own_meta }
    }

    #[test]
    fn each_difference_has_its_kind() {
        let on_disk = BTreeMap::from([
            (BlockId(1), files(Some(10), Some(1_001), true)),
            (BlockId(2), files(Some(9), Some(1_001), true)),
            (BlockId(3), files(Some(10), None, false)),
            (BlockId(4), files(Some(10), Some(1_000), false)),
            (BlockId(5), files(None, Some(1_001), true)),
            (BlockId(7), files(Some(10), Some(1_003), false)),
            (BlockId(8), files(Some(10), None, false)),
            (BlockId(9), files(None, Some(1_001), false)),
        ]);
        let memory: BTreeMap<_, _> = (1..=6).map(|id| (BlockId(id), settled(10))).collect();
        let found: Vec<_> = compare(&on_disk, &memory)
            .into_iter()
            .map(|found| (found.id.0, found.kind, found.stamp))
            .collect();
        let stamp = |number| Some(GenerationStamp(number));
        assert_eq!(
            found,
            [
                (2, Kind::Length, stamp(1_001)),
                (3, Kind::MetaMissing, None),
                (4, Kind::MetaMissing, stamp(1_000)),
                (5, Kind::Missing, stamp(1_001)),
                (6, Kind::Missing, None),
                (7, Kind::Unknown, stamp(1_003)),
                (8, Kind::Unknown, None),
                (9, Kind::MetaAlone, stamp(1_001)),
            ]
        );
    }

    #[test]
    fn work_takes_its_share_of_each_second() {
        let at = Moment::from_ms;
        let mut throttle = Throttle::new(250, at(0));
        assert_eq!(throttle.wait_ms(at(100)), 0);
        assert_eq!(throttle.wait_ms(at(250)), 750);
        assert_eq!(throttle.wait_ms(at(1_000)), 0, "the next second begins");
        assert_eq!(throttle.wait_ms(at(1_500)), 1_500, "what took 500 ms rests for three times as long");
        let mut free = Throttle::new(1_000, at(0));
        assert_eq!(free.wait_ms(at(999)), 0);
        assert_eq!(free.wait_ms(at(5_000)), 0);
    }
}
