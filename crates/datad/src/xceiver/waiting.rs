//! Connections that wait for an operation, and which of them give up their place when places are short.
//!
//! A connection has a place from when it is accepted until it ends, also while its client says nothing. If that kept
//! others out, a few thousand silent connections would shut a data server to everybody. So when there is no place for a
//! newcomer, waiting connections are closed: strangers first, which have not asked for anything yet, and the longest
//! waiting first. A client that keeps a connection for later expects that it may be closed, and makes another one.

use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// A connection that was just made has so long to ask for something. A client that means it asks at once.
const GRACE: Duration = Duration::from_millis(500);

/// A connection that has had an operation is kept for so long, even if places are short.
const GRACE_BETWEEN: Duration = Duration::from_secs(1);

/// Of so many waiting connections one is closed in one go; of fewer, one as well.
const CLOSED_AT_ONCE: usize = 64;

/// Since when a connection waits, and a number that no other one has.
type Key = (Instant, u64);

#[derive(Default)]
pub struct Waiting {
    lists: Mutex<Lists>,
    next: AtomicU64,
}

#[derive(Default)]
struct Lists {
    /// The connections that have had no operation yet.
    strangers: BTreeMap<Key, Arc<Notify>>,
    known: BTreeMap<Key, Arc<Notify>>,
}

impl Lists {
    fn of(&mut self, is_known: bool) -> &mut BTreeMap<Key, Arc<Notify>> {
        if is_known { &mut self.known } else { &mut self.strangers }
    }
}

/// One connection's wait; over when dropped.
pub struct Wait<'a> {
    waiting: &'a Waiting,
    is_known: bool,
    key: Key,
    call: Arc<Notify>,
}

impl Waiting {
    /// A connection begins to wait. `is_known`: it has had an operation. `call` is the connection's own, the same each time.
    pub fn begin(&self, call: &Arc<Notify>, is_known: bool) -> Wait<'_> {
        self.begin_at(call.clone(), is_known, Instant::now())
    }

    fn begin_at(&self, call: Arc<Notify>, is_known: bool, now: Instant) -> Wait<'_> {
        let key = (now, self.next.fetch_add(1, Ordering::Relaxed));
        self.lists.lock().of(is_known).insert(key, call.clone());
        Wait { waiting: self, is_known, key, call }
    }

    /// Calls on some to give up their places. Returns how many.
    pub fn close_longest(&self) -> usize {
        self.close_longest_at(Instant::now())
    }

    fn close_longest_at(&self, now: Instant) -> usize {
        let mut lists = self.lists.lock();
        let most = ((lists.strangers.len() + lists.known.len()) / CLOSED_AT_ONCE).max(1);
        let mut closed = 0;
        for (is_known, grace) in [(false, GRACE), (true, GRACE_BETWEEN)] {
            while closed < most
                && let Some(longest) = lists.of(is_known).first_entry()
                && now.saturating_duration_since(longest.key().0) >= grace
            {
                longest.remove().notify_one();
                closed += 1;
            }
        }
        closed
    }
}

impl Wait<'_> {
    /// Returns when the place is to be given up.
    pub async fn is_called(&self) {
        self.call.notified().await;
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.waiting.lists.lock().of(self.is_known).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(waiting: &Waiting, is_known: bool, now: Instant) -> Wait<'_> {
        waiting.begin_at(Arc::default(), is_known, now)
    }

    /// Whether it was called on to give up its place.
    fn is_called(wait: &Wait<'_>) -> bool {
        !wait.waiting.lists.lock().of(wait.is_known).contains_key(&wait.key)
    }

    #[test]
    fn strangers_go_first_and_the_longest_waiting_before_others() {
        let (waiting, now) = (Waiting::default(), Instant::now());
        let known = begin(&waiting, true, now);
        let [late, early] = [200, 100].map(|ms| begin(&waiting, false, now + Duration::from_millis(ms)));
        let then = now + Duration::from_secs(2);
        let mut order = Vec::new();
        for _ in 0..3 {
            assert_eq!(waiting.close_longest_at(then), 1);
            order.push([&known, &late, &early].map(is_called));
        }
        assert_eq!(order, [[false, false, true], [false, true, true], [true, true, true]]);
        assert_eq!(waiting.close_longest_at(then), 0);
    }

    #[test]
    fn newcomers_have_time_to_ask() {
        let (waiting, now) = (Waiting::default(), Instant::now());
        let stranger = begin(&waiting, false, now);
        let known = begin(&waiting, true, now);
        assert_eq!(waiting.close_longest_at(now + GRACE / 2), 0);
        assert_eq!(waiting.close_longest_at(now + GRACE), 1);
        assert!(is_called(&stranger) && !is_called(&known));
        assert_eq!(waiting.close_longest_at(now + GRACE), 0);
        assert_eq!(waiting.close_longest_at(now + GRACE_BETWEEN), 1);
    }

    #[test]
    fn many_are_closed_in_one_go_and_a_wait_that_is_over_is_not_closed() {
        let (waiting, now) = (Waiting::default(), Instant::now());
        let waits: Vec<Wait<'_>> = (0..640).map(|_| begin(&waiting, false, now)).collect();
        assert_eq!(waiting.close_longest_at(now + GRACE), 10);
        drop(waits);
        assert_eq!(waiting.close_longest_at(now + GRACE), 0);
    }

    #[tokio::test]
    async fn a_call_that_comes_before_it_is_waited_for_is_heard() {
        let waiting = Waiting::default();
        let wait = begin(&waiting, false, Instant::now() - GRACE);
        assert_eq!(waiting.close_longest(), 1);
        wait.is_called().await;
    }
}
