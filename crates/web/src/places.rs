//! The places of a server's connections, and which connection gives its own up when others wait.

use parking_lot::Mutex;
use std::{collections::BTreeMap, future::pending, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until, timeout},
};

/// While others wait for a place, a connection may be without a whole request for so long. A client that sends a byte now and then would otherwise
/// keep a place for as long as it likes.
const PATIENCE: Duration = Duration::from_secs(2);
/// Patience is halved each time that a connection has to give its place up, down to this: then a flood of such clients is passed quickly.
const PATIENCE_LEAST: Duration = Duration::from_millis(50);

/// The connections of a server that have a place and no request: the time since when, and a number that tells two of the same moment apart.
type Resting = BTreeMap<(Instant, u64), Arc<Notify>>;

/// The places that there are.
pub(crate) struct Places {
    free: Arc<Semaphore>,
    resting: Mutex<Resting>,
}

/// How long the server waits at present for connections without a request, while others wait for a place.
pub(crate) struct Patience(Duration);

impl Default for Patience {
    fn default() -> Self {
        Self(PATIENCE)
    }
}

impl Patience {
    fn shrink(&mut self) {
        self.0 = (self.0 / 2).max(PATIENCE_LEAST);
    }

    fn grow(&mut self) {
        self.0 = (self.0 * 2).min(PATIENCE);
    }
}

/// One connection's place. It is free again when this is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    /// Since when the connection has had no request. `None`: a request is being answered.
    rests_since: Mutex<Option<Instant>>,
    cut: Arc<Notify>,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub fn new(count_max: usize) -> Arc<Self> {
        Arc::new(Self { free: Arc::new(Semaphore::new(count_max)), resting: Mutex::default() })
    }

    /// Waits for a place. If all are taken, the connection that has had no request for the longest time gives its own up, once the patience for it is
    /// at an end. `number`: that of the new connection.
    pub async fn take(self: &Arc<Self>, number: u64, patience: &mut Patience) -> Place {
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            patience.grow();
            return self.place(number, permit);
        }
        loop {
            // Where all connections have a request, one of them may come to rest.
            let until = self.oldest().unwrap_or_else(Instant::now) + patience.0;
            tokio::select! {
                biased;
                permit = self.permit() => return self.place(number, permit),
                () = sleep_until(until) => {}
            }
            if self.cut_oldest(patience.0) {
                patience.shrink();
                if let Ok(permit) = timeout(PATIENCE, self.permit()).await {
                    return self.place(number, permit);
                }
            }
        }
    }

    async fn permit(&self) -> OwnedSemaphorePermit {
        match self.free.clone().acquire_owned().await {
            Ok(permit) => permit,
            // It is never closed.
            Err(_) => pending().await,
        }
    }

    fn place(self: &Arc<Self>, number: u64, permit: OwnedSemaphorePermit) -> Place {
        let place = Place {
            places: self.clone(),
            number,
            rests_since: Mutex::new(None),
            cut: Arc::default(),
            _permit: permit,
        };
        place.rest();
        place
    }

    fn oldest(&self) -> Option<Instant> {
        self.resting.lock().first_key_value().map(|((since, _), _)| *since)
    }

    /// Returns whether a connection gives its place up.
    fn cut_oldest(&self, patience: Duration) -> bool {
        let mut resting = self.resting.lock();
        match resting.first_entry() {
            Some(oldest) if oldest.key().0.elapsed() >= patience => {
                oldest.remove().notify_one();
                true
            }
            _ => false,
        }
    }
}

impl Place {
    /// Comes back when the connection has to give its place up.
    pub async fn until_cut(&self) {
        self.cut.notified().await;
    }

    /// A whole request has come. Returns false if the connection has been told to end: the request must not be carried out.
    pub fn begin(&self) -> bool {
        match self.rests_since.lock().take() {
            Some(since) => self.places.resting.lock().remove(&(since, self.number)).is_some(),
            None => true,
        }
    }

    /// The answer has been made, and the connection waits for the next request.
    pub fn rest(&self) {
        let now = Instant::now();
        *self.rests_since.lock() = Some(now);
        self.places.resting.lock().insert((now, self.number), self.cut.clone());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.begin();
    }
}
