//! What this member remembers of the group's life since its start, for operators and pages.

use crate::{
    admin_protocol::{AuditError, unclean_elections},
    core::Core,
};
use base::Epoch;
use env::Env;
use group::Takeover;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

/// Takeovers remembered.
const TAKEOVERS_MAX: usize = 20;

#[derive(Default)]
pub struct Chronicle {
    /// When each was over, in milliseconds since 1970, and how it went.
    takeovers: Mutex<VecDeque<(u64, Takeover)>>,
    takeover_count: AtomicU64,
    unclean_elections: AtomicU64,
}

impl Chronicle {
    /// With the unclean elections that this member's directory has notes of.
    pub fn open(env: &Env, name_directory: &Path) -> Result<Self, AuditError> {
        let count = unclean_elections(env, name_directory)?;
        Ok(Self { unclean_elections: AtomicU64::new(count), ..Self::default() })
    }

    /// Looks whether this member has taken over since the last look: from time to time, and before it tells. It may
    /// have led and given the group away between two looks.
    pub fn look(&self, core: &Core) {
        let last = self.last_epoch();
        let is_new = |takeover: &Takeover| last.is_none_or(|last| takeover.epoch > last);
        for takeover in core.replica.status().last_takeovers.into_iter().filter(is_new) {
            self.add(core.env.clock.timestamp().ms, takeover);
        }
    }

    fn last_epoch(&self) -> Option<Epoch> {
        self.takeovers.lock().back().map(|(_, takeover)| takeover.epoch)
    }

    fn add(&self, ended_at_ms: u64, takeover: Takeover) {
        let mut takeovers = self.takeovers.lock();
        if takeovers.back().is_some_and(|(_, last)| last.epoch == takeover.epoch) {
            return;
        }
        self.takeover_count.fetch_add(1, Ordering::Relaxed);
        if takeovers.len() >= TAKEOVERS_MAX {
            takeovers.pop_front();
        }
        takeovers.push_back((ended_at_ms, takeover));
    }

    /// The latest last.
    pub fn takeovers(&self) -> Vec<(u64, Takeover)> {
        self.takeovers.lock().iter().cloned().collect()
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
mod tests {
    use super::*;

    #[test]
    fn each_takeover_is_remembered_once_and_the_oldest_forgotten() {
        let chronicle = Chronicle::default();
        for epoch in [1, 1, 2] {
            chronicle.add(1000 + epoch, Takeover { epoch: Epoch(epoch), ..Takeover::default() });
        }
        let epochs = |chronicle: &Chronicle| -> Vec<u64> {
            chronicle.takeovers().iter().map(|(_, takeover)| takeover.epoch.0).collect()
        };
        assert_eq!(epochs(&chronicle), [1, 2]);
        for epoch in 3..=30 {
            chronicle.add(1000, Takeover { epoch: Epoch(epoch), ..Takeover::default() });
        }
        assert_eq!(epochs(&chronicle), (11..=30).collect::<Vec<_>>());
        assert_eq!(chronicle.takeover_count(), 30);
    }
}
