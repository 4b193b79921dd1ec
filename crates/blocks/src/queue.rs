//! Blocks with too few replicas, the most endangered first.

use base::BlockId;
use std::{collections::BTreeSet, ops::Bound};

/// How urgent a block is, as HDFS ranks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Blocks with one replica left, of several wanted.
    Highest,
    /// Less than a third of the replicas wanted.
    VeryLow,
    Low,
    /// No undamaged replica on a live server: nothing to copy from.
    Lost,
}

const LEVELS: [Priority; 4] = [Priority::Highest, Priority::VeryLow, Priority::Low, Priority::Lost];

impl Priority {
    pub fn of(live: usize, superfluous: usize, wanted: usize) -> Self {
        match live {
            0 if superfluous > 0 => Self::Highest,
            0 => Self::Lost,
            1 if wanted > 1 => Self::Highest,
            _ if live * 3 < wanted => Self::VeryLow,
            _ => Self::Low,
        }
    }
}

/// The blocks to copy, in one set for each level. A block is in at most one of them; its record says whether it is in
/// any.
#[derive(Default)]
pub struct Queue {
    levels: [BTreeSet<BlockId>; LEVELS.len()],
    /// The block at which the next round begins in each level, so that blocks which cannot be helped now do not keep
    /// the others from their turn.
    cursors: [BlockId; LEVELS.len()],
}

impl Queue {
    /// Moves the block to this level if it was in another one.
    pub fn put(&mut self, id: BlockId, priority: Priority) {
        if self.levels[priority as usize].insert(id) {
            self.remove_except(id, Some(priority));
        }
    }

    pub fn remove(&mut self, id: BlockId) {
        self.remove_except(id, None);
    }

    fn remove_except(&mut self, id: BlockId, kept: Option<Priority>) {
        for level in LEVELS.into_iter().filter(|level| Some(*level) != kept) {
            self.levels[level as usize].remove(&id);
        }
    }

    /// Empties it and returns what was in it.
    pub fn drain(&mut self) -> Vec<BlockId> {
        std::mem::take(self).levels.into_iter().flatten().collect()
    }

    pub fn contains(&self, id: BlockId) -> bool {
        self.levels.iter().any(|level| level.contains(&id))
    }

    pub fn len(&self) -> usize {
        self.levels.iter().map(BTreeSet::len).sum()
    }

    pub fn lost(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.levels[Priority::Lost as usize].iter().copied()
    }

    /// The lost blocks with ids above `after`.
    pub fn lost_behind(&self, after: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        self.levels[Priority::Lost as usize].range((Bound::Excluded(after), Bound::Unbounded)).copied()
    }

    /// The blocks in the queue that are not lost, the most endangered first.
    pub fn endangered(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.levels[..Priority::Lost as usize].iter().flatten().copied()
    }

    pub fn lost_count(&self) -> usize {
        self.levels[Priority::Lost as usize].len()
    }

    pub fn most_endangered_count(&self) -> usize {
        self.levels[Priority::Highest as usize].len()
    }

    /// The next blocks to work on, at most `count`, in turn within each level.
    pub fn next(&mut self, count: usize) -> Vec<BlockId> {
        let mut chosen = Vec::new();
        for level in [Priority::Highest, Priority::VeryLow, Priority::Low] {
            let (set, cursor) = (&self.levels[level as usize], &mut self.cursors[level as usize]);
            let room = count - chosen.len();
            let before = chosen.len();
            chosen.extend(set.range(*cursor..).chain(set.range(..*cursor)).take(room));
            *cursor = chosen[before..]
                .last()
                .map_or(BlockId(0), |last: &BlockId| BlockId(last.0.saturating_add(1)));
        }
        chosen
    }
}
