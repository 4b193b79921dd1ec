//! Looks at a great deal of the namespace that are under way, each taken in slices.

use env::pulse;
use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering},
};

/// Looks at the next slice, and answers after the last one. True while there is more.
pub type Walk = Box<dyn FnMut() -> bool + Send>;

/// The walks that are under way.
#[derive(Default)]
pub struct Walks {
    state: Mutex<State>,
    wake: Condvar,
    slices: AtomicU64,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Walk>,
    is_closed: bool,
}

impl Walks {
    /// Walks that wait for their next slice.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Slices looked at so far, each with the namespace to itself and other readers.
    pub fn slices(&self) -> u64 {
        self.slices.load(Ordering::Relaxed)
    }

    pub fn count_slice(&self) {
        self.slices.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the thread. Walks under way are dropped, and their clients ask again elsewhere.
    pub fn close(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.is_closed = true;
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
        self.wake.notify_all();
    }

    /// Queues a walk for its next slice. It is dropped if the walks are closed.
    pub fn push(&self, walk: Walk) {
        let mut state = self.state.lock();
        if !state.is_closed {
            state.waiting.push_back(walk);
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Waits for the next walk; `None` once they are closed.
    pub fn next(&self) -> Option<Walk> {
        let mut state = self.state.lock();
        loop {
            pulse::step();
            if state.is_closed {
                return None;
            }
            match state.waiting.pop_front() {
                Some(walk) => return Some(walk),
                None => drop(self.wake.wait_for(&mut state, pulse::IDLE)),
            }
        }
    }
}
