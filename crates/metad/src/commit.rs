//! The replies that wait for the commit watermark: those of writes, and of reads that saw something not committed.
//!
//! Entries are released in the order of their sn, all those of one commit in one go, outside the lock.

use base::Sn;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering},
};

type Release = Box<dyn FnOnce(Result<(), &str>) + Send>;

#[derive(Default)]
pub struct CommitWatch {
    /// `state.committed`, for readers that only want to know whether they have to wait.
    committed: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    committed: Sn,
    /// Ordered by sn. Writes arrive in order; a read that waits may come in between, seldom, and is sorted in.
    waiting: VecDeque<(Sn, Release)>,
    /// Why nothing commits here for now: another member leads.
    suspended: Option<String>,
    /// Why nothing will ever commit again.
    failed: Option<String>,
}

impl CommitWatch {
    pub fn new(committed: Sn) -> Self {
        Self {
            committed: AtomicU64::new(committed.0),
            state: Mutex::new(State { committed, ..State::default() }),
        }
    }

    pub fn committed(&self) -> Sn {
        Sn(self.committed.load(Ordering::Acquire))
    }

    /// The reason why nothing will ever commit here again.
    pub fn failure(&self) -> Option<String> {
        self.state.lock().failed.clone()
    }

    /// Calls `release` once `sn` has committed: at once when it has.
    pub fn when(&self, sn: Sn, release: impl FnOnce(Result<(), &str>) + Send + 'static) {
        let mut state = self.state.lock();
        if sn <= state.committed {
            drop(state);
            return release(Ok(()));
        }
        if let Some(reason) = state.failed.clone().or_else(|| state.suspended.clone()) {
            drop(state);
            return release(Err(&reason));
        }
        let place = state.waiting.partition_point(|(other, _)| *other <= sn);
        state.waiting.insert(place, (sn, Box::new(release)));
    }

    /// Everything up to `sn` has committed. Two batches may say so at once, on two threads: the watermark
    /// only rises.
    pub fn advance(&self, sn: Sn) {
        let mut state = self.state.lock();
        state.committed = state.committed.max(sn);
        let sn = state.committed;
        self.committed.store(sn.0, Ordering::Release);
        let count = state.waiting.partition_point(|(waiting, _)| *waiting <= sn);
        let released: Vec<_> = state.waiting.drain(..count).collect();
        drop(state);
        for (_, release) in released {
            release(Ok(()));
        }
    }

    /// Fails all that waits, because this member leads no more: those entries may commit or not, and another member
    /// will know. Until [`CommitWatch::resume`] nothing may wait here.
    pub fn suspend(&self, reason: &str) {
        let mut state = self.state.lock();
        state.suspended = Some(reason.to_owned());
        let released = std::mem::take(&mut state.waiting);
        drop(state);
        for (_, release) in released {
            release(Err(reason));
        }
    }

    /// This member leads (again).
    pub fn resume(&self) {
        self.state.lock().suspended = None;
    }

    /// The journal refuses: all that wait are told, and all that come.
    pub fn fail(&self, reason: &str) {
        let mut state = self.state.lock();
        state.failed.get_or_insert_with(|| reason.to_owned());
        let released = std::mem::take(&mut state.waiting);
        drop(state);
        for (_, release) in released {
            release(Err(reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};

    #[test]
    fn a_member_that_leads_again_has_waiters_again() {
        let watch = CommitWatch::new(Sn(5));
        let (sender, receiver) = mpsc::channel();
        let wait = |sn| {
            let sender = sender.clone();
            watch.when(Sn(sn), move |result| sender.send((sn, result.is_ok())).unwrap());
        };
        wait(6);
        watch.suspend("another leads");
        wait(7);
        watch.advance(Sn(8));
        wait(8);
        watch.resume();
        wait(9);
        watch.advance(Sn(9));
        let heard: Vec<_> = receiver.try_iter().collect();
        assert_eq!(heard, [(6, false), (7, false), (8, true), (9, true)]);
        assert_eq!(watch.failure(), None);
    }

    #[test]
    fn waiters_are_released_in_order_and_only_when_committed() {
        let watch = CommitWatch::new(Sn(5));
        let (sender, receiver) = mpsc::channel();
        for sn in [7, 9, 6, 5] {
            let sender = sender.clone();
            watch.when(Sn(sn), move |result| sender.send((sn, result.is_ok())).unwrap());
        }
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [(5, true)]);
        watch.advance(Sn(7));
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [(6, true), (7, true)]);
        watch.fail("the disk is gone");
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [(9, false)]);
        let late = Arc::new(Mutex::new(None));
        let seen = late.clone();
        watch.when(Sn(10), move |result| *seen.lock() = Some(result.is_err()));
        assert_eq!(*late.lock(), Some(true));
    }
}
