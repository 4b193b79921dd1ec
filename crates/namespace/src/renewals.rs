//! When clients last said that they are alive. Soft: known to the active alone, never journaled.

use crate::{Namespace, store::strings::TEXT_BYTES_MAX};
use base::Moment;
use std::{collections::BTreeMap, sync::Arc};

/// `dfs.namenode.lease-soft-limit-sec` of HDFS: after it another client may take the file over.
pub const SOFT_LIMIT_MS: u64 = 60_000;
/// `dfs.namenode.lease-hard-limit-sec` of HDFS: after it the service closes the file.
pub const HARD_LIMIT_MS: u64 = 20 * 60_000;

/// Ten times the clients of a large cluster. Beyond it newcomers count as silent, so that a stranger who
/// renews under a million names costs other strangers, not memory.
const HOLDERS_MAX: usize = 1_000_000;

/// The times at which lease holders renewed. All leases count as renewed when the record was begun, at
/// start or takeover.
#[derive(Clone, Debug)]
pub struct Renewals {
    since: Moment,
    renewed: BTreeMap<Arc<str>, Moment>,
    /// When room was last made; it takes a walk over all.
    pruned: Moment,
}

impl Renewals {
    pub fn new(now: Moment) -> Self {
        Self { since: now, renewed: BTreeMap::new(), pruned: now }
    }

    /// `renewLease`, and every operation that opens a file for writing.
    pub fn renew(&mut self, holder: &str, now: Moment) {
        if let Some(at) = self.renewed.get_mut(holder) {
            *at = now;
            return;
        }
        // Nobody opened a file under such a name.
        if holder.len() > TEXT_BYTES_MAX {
            return;
        }
        if self.renewed.len() >= HOLDERS_MAX && now.ms_since(self.pruned) >= SOFT_LIMIT_MS {
            self.pruned = now;
            self.renewed.retain(|_, at| now.ms_since(*at) <= SOFT_LIMIT_MS);
        }
        if self.renewed.len() < HOLDERS_MAX {
            self.renewed.insert(holder.into(), now);
        }
    }

    pub fn idle_ms(&self, holder: &str, now: Moment) -> u64 {
        now.ms_since(self.renewed.get(holder).copied().unwrap_or(self.since).max(self.since))
    }

    pub fn is_soft_expired(&self, holder: &str, now: Moment) -> bool {
        self.idle_ms(holder, now) > SOFT_LIMIT_MS
    }

    /// The holders in `tree` that were silent for longer than the hard limit. Call it now and then: it also
    /// forgets those that hold nothing and were silent for as long.
    pub fn take_hard_expired(&mut self, tree: &Namespace, now: Moment) -> Vec<Arc<str>> {
        self.renewed.retain(|_, at| now.ms_since(*at) <= HARD_LIMIT_MS);
        let expired = |holder: &str| self.idle_ms(holder, now) > HARD_LIMIT_MS;
        tree.leases().filter(|(holder, _)| expired(holder)).map(|(holder, _)| holder.into()).collect()
    }
}
