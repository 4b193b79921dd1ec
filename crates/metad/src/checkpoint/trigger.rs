//! The meeting place of requests for an image and the thread that writes it.

use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// Called once, on the thread that writes images.
pub type Written = Box<dyn FnOnce(Result<(), String>) + Send>;

/// Requests for an image.
#[derive(Default)]
pub struct Trigger {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Written>,
    closed: bool,
}

impl Trigger {
    /// Asks for an image that contains everything acknowledged so far.
    pub fn request(&self, written: Written) {
        self.state.lock().waiting.push(written);
        self.wake.notify_all();
    }

    pub fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }

    /// Waits for a request or for `period`. None: the server stops.
    pub fn wait(&self, period: Duration) -> Option<Vec<Written>> {
        let mut state = self.state.lock();
        if state.waiting.is_empty() && !state.closed {
            self.wake.wait_for(&mut state, period);
        }
        (!state.closed).then(|| std::mem::take(&mut state.waiting))
    }
}
