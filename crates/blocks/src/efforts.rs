//! The blocks whose replicas are being moved to the media of their files' policies, and how far each has come. The rules are in `satisfy.rs`.

use base::{BlockId, Moment};
use std::collections::BTreeMap;

/// Looks in a tick.
const LOOKS_PER_TICK: usize = 1_000;
/// A block that comes no nearer for this long is given up: three times the five minutes of
/// `dfs.storage.policy.satisfier.self.retry.timeout.millis`.
const PATIENCE_MS: u64 = 900_000;

/// A server that moves a replica between its own disks tells of it within this time: as long as a copy may take (`pending_timeout_ms`).
const MOVING_MS: u64 = 300_000;
/// A server that was silent tells within this time what it has moved meanwhile.
const TOLD_AFTER_SILENCE_MS: u64 = 60_000;

/// The blocks whose replicas are to be on the media of their files' policies, and counts of earlier ones.
#[derive(Default)]
pub struct Satisfying {
    pub blocks: BTreeMap<BlockId, Effort>,
    /// Where the next looks begin, so that each block has its turn.
    pub cursor: BlockId,
    /// Replicas that may just be moving within their servers: the places that they leave, and until when that may be. Where they are is not sure:
    /// if the disk that one goes to fails before the move is told, it is gone, and its record still names the disk that it came from.
    moving: BTreeMap<BlockId, Vec<(u32, Moment)>>,
    pub counts: Satisfied,
}

/// The outcomes since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Satisfied {
    /// Blocks that are where their policy wants them, or are gone.
    pub done: u64,
    /// Blocks that could not be moved, for want of room or of a rack, or because they were being written all the time.
    pub given_up: u64,
    /// Moves that were ordered: within a server, and to another one.
    pub orders: u64,
}

/// The attempt to bring the replicas of one block to the media that its file's policy wants.
pub struct Effort {
    pub next_look: Moment,
    /// The block is given up then, if it has come no nearer.
    pub deadline: Moment,
    /// The smallest number of replicas on unwanted media so far.
    pub fewest: usize,
    pub looks_without_place: u8,
    /// Replicas that move within their servers: the places that they leave, and until when they are awaited.
    pub within: Vec<(u32, Moment)>,
    /// Places that a replica was to leave, and has not left.
    pub in_vain: Vec<u32>,
    /// Newcomers that were to receive a copy. One that swallows it is not sent it again.
    pub tried: Vec<u32>,
}

impl Satisfying {
    /// Begins an effort for the block. An effort that is under way goes on.
    pub fn begin(&mut self, id: BlockId, now: Moment) {
        self.blocks.entry(id).or_insert_with(|| Effort {
            next_look: now,
            deadline: now.plus_ms(PATIENCE_MS),
            fewest: usize::MAX,
            looks_without_place: 0,
            within: Vec::new(),
            in_vain: Vec::new(),
            tried: Vec::new(),
        });
    }

    /// The replica at this place is to move within its server: that was ordered, or its server is told now.
    pub fn note_moving(&mut self, id: BlockId, place: u32, now: Moment) {
        let places = self.moving.entry(id).or_default();
        places.retain(|(from, _)| *from != place);
        places.push((place, now.plus_ms(MOVING_MS)));
    }

    /// The server of this place has told that it has the replica elsewhere.
    pub fn note_moved(&mut self, id: BlockId, place: u32) {
        if let Some(places) = self.moving.get_mut(&id) {
            places.retain(|(from, _)| *from != place);
            if places.is_empty() {
                self.moving.remove(&id);
            }
        }
    }

    /// Whether a replica that the block is recorded to have at this place may have moved.
    pub fn may_have_moved(&self, id: BlockId, place: u32) -> bool {
        !self.moving.is_empty()
            && self.moving.get(&id).is_some_and(|places| places.iter().any(|(from, _)| *from == place))
    }

    /// Forgets moves that were ordered so long ago that they are told by now, or were never made. `is_silent`: the server of this place is
    /// not heard. It may have moved the replica, and cannot tell.
    pub fn forget_old_moves(&mut self, now: Moment, is_silent: impl Fn(u32) -> bool) {
        self.moving.retain(|_, places| {
            for (_, until) in places.iter_mut().filter(|(from, _)| is_silent(*from)) {
                *until = (*until).max(now.plus_ms(TOLD_AFTER_SILENCE_MS));
            }
            places.retain(|(_, until)| *until > now);
            !places.is_empty()
        });
    }

    /// The block is gone.
    pub fn remove(&mut self, id: BlockId) {
        if !self.blocks.is_empty() && self.blocks.remove(&id).is_some() {
            self.counts.done += 1;
        }
    }

    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    /// Blocks whose time has come, beginning where the last looks have ended.
    pub fn due(&self, now: Moment) -> Vec<BlockId> {
        let (before, behind) = (self.blocks.range(..self.cursor), self.blocks.range(self.cursor..));
        let due = behind.chain(before).filter(|(_, effort)| effort.next_look <= now);
        due.map(|(id, _)| *id).take(LOOKS_PER_TICK).collect()
    }
}

impl Effort {
    /// So many replicas are still to move. If they are fewer than ever before, the block has all of its time again.
    pub fn note_left(&mut self, moves: usize, now: Moment) {
        if moves < self.fewest {
            (self.fewest, self.deadline) = (moves, now.plus_ms(PATIENCE_MS));
        }
    }
}
