//! The questions of members that are behind, for the thread that reads the log.

use env::pulse;
use group::ReadLog;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

#[derive(Default)]
pub struct Reader {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    asked: VecDeque<ReadLog>,
    is_stopped: bool,
}

/// A machine asks once for each member and waits for the answer: more than this means that answers are late, and that
/// the oldest question has been given up by its asker.
const ASKED_MAX: usize = 64;

impl Reader {
    pub fn push(&self, asked: ReadLog) {
        let mut state = self.state.lock();
        if state.asked.len() >= ASKED_MAX {
            state.asked.pop_front();
        }
        state.asked.push_back(asked);
        self.wake.notify_one();
    }

    pub fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.wake.notify_all();
    }

    /// Waits for the next question; `None` after [`Reader::stop`].
    pub fn next(&self) -> Option<ReadLog> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(asked) = state.asked.pop_front() {
                return Some(asked);
            }
            self.wake.wait_for(&mut state, pulse::IDLE);
            pulse::step();
        }
    }
}
