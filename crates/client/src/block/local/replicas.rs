//! The replicas that a client has open.

use super::replica::LocalReplica;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// Pool and block.
pub type Key = (String, u64);

/// The replicas that are open.
pub struct Replicas {
    open: Mutex<HashMap<Key, Open>>,
    /// Replicas that are kept open while nobody reads them.
    unused_max: usize,
    /// How long an unused replica is kept open.
    unused_for: Duration,
    /// How long files are used of which no server tells when they go.
    stale_after: Duration,
}

struct Open {
    replica: Arc<LocalReplica>,
    used: Instant,
}

impl Replicas {
    pub fn new(unused_max: usize, unused_for: Duration, stale_after: Duration) -> Self {
        Self { open: Mutex::default(), unused_max, unused_for, stale_after }
    }

    /// The files of a replica of this stamp that hold the block up to `end`, if they are open and may be used.
    pub fn find(&self, key: &Key, stamp: u64, end: u64) -> Option<Arc<LocalReplica>> {
        let mut open = self.open.lock();
        let found = open.get_mut(key)?;
        if found.replica.serves(stamp, end, self.stale_after) {
            found.used = Instant::now();
            return Some(found.replica.clone());
        }
        open.remove(key);
        None
    }

    /// Keeps the files for other readers of the same block.
    pub fn keep(&self, key: Key, replica: Arc<LocalReplica>) {
        let mut open = self.open.lock();
        open.insert(key, Open { replica, used: Instant::now() });
        // A replica that is being read does not count: its readers have its files open anyway.
        let is_unused = |open: &Open| Arc::strong_count(&open.replica) == 1;
        while open.values().filter(|open| is_unused(open)).count() > self.unused_max {
            let oldest = open.iter().filter(|(_, open)| is_unused(open)).min_by_key(|(_, open)| open.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
            open.remove(&key);
        }
    }

    /// Closes a replica once nobody reads it any more.
    pub fn forget(&self, key: &Key) {
        self.open.lock().remove(key);
    }

    /// How often [`Replicas::close_unused`] is worth while, as in Hadoop's client.
    pub fn look_every(&self) -> Duration {
        (self.unused_for / 4).max(Duration::from_millis(10))
    }

    /// Closes the replicas that were not read for long, and the replicas that are not valid any more: a deleted block takes room
    /// on the disk for as long as a process has its files open.
    pub fn close_unused(&self) {
        let now = Instant::now();
        self.open.lock().retain(|_, open| {
            open.replica.serves(0, 0, self.stale_after)
                && (Arc::strong_count(&open.replica) > 1 || now - open.used < self.unused_for)
        });
    }
}
