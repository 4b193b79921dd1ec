//! This member's memory of the group's takeovers, for operators and pages.
//!
//! The last takeovers stand in a file of each member beside its store, its own and those that it has heard of: a
//! member that follows asks the active for those of the epochs that it does not know, and each asks all others after
//! its start. So every member can tell of the takeovers of a member that is away, and of those before its own start.
//! Neither the log nor the coordinator is the place for it: nothing is decided by it, it may be lost, and what a
//! takeover took is known only when it is over.

pub mod file;
pub mod unclean;

use crate::member::GroupMember;
use base::{Epoch, Timestamp};
use env::Env;
use file::{TAKEOVERS_MAX, TRIGGER_BYTES_MAX};
use group::Takeover;
use parking_lot::Mutex;
use proto::clover::admin::TakeoverProto;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

#[derive(Default)]
pub struct Chronicle {
    takeovers: Mutex<Takeovers>,
    /// The number of takeovers by this member since its start.
    takeover_count: AtomicU64,
    unclean_elections: AtomicU64,
    has_asked_all: AtomicBool,
}

#[derive(Default)]
struct Takeovers {
    /// The takeovers by epoch: each epoch has one active.
    known: BTreeMap<u64, TakeoverProto>,
    /// The last of this member's that was counted.
    own: Option<Epoch>,
    /// Something is not in the file yet.
    is_changed: bool,
}

impl Takeovers {
    /// Remembers one that is new, and forgets the oldest for it.
    fn add(&mut self, takeover: TakeoverProto) {
        if self.known.contains_key(&takeover.epoch) {
            return;
        }
        let epoch = takeover.epoch;
        self.known.insert(epoch, takeover);
        let oldest =
            if self.known.len() > TAKEOVERS_MAX { self.known.pop_first().map(|(it, _)| it) } else { None };
        self.is_changed |= oldest != Some(epoch);
    }
}

impl Chronicle {
    /// Opens the chronicle with the takeovers and the unclean elections that are noted in this member's directory.
    pub fn open(env: &Env, name_directory: &Path) -> Result<Self, unclean::AuditError> {
        let known = file::load(&*env.disk, name_directory).unwrap_or_else(|reason| {
            let file = name_directory.join(file::FILE_NAME);
            tracing::warn!(file = %file.display(), reason, "the takeovers before this start are forgotten");
            Vec::new()
        });
        let known = known.into_iter().map(|it| (it.epoch, it)).collect();
        let chronicle =
            Self { takeovers: Mutex::new(Takeovers { known, ..Takeovers::default() }), ..Self::default() };
        chronicle.unclean_elections.store(unclean::count(env, name_directory)?, Ordering::Relaxed);
        Ok(chronicle)
    }

    /// Looks whether this member has taken over since the last look: from time to time, and before it tells. It may
    /// have led and given the group away between two looks.
    pub fn look(&self, member: &GroupMember, now: Timestamp) {
        let me = member.me().member.0;
        for takeover in member.status().last_takeovers {
            self.add_own(me, takeover, now.ms);
        }
    }

    fn add_own(&self, member: u32, takeover: Takeover, ended_at_ms: u64) {
        let mut takeovers = self.takeovers.lock();
        if takeovers.own.is_some_and(|last| last >= takeover.epoch) {
            return;
        }
        takeovers.own = Some(takeover.epoch);
        self.takeover_count.fetch_add(1, Ordering::Relaxed);
        takeovers.add(TakeoverProto {
            epoch: takeover.epoch.0,
            member: Some(member),
            trigger: takeover.trigger.to_owned(),
            detect_ms: takeover.detect_ms,
            claim_ms: takeover.claim_ms,
            promise_ms: takeover.promise_ms,
            fence_ms: takeover.fence_ms,
            adopt_ms: takeover.adopt_ms,
            sync_ms: takeover.sync_ms,
            ended_at_ms: Some(ended_at_ms),
        });
    }

    /// Takes in the takeovers that another member tells. A takeover whose epoch has not begun is not believed.
    pub fn learn(&self, told: &[TakeoverProto], epoch: Epoch) {
        let mut takeovers = self.takeovers.lock();
        let is_possible = |it: &&TakeoverProto| {
            (1..=epoch.0).contains(&it.epoch)
                && it.trigger.len() <= TRIGGER_BYTES_MAX
                && it.member.is_some()
                && it.ended_at_ms.is_some()
        };
        told.iter().filter(is_possible).for_each(|it| takeovers.add(it.clone()));
    }

    /// Notes that others are asked now. True if they were not yet since the start.
    pub fn note_asking(&self) -> bool {
        !self.has_asked_all.swap(true, Ordering::Relaxed)
    }

    /// Whether it is known how this epoch began.
    pub fn knows(&self, epoch: Epoch) -> bool {
        epoch == Epoch(0) || self.takeovers.lock().known.contains_key(&epoch.0)
    }

    /// Writes down what is new. Waits for the disk.
    pub fn save(&self, env: &Env, name_directory: &Path) {
        let takeovers = {
            let mut takeovers = self.takeovers.lock();
            if !std::mem::take(&mut takeovers.is_changed) {
                return;
            }
            takeovers.known.values().cloned().collect::<Vec<_>>()
        };
        if let Err(error) = file::store(&*env.disk, name_directory, &takeovers) {
            // Not tried again before there is more to write: the disk has other sorrows.
            tracing::warn!(%error, "the last takeovers could not be written down; a restart forgets them");
        }
    }

    /// The latest last.
    pub fn takeovers(&self) -> Vec<TakeoverProto> {
        self.takeovers.lock().known.values().cloned().collect()
    }

    pub fn takeover_count(&self) -> u64 {
        self.takeover_count.load(Ordering::Relaxed)
    }

    pub fn count_unclean_election(&self) {
        self.unclean_elections.fetch_add(1, Ordering::Relaxed);
    }

    pub fn unclean_elections(&self) -> u64 {
        self.unclean_elections.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
