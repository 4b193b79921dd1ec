//! Replicas of blocks that the namespace does not have.
//!
//! Such a replica is what a deleted file has left on a server that was away, and goes. But it is also what a namespace
//! that has lost its newest part sees everywhere, and then it may be the last copy of something. Four rules tell one from
//! the other:
//!
//! - The namespace has removed the block while this server ran: it goes.
//! - The id is one that a raise of the namespace's counter has skipped: no entry of this log has given it out, so entries
//!   that did are lost. It is never deleted for being unknown, whatever else is allowed.
//! - Deletions are held back since an unclean election: all others stay until an operator allows it. So do replicas of known
//!   blocks with a stamp that is newer than the namespace's, which are only damaged as long as the namespace is right.
//! - Otherwise the rows of a full report are looked at together when it is whole. If they, with what was deleted so on that
//!   server within the last day, are more than a share of its replicas, something is wrong with the namespace, with
//!   the server, or with who says so: they stay, a warning is given, and an operator decides.
//!
//! A single replica that a server has just received, or that waited for the namespace to come so far, does not count
//! towards the share: it is what a file that was deleted while it was written leaves.

use crate::{
    broken::Broken,
    held::{Amount, Held, Removed},
    map::BlockMap,
    words::{HeldBack, ReportedReplica},
};
use base::{BlockId, GenerationStamp, Moment};
use std::ops::RangeInclusive;

pub(crate) struct Unknown {
    /// Rising, none touching another.
    skipped: Vec<RangeInclusive<BlockId>>,
    /// The log says so.
    is_held: bool,
    pub held: Held,
    pub removed: Removed,
}

/// For so many milliseconds the replicas that were deleted as unknown are summed up.
const DAY_MS: u64 = 24 * 3_600_000;

/// How much of what a server holds has gone, or would go, for being unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    /// Ordered to be deleted since `since`.
    deleted: u64,
    since: Option<Moment>,
    /// The share was exceeded: whatever else turns up on this server is held back too.
    pub is_exceeded: bool,
    /// An operator has seen what was held back there, and said that it may go.
    allowed_until: Option<Moment>,
}

/// How an unknown replica came to be heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    FullReport,
    Single,
}

impl Unknown {
    pub fn new(limit: usize) -> Self {
        Self { skipped: Vec::new(), is_held: false, held: Held::new(limit), removed: Removed::new() }
    }

    fn is_skipped(&self, id: BlockId) -> bool {
        let after = self.skipped.partition_point(|range| *range.end() < id);
        self.skipped.get(after).is_some_and(|range| range.contains(&id))
    }
}

impl BlockMap {
    /// Takes what the namespace tells about unknown replicas: the block ids that its counter has skipped, rising, and
    /// whether deletions are held back. This must be called before a block is added whose id lies above a skipped
    /// one.
    pub fn set_unknown_replicas(&mut self, skipped: &[RangeInclusive<BlockId>], is_held: bool, now: Moment) {
        self.latest = now;
        if self.unknown.skipped != skipped {
            self.unknown.skipped = skipped.to_vec();
        }
        let was_held = std::mem::replace(&mut self.unknown.is_held, is_held);
        if was_held && !is_held {
            self.release_held(now);
        }
    }

    /// Allows the deletions that were held back because they were too many at once: an operator has seen them.
    /// Deletions that the log holds back can be allowed by the log only.
    pub fn allow_deletions(&mut self, now: Moment) {
        self.latest = now;
        if !self.unknown.is_held {
            self.release_held(now);
        }
    }

    /// The log holds deletions back.
    pub fn are_deletions_held(&self) -> bool {
        self.unknown.is_held
    }

    /// A replica of a block that is not in the map, and whose id the namespace has gone beyond.
    pub(crate) fn take_unknown(&mut self, place: u32, replica: &ReportedReplica, source: Source) {
        if !self.commanding || !self.storages.is_live(place) {
            return;
        }
        let block = replica.block;
        let server = self.storages.get(place).server;
        let is_expected = self.unknown.removed.contains(block.id)
            || self.servers.get(server).deletions.contains_key(&block.id);
        if is_expected || self.config.rules.break_rule(Broken::UnknownDeletedAtOnce) {
            return self.delete_unknown(place, block.id, block.generation_stamp);
        }
        if self.unknown.is_skipped(block.id) {
            return self.storages.get_mut(place).skipped.add(block.length);
        }
        let is_held = self.unknown.is_held || self.servers.get(server).share.is_exceeded;
        if is_held || source == Source::FullReport {
            self.unknown.held.add(place, block.id, block.generation_stamp, block.length);
        } else {
            self.delete_unknown(place, block.id, block.generation_stamp);
        }
    }

    fn delete_unknown(&mut self, place: u32, id: BlockId, stamp: GenerationStamp) {
        if self.may_command() {
            self.order_deletion(place, id, stamp);
        }
    }

    /// A storage says everything anew.
    pub(crate) fn forget_unknown_of(&mut self, place: u32) {
        self.unknown.held.forget_place(place);
        self.storages.get_mut(place).skipped = Amount::default();
    }

    /// A full report is whole: its unknown replicas go, or there are too many of them.
    pub(crate) fn settle_unknown(&mut self, place: u32, now: Moment) {
        let server = self.storages.get(place).server;
        let found = self.unknown.held.count_of(place);
        if found == 0 || self.unknown.is_held || self.servers.get(server).share.is_exceeded {
            return;
        }
        let places = &self.servers.get(server).storages;
        let known: u64 = places.iter().map(|place| u64::from(self.storages.get(*place).blocks)).sum();
        let share = &mut self.servers.get_mut(server).share;
        if share.since.is_none_or(|since| now.ms_since(since) >= DAY_MS) {
            (share.deleted, share.since) = (0, Some(now));
        }
        let unknown = share.deleted + found;
        let replicas = known + unknown;
        let part = (replicas as f64 * self.config.unknown_share) as u64;
        let is_allowed = share.allowed_until.is_some_and(|until| now < until);
        if unknown > part.max(self.config.unknown_min) && !is_allowed {
            share.is_exceeded = true;
            let server = self.servers.get(server).face.registration.transfer_address();
            return self.events.held_back.push(HeldBack { server, unknown, replicas });
        }
        share.deleted = unknown;
        for (id, stamp) in self.unknown.held.take_place(place) {
            self.delete_unknown(place, id, stamp);
        }
    }

    fn release_held(&mut self, now: Moment) {
        for place in self.unknown.held.places() {
            let server = self.storages.get(place).server;
            // Rows for which there was no room come with the next full report. They were counted in the number that
            // the operator saw.
            self.servers.get_mut(server).share =
                Share { allowed_until: Some(now.plus_ms(DAY_MS)), ..Share::default() };
            for (id, stamp) in self.unknown.held.take_place(place) {
                if self.arena.find(id).is_none() && !self.unknown.is_skipped(id) {
                    self.delete_unknown(place, id, stamp);
                }
            }
        }
        for server in self.servers.iter_mut() {
            server.share.is_exceeded = false;
        }
        // Replicas with newer stamps may go as well.
        self.on_safe_mode_ended();
    }

    /// Forgets the replicas that are held back, because another metadata server commands from now on, or this one
    /// begins to. The reports that the commanding server receives decide about them anew.
    pub(crate) fn forget_held(&mut self) {
        self.unknown.held.clear();
        self.servers.iter_mut().for_each(|server| server.share = Share::default());
        self.storages.iter_mut().for_each(|(_, storage)| storage.skipped = Amount::default());
    }

    /// Whether a replica is kept because of its stamp: entries that the log has lost may have given it out.
    pub(crate) fn is_kept_for_its_stamp(&self, known: GenerationStamp, stamp: GenerationStamp) -> bool {
        self.unknown.is_held && stamp > known
    }

    /// Unknown replicas that are held back, and those that are never deleted because their ids were skipped.
    pub(crate) fn unknown_amounts(&self) -> (Amount, Amount) {
        let live = self.storages.iter().filter(|(_, storage)| storage.is_live());
        let skipped = live.fold(Amount::default(), |sum, (_, storage)| sum.plus(storage.skipped));
        (self.unknown.held.amount(), skipped)
    }
}
