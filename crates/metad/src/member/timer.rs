//! The member's deadline, for the thread that calls it then.

use base::Moment;
use parking_lot::{Condvar, Mutex};
use std::time::Duration;

#[derive(Default)]
pub struct Timer {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    deadline: Option<Moment>,
    is_stopped: bool,
}

impl Timer {
    pub fn set(&self, deadline: Option<Moment>) {
        let mut state = self.state.lock();
        let is_earlier = deadline.is_some_and(|new| state.deadline.is_none_or(|old| new < old));
        state.deadline = deadline;
        if is_earlier {
            self.wake.notify_one();
        }
    }

    pub fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.wake.notify_all();
    }
    /// Waits for the deadline, which may change meanwhile, or for `longest`. `None` once the timer is stopped.
    pub fn wait(&self, now: Moment, longest: Duration) -> Option<Option<Moment>> {
        let mut state = self.state.lock();
        if state.is_stopped {
            return None;
        }
        let sleep_ns = state.deadline.map_or(u64::MAX, |deadline| deadline.ns.saturating_sub(now.ns));
        if sleep_ns > 0 {
            self.wake.wait_for(&mut state, Duration::from_nanos(sleep_ns).min(longest));
        }
        Some(state.deadline)
    }
}
