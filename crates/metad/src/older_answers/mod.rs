//! Calls that are repeated after the retry cache has forgotten them are answered from the journal.
//!
//! [`indexer`] notes on a thread of its own where in the journal each call stands ([`namespace::OlderCalls`]); it is told by
//! the thread that applies ([`feed`]), and reads the journal for what came before. Before a
//! change waits for the writer, its call is looked up there. Nearly always nothing is found, and that is all. Otherwise one
//! other thread reads the few entries in question; the writer and those who read connections wait for no disk.

mod feed;
pub mod indexer;
pub mod lookups;
#[cfg(test)]
mod tests;

use base::{CallOrigin, FsError, FsResult, Sn};
use env::pulse;
use feed::Feed;
use namespace::{Namespace, OlderCalls, RETRY_WINDOW_MS, RetryLookup};
use parking_lot::{Condvar, Mutex, RwLock};
use rpc::{Call, Replier};
use std::{
    collections::VecDeque,
    ops::RangeInclusive,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Calls that wait to be looked for in the journal; who comes then is told to come again.
const LOOKUPS_MAX: usize = 1_000;
/// The answer about a call that the retry cache may have forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Older {
    /// No entry has it, as far back as anything is remembered.
    Nothing,
    /// This server has not been through its journal yet since its start.
    NotYet,
    Known(RetryLookup),
}

impl Older {
    /// # Errors
    /// [`FsError::Retry`] for a call that says that it is repeated, as long as it is not known whether it was carried
    /// out.
    pub fn lookup(self, origin: &CallOrigin) -> FsResult<RetryLookup> {
        match self {
            Self::Known(known) => Ok(known),
            Self::NotYet if origin.retry_count > 0 || origin.repeats > 0 => Err(FsError::Retry(
                "This metadata server has just started and goes through its journal; whether the call was carried out \
                 before is known in a moment."
                    .into(),
            )),
            Self::NotYet | Self::Nothing => Ok(RetryLookup::Miss),
        }
    }
}

/// Goes on with a call once it is known whether it is an old one.
type Proceed = Box<dyn FnOnce(Call, Replier, Older) + Send>;

struct Lookup {
    call: Call,
    reply: Replier,
    places: Vec<RangeInclusive<Sn>>,
    proceed: Proceed,
}

/// See the module's documentation. [`lookups`] has the two ends that know the server.
pub struct OlderAnswers {
    index: RwLock<Option<OlderCalls>>,
    /// Whether there is an index: most servers are never so busy that they need one.
    has_index: AtomicBool,
    /// The entries that the applying thread hands over.
    pub feed: Feed,
    /// True until the journal has been gone through after a start.
    is_filling: AtomicBool,
    lookups: Mutex<Lookups>,
    wake: Condvar,
    looked_up: AtomicU64,
    answered: AtomicU64,
}

#[derive(Default)]
struct Lookups {
    waiting: VecDeque<Lookup>,
    is_closed: bool,
}

impl OlderAnswers {
    /// The index for a namespace as recovery has left it.
    pub fn new(namespace: &Namespace) -> Self {
        Self {
            index: RwLock::new(None),
            has_index: AtomicBool::new(false),
            feed: Feed::default(),
            is_filling: AtomicBool::new(namespace.outruns_retry_cache()),
            lookups: Mutex::default(),
            wake: Condvar::new(),
            looked_up: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        }
    }

    /// Memory of the index.
    pub fn bytes(&self) -> usize {
        self.index.read().as_ref().map_or(0, OlderCalls::bytes)
    }

    /// Entries of the journal among which older calls are found.
    pub fn span(&self) -> u64 {
        self.index.read().as_ref().map_or(0, OlderCalls::span)
    }

    /// Calls that were looked for in the journal.
    pub fn looked_up(&self) -> u64 {
        self.looked_up.load(Ordering::Relaxed)
    }

    /// The number of those lookups that found their call.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// How long a call is remembered, in milliseconds, with the retry cache: at most the ten minutes that are wanted.
    pub fn window_ms(&self, namespace: &Namespace) -> u64 {
        let cached = namespace.retry_window_ms();
        let first_cached = (namespace.applied().sn.0 + 1).saturating_sub(namespace.counts().retry_entries);
        let index = self.index.read();
        let joined = index.as_ref().filter(|index| index.end().0 + 1 >= first_cached);
        joined.map_or(cached, |index| cached.max(index.window_ms())).min(RETRY_WINDOW_MS)
    }

    /// Ends the thread that reads. Calls that wait are dropped, and their clients ask again elsewhere.
    pub fn close(&self) {
        let waiting = {
            let mut lookups = self.lookups.lock();
            lookups.is_closed = true;
            std::mem::take(&mut lookups.waiting)
        };
        drop(waiting);
        self.wake.notify_all();
    }

    /// Gives the call back when it cannot be looked for now.
    fn push(&self, lookup: Lookup) -> Option<Lookup> {
        let mut lookups = self.lookups.lock();
        if lookups.is_closed || lookups.waiting.len() >= LOOKUPS_MAX {
            return Some(lookup);
        }
        lookups.waiting.push_back(lookup);
        drop(lookups);
        self.wake.notify_one();
        None
    }

    fn next(&self) -> Option<Lookup> {
        let mut lookups = self.lookups.lock();
        loop {
            pulse::step();
            if lookups.is_closed {
                return None;
            }
            match lookups.waiting.pop_front() {
                Some(lookup) => return Some(lookup),
                None => drop(self.wake.wait_for(&mut lookups, pulse::IDLE)),
            }
        }
    }
}
