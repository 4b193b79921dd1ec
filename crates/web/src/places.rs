//! The places of a server's connections, and which connection gives its own up when others wait.

use crate::connection::{Common, Connection};
use std::{
    future::pending,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until, timeout},
};

/// While others wait for a place, a connection may make the server wait for so long. A client that sends a byte now and then, or takes one, would
/// otherwise keep a place for as long as it likes.
const PATIENCE: Patience = Patience::new(Duration::from_secs(2), Duration::from_millis(50));
/// While a new connection waits for a place, the server looks this often for one that has made it wait for too long. Meanwhile it may be another one
/// than before.
const LOOK_PERIOD: Duration = Duration::from_millis(250);
/// The server gives a connection that it has told to end so much time, before it tells another one.
const END_MAX: Duration = Duration::from_secs(2);

/// How long the server waits for a client at present, while others wait for a place. The time is halved each time that a client has to give its place up:
/// then the server is soon done with a flood of such clients.
pub(crate) struct Patience {
    pub now: Duration,
    most: Duration,
    least: Duration,
}

impl Patience {
    pub const fn new(most: Duration, least: Duration) -> Self {
        Self { now: most, most, least }
    }

    pub fn shrink(&mut self) {
        self.now = (self.now / 2).max(self.least);
    }

    pub fn grow(&mut self) {
        self.now = (self.now * 2).min(self.most);
    }
}

/// The places that there are.
pub(crate) struct Places {
    free: Arc<Semaphore>,
    common: Arc<Common>,
    patience: Patience,
    /// The number of the next connection.
    next: u64,
}

/// One connection's place. It is free again when this is dropped.
pub(crate) struct Place {
    pub connection: Connection,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connection.end();
    }
}

impl Places {
    pub fn new(count_max: usize) -> Self {
        let free = Arc::new(Semaphore::new(count_max));
        Self { free, common: Arc::default(), patience: PATIENCE, next: 0 }
    }

    /// Waits for a place for a new connection. If all are taken, the connection for which the server has waited for the longest time gives its own up,
    /// once the patience for it is at an end; and those that have had their turn end with their next answers.
    pub async fn take(&mut self) -> Place {
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            self.patience.grow();
            return self.place(permit);
        }
        self.common.is_full.store(true, Ordering::Relaxed);
        let permit = self.wait().await;
        self.common.is_full.store(false, Ordering::Relaxed);
        self.place(permit)
    }

    async fn wait(&mut self) -> OwnedSemaphorePermit {
        loop {
            // Where the server waits for none of them, one of them may come to rest.
            let look = Instant::now() + LOOK_PERIOD;
            let until = self.oldest().map_or(look, |oldest| look.min(oldest + self.patience.now));
            tokio::select! {
                biased;
                permit = permit(&self.free) => return permit,
                () = sleep_until(until) => {}
            }
            if self.cut_oldest() {
                self.patience.shrink();
                if let Ok(permit) = timeout(END_MAX, permit(&self.free)).await {
                    return permit;
                }
            }
        }
    }

    fn place(&mut self, permit: OwnedSemaphorePermit) -> Place {
        let number = self.next;
        self.next += 1;
        let connection = Connection::new(number, self.common.clone());
        connection.rest();
        Place { connection, _permit: permit }
    }

    fn oldest(&self) -> Option<Instant> {
        self.common.resting.lock().first_key_value().map(|((from, _), _)| *from)
    }

    /// Returns whether a connection gives its place up.
    fn cut_oldest(&self) -> bool {
        let mut resting = self.common.resting.lock();
        match resting.first_entry() {
            Some(oldest) if oldest.key().0.elapsed() >= self.patience.now => {
                oldest.remove().tell_to_end();
                true
            }
            _ => false,
        }
    }
}

async fn permit(free: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    match free.clone().acquire_owned().await {
        Ok(permit) => permit,
        // It is never closed.
        Err(_) => pending().await,
    }
}

#[cfg(test)]
mod tests;
