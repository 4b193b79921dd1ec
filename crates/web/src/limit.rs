//! What may be done a few times at once, however slow the clients are for whom it is done.

use crate::{connection::Connection, places::Patience};
use parking_lot::Mutex;
use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

/// While others wait for a place, a client that has one may make the server wait for so long at first, and under a flood of slow clients for the shorter
/// time. A connection that stands still for some seconds is nothing unusual among honest clients.
const PATIENCE: Patience = Patience::new(Duration::from_secs(5), Duration::from_secs(1));
/// How often those who wait look for a client that is too slow.
const LOOK_PERIOD: Duration = Duration::from_millis(250);
/// A connection that was told to end is given so long to give its place up, before another one is told.
const END_MAX: Duration = Duration::from_secs(1);

/// A number of places for what is done for a client and moves at the client's pace. When all are taken and others wait, the client that has made the
/// server wait for the longest time loses its connection, and so its place.
pub struct Limit {
    count_max: usize,
    wait: Duration,
    free: Arc<Semaphore>,
    holders: Arc<Mutex<Holders>>,
}

/// The connections that have a place, each under the number of its place.
struct Holders {
    patience: Patience,
    next: u64,
    of: BTreeMap<u64, Connection>,
}

/// A place. It is free again when this is dropped.
pub struct Permit {
    number: u64,
    connection: Connection,
    holders: Arc<Mutex<Holders>>,
    _permit: OwnedSemaphorePermit,
}

impl Limit {
    /// `wait`: a client waits for a place for so long.
    pub fn new(count_max: usize, wait: Duration) -> Self {
        let holders = Holders { patience: PATIENCE, next: 0, of: BTreeMap::new() };
        Self {
            count_max,
            wait,
            free: Arc::new(Semaphore::new(count_max)),
            holders: Arc::new(Mutex::new(holders)),
        }
    }

    /// How many places there are.
    pub fn count_max(&self) -> usize {
        self.count_max
    }

    /// Waits for a place for a request of this connection. `None`: no place has become free in time.
    pub async fn take(&self, connection: &Connection) -> Option<Permit> {
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            self.holders.lock().patience.grow();
            return Some(self.permit(connection, permit));
        }
        let until = Instant::now() + self.wait;
        let mut permit = pin!(self.free.clone().acquire_owned());
        let mut look = Instant::now();
        loop {
            tokio::select! {
                biased;
                permit = &mut permit => return permit.ok().map(|permit| self.permit(connection, permit)),
                () = sleep_until(look.min(until)) => {}
            }
            let now = Instant::now();
            if now >= until {
                return None;
            }
            look = now + if self.holders.lock().cut_slowest() { END_MAX } else { LOOK_PERIOD };
        }
    }

    fn permit(&self, connection: &Connection, permit: OwnedSemaphorePermit) -> Permit {
        connection.hold();
        let number = self.holders.lock().add(connection.clone());
        Permit { number, connection: connection.clone(), holders: self.holders.clone(), _permit: permit }
    }
}

impl Holders {
    fn add(&mut self, connection: Connection) -> u64 {
        let number = self.next;
        self.next += 1;
        self.of.insert(number, connection);
        number
    }

    /// Returns whether a connection ends.
    fn cut_slowest(&mut self) -> bool {
        let slowest = self.of.values().max_by_key(|connection| connection.waited());
        let ends = slowest.is_some_and(|connection| connection.cut(self.patience.now));
        if ends {
            self.patience.shrink();
        }
        ends
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.holders.lock().of.remove(&self.number);
        self.connection.release();
    }
}

#[cfg(test)]
mod tests;
