//! The log's rules for replicas of blocks that no file has.
//!
//! A data server that reports such a replica is told to delete it: its block was deleted, as far as the tree knows.
//! After a loss, that conclusion is wrong: the tree is then older than the data servers' replicas, and the block may
//! be the only copy of something that a person can still bring back. Two things are remembered, therefore, in the
//! journal and in images: which ids were never given out *by this line of entries*, because a counter was raised over
//! them, and whether deletions are held back until an operator allows them.

use crate::digest::Digester;
use base::{BlockId, Epoch};
use std::ops::RangeInclusive;

/// See the module's description. It is equal on every member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownReplicas {
    /// Ids that a raise of the counter has skipped, rising, with at least one id between two ranges.
    skipped: Vec<RangeInclusive<BlockId>>,
    held_since: Option<Epoch>,
}

/// More ranges than this are not kept: the two with the fewest ids between them become one. Then those few ids count as
/// skipped as well, and unknown replicas of such blocks stay where they are: that costs room, and loses nothing. By
/// eye: a start every day for three years, or 16 KiB.
pub(crate) const RANGES_MAX: usize = 1 << 10;

impl UnknownReplicas {
    /// Ids over which a counter was raised: no entry that is applied here, or ever will be, gives one of them out. A
    /// replica of such a block comes from entries that are lost, and is never deleted for being unknown.
    pub fn skipped(&self) -> &[RangeInclusive<BlockId>] {
        &self.skipped
    }

    /// The epoch that has begun with a loss: no unknown replica is deleted until an operator allows it.
    pub fn held_since(&self) -> Option<Epoch> {
        self.held_since
    }

    pub fn is_skipped(&self, id: BlockId) -> bool {
        let after = self.skipped.partition_point(|range| *range.end() < id);
        self.skipped.get(after).is_some_and(|range| range.contains(&id))
    }

    /// `ids` lie above all that were skipped before.
    pub(crate) fn skip(&mut self, ids: RangeInclusive<BlockId>) {
        if ids.is_empty() {
            return;
        }
        self.skipped.push(ids);
        let last = self.skipped.len() - 1;
        if last > 0 && self.between(last) == 0 {
            self.join(last);
        } else if self.skipped.len() > RANGES_MAX {
            let closest = (1..self.skipped.len()).min_by_key(|at| self.between(*at));
            self.join(closest.expect("there are several"));
        }
    }

    /// How many ids lie between a range and the one before it.
    fn between(&self, at: usize) -> u64 {
        self.skipped[at].start().0 - self.skipped[at - 1].end().0 - 1
    }

    /// Makes one range of this and the one before it.
    fn join(&mut self, at: usize) {
        let upper = self.skipped.remove(at);
        self.skipped[at - 1] = *self.skipped[at - 1].start()..=*upper.end();
    }

    pub(crate) fn hold_since(&mut self, epoch: Epoch) {
        self.held_since = Some(epoch);
    }

    pub(crate) fn allow(&mut self) {
        self.held_since = None;
    }

    pub(crate) fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digester = Digester::new(b'u');
        digester.number(self.held_since.map_or(0, |epoch| epoch.0));
        for range in &self.skipped {
            digester.number(range.start().0);
            digester.number(range.end().0);
        }
        digester.finish()
    }

    /// For an image: `None` for what no member can have written.
    pub(crate) fn read(skipped: Vec<RangeInclusive<BlockId>>, held_since: Option<Epoch>) -> Option<Self> {
        let rises = skipped.windows(2).all(|pair| pair[1].start().0 > pair[0].end().0.saturating_add(1));
        let is_whole = skipped.iter().all(|range| !range.is_empty()) && held_since != Some(Epoch(0));
        (rises && is_whole && skipped.len() <= RANGES_MAX).then_some(Self { skipped, held_since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skips(ranges: &[(u64, u64)]) -> UnknownReplicas {
        let mut unknown = UnknownReplicas::default();
        for (first, last) in ranges {
            unknown.skip(BlockId(*first)..=BlockId(*last));
        }
        unknown
    }

    #[test]
    fn an_id_is_skipped_or_it_was_given_out() {
        let unknown = skips(&[(10, 19), (25, 29)]);
        let skipped: Vec<u64> = (0..40).filter(|id| unknown.is_skipped(BlockId(*id))).collect();
        assert_eq!(skipped, (10..20).chain(25..30).collect::<Vec<_>>());
        assert!(!UnknownReplicas::default().is_skipped(BlockId(5)));
    }

    #[test]
    fn epochs_in_which_no_block_was_made_cost_nothing() {
        let unknown = skips(&[(10, 19), (20, 29), (30, 30), (32, 40), (41, 40)]);
        assert_eq!(unknown.skipped(), [BlockId(10)..=BlockId(30), BlockId(32)..=BlockId(40)]);
    }

    #[test]
    fn the_closest_become_one_when_there_are_too_many() {
        // Four ids are given out between two raises, once only two.
        let ranges: Vec<(u64, u64)> = (1..=RANGES_MAX as u64 + 1)
            .map(|at| (at * 10 - if at == 7 { 2 } else { 0 }, at * 10 + 5))
            .collect();
        let unknown = skips(&ranges);
        assert_eq!(unknown.skipped().len(), RANGES_MAX);
        let is_covered =
            |(first, last): &(u64, u64)| (*first..=*last).all(|id| unknown.is_skipped(BlockId(id)));
        assert!(ranges.iter().all(is_covered), "nothing that was skipped is forgotten");
        assert!(
            unknown.is_skipped(BlockId(66)) && unknown.is_skipped(BlockId(67)),
            "between the two that are one now"
        );
        assert!(!unknown.is_skipped(BlockId(76)), "between two others");
    }

    #[test]
    fn what_no_member_has_written_is_refused() {
        let range = |first, last| BlockId(first)..=BlockId(last);
        assert!(UnknownReplicas::read(vec![range(1, 2), range(4, 4)], Some(Epoch(3))).is_some());
        for skipped in [
            vec![range(2, 1)],
            vec![range(1, 2), range(3, 4)],
            vec![range(5, 6), range(1, 2)],
            vec![range(1, u64::MAX), range(3, 4)],
            (0..=RANGES_MAX as u64).map(|at| range(at * 3, at * 3)).collect(),
        ] {
            assert_eq!(UnknownReplicas::read(skipped, None), None);
        }
        assert_eq!(UnknownReplicas::read(Vec::new(), Some(Epoch(0))), None);
    }
}
