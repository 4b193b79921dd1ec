//! Blocks with too few replicas, the most endangered first, and blocks with all replicas on one rack.

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
    /// As many replicas as are wanted, but all on one rack.
    Misplaced,
    /// No undamaged replica on a live server: nothing to copy from.
    Lost,
}

/// The levels of blocks that can be copied.
const WORKED_ON: [Priority; 4] = [Priority::Highest, Priority::VeryLow, Priority::Low, Priority::Misplaced];
const LEVELS: [Priority; 5] =
    [Priority::Highest, Priority::VeryLow, Priority::Low, Priority::Misplaced, Priority::Lost];

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
    /// Counts the calls, so that lower levels get their turn where only one block can be worked on.
    turn: u8,
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

    pub fn misplaced_count(&self) -> usize {
        self.levels[Priority::Misplaced as usize].len()
    }

    pub fn lost_count(&self) -> usize {
        self.levels[Priority::Lost as usize].len()
    }

    pub fn most_endangered_count(&self) -> usize {
        self.levels[Priority::Highest as usize].len()
    }

    /// How many blocks of each level are next, if `count` are worked on. The upper levels come first, but leave a quarter to those below:
    /// blocks that nobody can copy now must not keep others from being copied.
    fn shares(&mut self, count: usize) -> [usize; WORKED_ON.len()] {
        let lengths = WORKED_ON.map(|level| self.levels[level as usize].len());
        let mut shares = [0; WORKED_ON.len()];
        let mut left = count;
        self.turn = self.turn.wrapping_add(1);
        for at in 0..shares.len() {
            let is_any_below = lengths[at + 1..].iter().any(|length| *length > 0);
            let kept_back = match (is_any_below, left) {
                (false, _) | (_, 0) => 0,
                // Every level counts its own turns: else all keep back at once, and only the lowest gain.
                (true, 1) => usize::from((self.turn >> (2 * at)).is_multiple_of(4)),
                (true, left) => (left / 4).max(1),
            };
            shares[at] = lengths[at].min(left - kept_back);
            left -= shares[at];
        }
        for at in 0..shares.len() {
            let more = left.min(lengths[at] - shares[at]);
            shares[at] += more;
            left -= more;
        }
        shares
    }

    /// The next blocks to work on, at most `count`, in turn within each level.
    pub fn next(&mut self, count: usize) -> Vec<BlockId> {
        let mut chosen = Vec::new();
        for (level, room) in WORKED_ON.into_iter().zip(self.shares(count)) {
            let (set, cursor) = (&self.levels[level as usize], &mut self.cursors[level as usize]);
            let before = chosen.len();
            chosen.extend(set.range(*cursor..).chain(set.range(..*cursor)).take(room));
            *cursor = chosen[before..]
                .last()
                .map_or(BlockId(0), |last: &BlockId| BlockId(last.0.saturating_add(1)));
        }
        chosen
    }
}
