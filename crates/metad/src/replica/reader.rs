//! Reads the log for members that are behind, on a thread of its own.

use super::{
    inbox::{Event, Patience},
    shared::Shared,
};
use env::pulse;
use group::{Input, LogReadFailed, ReadLog};
use parking_lot::{Condvar, Mutex};
use std::{collections::VecDeque, sync::Arc};

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

    fn next(&self) -> Option<ReadLog> {
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

impl Shared {
    /// Runs until [`Reader::stop`].
    pub fn run_reader(self: &Arc<Self>) {
        let _watched = self.watched.pulses.begin("group-reader");
        while let Some(asked) = self.reader.next() {
            let read = {
                let _rest = pulse::rest();
                self.journal.read(asked.after, asked.up_to, asked.bytes_max as usize)
            };
            let result = read.map_err(|error| match error {
                journal::ReadLogError::Gone { .. } => LogReadFailed::Gone,
                journal::ReadLogError::Failed { .. } => {
                    tracing::warn!(%error, "the log could not be read for another member");
                    LogReadFailed::Failed
                }
            });
            self.push(Event::Input(Input::LogRead { asked, result }), Patience::None);
        }
    }
}
