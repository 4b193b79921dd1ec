//! Unknown replicas that are not deleted for the time being, and the blocks that are known to be gone.

use base::{BlockId, GenerationStamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Unknown replicas, by storage. There is a bound; beyond it they are counted, and found again by the next full report.
pub struct Held {
    rows: BTreeMap<(u32, BlockId), Row>,
    /// The sum of the rows' lengths, as the data servers told them.
    bytes: u128,
    /// The rows of each storage for which there was no room.
    beyond: BTreeMap<u32, Amount>,
    limit: usize,
}

#[derive(Clone, Copy)]
struct Row {
    stamp: GenerationStamp,
    length: u64,
}

/// A number of replicas, and what they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub replicas: u64,
    pub bytes: u64,
}

impl Amount {
    pub fn add(&mut self, bytes: u64) {
        self.replicas += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub fn plus(self, other: Self) -> Self {
        Self { replicas: self.replicas + other.replicas, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl Held {
    pub fn new(limit: usize) -> Self {
        Self { rows: BTreeMap::new(), bytes: 0, beyond: BTreeMap::new(), limit }
    }

    pub fn add(&mut self, place: u32, id: BlockId, stamp: GenerationStamp, length: u64) {
        self.forget_replica(place, id);
        if self.rows.len() < self.limit {
            self.rows.insert((place, id), Row { stamp, length });
            self.bytes += u128::from(length);
        } else {
            self.beyond.entry(place).or_default().add(length);
        }
    }

    pub fn forget_replica(&mut self, place: u32, id: BlockId) {
        if let Some(row) = self.rows.remove(&(place, id)) {
            self.bytes -= u128::from(row.length);
        }
    }

    /// The storage is lost, or says everything anew.
    pub fn forget_place(&mut self, place: u32) {
        self.take_place(place);
    }

    /// Returns the replicas of this storage whose deletion was held back, and holds them back no longer. Replicas that were
    /// only counted, for want of room, are not among them.
    pub fn take_place(&mut self, place: u32) -> Vec<(BlockId, GenerationStamp)> {
        self.beyond.remove(&place);
        let taken: Vec<_> = self.of_place(place).map(|((_, id), row)| (*id, row.stamp, row.length)).collect();
        for (id, _, _) in &taken {
            self.forget_replica(place, *id);
        }
        taken.into_iter().map(|(id, stamp, _)| (id, stamp)).collect()
    }

    fn of_place(&self, place: u32) -> impl Iterator<Item = (&(u32, BlockId), &Row)> {
        self.rows.range((place, BlockId(0))..=(place, BlockId(u64::MAX)))
    }

    /// How many there are on a storage, whether there was room for them or not.
    pub fn count_of(&self, place: u32) -> u64 {
        self.of_place(place).count() as u64 + self.beyond.get(&place).map_or(0, |amount| amount.replicas)
    }

    pub fn places(&self) -> BTreeSet<u32> {
        self.rows.keys().map(|(place, _)| *place).chain(self.beyond.keys().copied()).collect()
    }

    pub fn amount(&self) -> Amount {
        let bytes = u64::try_from(self.bytes).unwrap_or(u64::MAX);
        let within = Amount { replicas: self.rows.len() as u64, bytes };
        self.beyond.values().fold(within, |sum, amount| sum.plus(*amount))
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.limit);
    }

    /// For the complete check.
    pub fn is_consistent(&self) -> bool {
        let bytes: u128 = self.rows.values().map(|row| u128::from(row.length)).sum();
        self.rows.len() <= self.limit && bytes == self.bytes
    }
}

/// Blocks that the namespace has removed while this server ran, the latest so many: an unknown replica of one of them is
/// no surprise. Deletions that an active before this one had ordered come in as such, perhaps many at once.
pub struct Removed {
    ids: BTreeSet<BlockId>,
    order: VecDeque<BlockId>,
}

/// By eye: more than is usually deleted at once, and some 20 MiB.
const REMOVED_MAX: usize = 1 << 20;

impl Removed {
    pub const fn new() -> Self {
        Self { ids: BTreeSet::new(), order: VecDeque::new() }
    }

    pub fn insert(&mut self, id: BlockId) {
        if !self.ids.insert(id) {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > REMOVED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    pub fn contains(&self, id: BlockId) -> bool {
        self.ids.contains(&id)
    }
}
