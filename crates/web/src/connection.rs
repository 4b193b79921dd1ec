//! A connection. New connections wait for its place, so it says whether the server waits for its client, and for how long.

use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// The connections for whose clients the server waits. The key is the time from which the server's patience with the client runs, and the number of the
/// connection, because two may have the same time. Patience runs from the beginning of the wait, or later by the grace that the connection has.
pub(crate) type Resting = BTreeMap<(Instant, u64), Connection>;

/// What the connections of a server have in common.
#[derive(Default)]
pub(crate) struct Common {
    pub resting: Mutex<Resting>,
    /// A new connection waits for the place of another one.
    pub is_full: AtomicBool,
}

/// A connection that has had its place for so long ends with its next answer, while others wait. One on which a request always follows the other would
/// keep its place for ever otherwise: the server never waits for its client.
const TURN: Duration = Duration::from_secs(5);
/// A client of which a whole head of a request has come may make the server wait for so much longer than one of which nothing has come: at the pace
/// of a slow line.
const BODYS_GRACE: Duration = Duration::from_secs(1);
/// A connection that has a place among few ([`crate::Limit`]) may make the server wait for so much longer before it loses its place as a connection:
/// it has waited for the other place, and those who wait for that one have more patience too.
const HOLDERS_GRACE: Duration = Duration::from_secs(5);

/// One connection. Requests carry it, among their extensions.
///
/// The server waits for a client from the end of one answer to the end of the next request's headers, while it has use for more of a request's body than
/// has come, and while an answer waits for a client that does not take it. It does not wait for a client while it makes an answer itself.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    number: u64,
    begun: Instant,
    common: Arc<Common>,
    state: Mutex<State>,
    end: Notify,
}

struct State {
    phase: Phase,
    /// The places among few that the connection has.
    held: u32,
}

#[derive(Clone, Copy)]
enum Phase {
    /// The server is at work.
    Busy,
    /// The server waits for the client. `since` may be earlier than the wait; `key` is the time by which it is found among those that rest. If it is not
    /// among them, the connection has been told to end.
    Waits {
        since: Instant,
        key: Instant,
        /// The last bytes of an answer have not gone yet.
        takes: bool,
    },
    Ended,
}

impl Connection {
    pub(crate) fn new(number: u64, common: Arc<Common>) -> Self {
        let state = Mutex::new(State { phase: Phase::Busy, held: 0 });
        Self(Arc::new(Inner { number, begun: Instant::now(), common, state, end: Notify::new() }))
    }

    /// Whether the connection is to end with the answer that is made now, for the sake of others.
    pub(crate) fn has_had_its_turn(&self) -> bool {
        self.0.common.is_full.load(Ordering::Relaxed) && self.0.begun.elapsed() >= TURN
    }

    /// The server waits for the client's next request from now on.
    pub(crate) fn rest(&self) {
        self.rest_since(Instant::now(), Duration::ZERO, false);
    }

    /// All of an answer has been made. The server waits until the client has taken the rest of it ([`Connection::sent`]), and then for its next request.
    pub(crate) fn rest_after_answer(&self) {
        self.rest_since(Instant::now(), BODYS_GRACE, true);
    }

    /// The system has taken all bytes of the answer.
    pub(crate) fn sent(&self) {
        let mut state = self.0.state.lock();
        if let Phase::Waits { key, takes: true, .. } = state.phase
            && self.0.leave(key)
        {
            let now = Instant::now();
            state.phase = Phase::Waits { since: now, key: now, takes: false };
            self.0.common.resting.lock().insert((now, self.0.number), self.clone());
        }
    }

    /// The server waits for a body to move. `already`: the server has waited for so long before, and the client has moved less than a whole piece
    /// since then.
    pub(crate) fn rest_within_body(&self, already: Duration) {
        let now = Instant::now();
        self.rest_since(now.checked_sub(already).unwrap_or(now), BODYS_GRACE, false);
    }

    fn rest_since(&self, since: Instant, grace: Duration, takes: bool) {
        let mut state = self.0.state.lock();
        if !matches!(state.phase, Phase::Busy) {
            return;
        }
        let key = since + if state.held > 0 { HOLDERS_GRACE } else { grace };
        state.phase = Phase::Waits { since, key, takes };
        self.0.common.resting.lock().insert((key, self.0.number), self.clone());
    }

    /// The client has done what the server waited for. Returns false if the connection has been told to end, or has ended: a request that begins
    /// then is not carried out.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.0.state.lock();
        state.phase = match state.phase {
            Phase::Waits { key, .. } if self.0.leave(key) => Phase::Busy,
            Phase::Busy => Phase::Busy,
            Phase::Waits { .. } | Phase::Ended => Phase::Ended,
        };
        matches!(state.phase, Phase::Busy)
    }

    /// The connection has ended.
    pub(crate) fn end(&self) {
        let mut state = self.0.state.lock();
        if let Phase::Waits { key, .. } = state.phase {
            self.0.leave(key);
        }
        state.phase = Phase::Ended;
    }

    /// Comes back when the connection has been told to end.
    pub(crate) async fn until_told(&self) {
        self.0.end.notified().await;
    }

    /// The caller has taken the connection from those that rest.
    pub(crate) fn tell_to_end(&self) {
        self.0.end.notify_one();
    }

    /// How long the server has waited for the client. `None` if the server does not wait for it, or the connection has been told to end.
    pub(crate) fn waited(&self) -> Option<Duration> {
        match self.0.state.lock().phase {
            Phase::Waits { since, key, .. } if self.0.rests(key) => Some(since.elapsed()),
            Phase::Waits { .. } | Phase::Busy | Phase::Ended => None,
        }
    }

    /// Tells the connection to end if the server has waited for its client for so long. Returns whether it does.
    pub(crate) fn cut(&self, patience: Duration) -> bool {
        let state = self.0.state.lock();
        let Phase::Waits { since, key, .. } = state.phase else { return false };
        let ends = since.elapsed() >= patience && self.0.leave(key);
        if ends {
            self.tell_to_end();
        }
        ends
    }

    /// The connection has one more place among few.
    pub(crate) fn hold(&self) {
        self.0.state.lock().held += 1;
    }

    /// The connection has one place fewer among few.
    pub(crate) fn release(&self) {
        self.0.state.lock().held -= 1;
    }
}

impl Inner {
    fn rests(&self, key: Instant) -> bool {
        self.common.resting.lock().contains_key(&(key, self.number))
    }

    /// Leaves those that rest. Returns whether the connection was among them.
    fn leave(&self, key: Instant) -> bool {
        self.common.resting.lock().remove(&(key, self.number)).is_some()
    }
}
