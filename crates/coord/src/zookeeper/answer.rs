//! Takes answers and events to those who wait for them, away from the threads that serve the network.

use crate::Done;
use std::sync::mpsc::{Sender, channel};

/// Calls what it is given on a thread of its own, in order. The thread ends with the last sender.
#[derive(Clone)]
pub struct Deliver {
    calls: Sender<Box<dyn FnOnce() + Send>>,
}

impl Deliver {
    pub fn start(thread: &str) -> std::io::Result<Self> {
        let (calls, waiting) = channel::<Box<dyn FnOnce() + Send>>();
        std::thread::Builder::new().name(thread.into()).spawn(move || {
            for call in waiting {
                call();
            }
        })?;
        Ok(Self { calls })
    }

    pub fn call(&self, call: impl FnOnce() + Send + 'static) {
        // Sending fails after a call has panicked: then no caller waits any more.
        let _ = self.calls.send(Box::new(call));
    }
}

/// The answer to one question: given exactly once, even if the task that works on it is dropped.
pub struct Answer<T: Send + 'static> {
    done: Option<Done<T>>,
    lost: fn(String) -> T,
    deliver: Deliver,
}

impl<T: Send + 'static> Answer<T> {
    /// `lost` makes the answer of which nothing is known.
    pub fn new(done: Done<T>, lost: fn(String) -> T, deliver: Deliver) -> Self {
        Self { done: Some(done), lost, deliver }
    }

    pub fn give(mut self, answer: T) {
        self.deliver_once(answer);
    }

    pub fn give_lost(mut self, reason: String) {
        let answer = (self.lost)(reason);
        self.deliver_once(answer);
    }

    fn deliver_once(&mut self, answer: T) {
        if let Some(done) = self.done.take() {
            self.deliver.call(move || done(answer));
        }
    }
}

impl<T: Send + 'static> Drop for Answer<T> {
    fn drop(&mut self) {
        if self.done.is_some() {
            let answer = (self.lost)("the connection to ZooKeeper was closed meanwhile".into());
            self.deliver_once(answer);
        }
    }
}
