//! When the service takes files from their writers, though nobody asks for it: HDFS's `LeaseManager.Monitor`.
//!
//! A writer that was silent for longer than the hard limit loses its files. A file whose last block is being recovered
//! is looked at again and again, since a recovery may lead to nothing: its data servers may be gone, and so may the
//! server that ordered it. [`crate::ops::release_lease`] says what becomes of each file.
//!
//! Only the active does this. It knows of renewals what came to itself: a new one begins with [`Renewals::new`], and each
//! writer has all of its time again.

use crate::{Namespace, Renewals, ops::release_lease::RECOVERY_HOLDER};
use base::{InodeId, Moment};
use std::sync::Arc;

/// The time between two looks, as in HDFS.
const PERIOD_MS: u64 = 2_000;
/// Files under recovery in one look, so that those which nobody can recover delay no others.
const RECOVERIES_COUNT_MAX: usize = 1_000;
/// Several heartbeats of the data servers, and some time to reconnect.
const SETTLING_MS: u64 = 30_000;

/// Whether all data servers that live have had the time to say what they have, to a server that was started at
/// `started`. Before, a block of which none has spoken is not taken for one that was never written.
pub fn is_settled(started: Moment, now: Moment) -> bool {
    now.ms_since(started) >= SETTLING_MS
}

/// The facts about the data servers that a look depends on.
#[derive(Clone, Copy, Debug)]
pub struct Outlook {
    /// Nothing may be changed.
    pub in_safe_mode: bool,
    /// See [`is_settled`].
    pub is_settled: bool,
}

/// The times of the looks, and how far the last one came.
#[derive(Debug)]
pub struct LeaseWatch {
    next: Moment,
    /// The file under recovery that was looked at last; the next look goes on behind it.
    resumed: InodeId,
}

/// The files whose leases are to be released.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Holders that were silent for too long, each with its files.
    pub expired: Vec<(Arc<str>, Vec<InodeId>)>,
    /// Files whose recovery may have to be begun again.
    pub unfinished: Vec<InodeId>,
}

impl LeaseWatch {
    pub fn new(now: Moment) -> Self {
        Self { next: now.plus_ms(PERIOD_MS), resumed: InodeId(0) }
    }

    /// Whether it is time for [`LeaseWatch::look`].
    pub fn is_due(&self, now: Moment) -> bool {
        now >= self.next
    }

    /// Looks which files are to be taken from their writers now. In safe mode there are none.
    pub fn look(&mut self, ns: &Namespace, renewals: &mut Renewals, outlook: Outlook, now: Moment) -> Due {
        self.next = now.plus_ms(PERIOD_MS);
        if outlook.in_safe_mode {
            return Due::default();
        }
        let expired = renewals.take_hard_expired(ns, now).into_iter();
        let expired = expired.filter(|holder| **holder != *RECOVERY_HOLDER);
        Due {
            expired: expired.map(|holder| (holder.clone(), ns.files_of(&holder))).collect(),
            unfinished: if outlook.is_settled { self.resume(ns) } else { Vec::new() },
        }
    }

    fn resume(&mut self, ns: &Namespace) -> Vec<InodeId> {
        let mut files = ns.files_of(RECOVERY_HOLDER);
        files.extend(ns.truncations());
        files.sort_unstable();
        files.dedup();
        let begin = files.partition_point(|inode| *inode <= self.resumed);
        files.drain(..begin);
        let is_last = files.len() <= RECOVERIES_COUNT_MAX;
        files.truncate(RECOVERIES_COUNT_MAX);
        self.resumed = files.last().filter(|_| !is_last).copied().unwrap_or(InodeId(0));
        files
    }
}
