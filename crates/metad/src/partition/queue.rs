//! The work that waits for the writer, the one thread that changes the namespace.

use super::turn::Turn;
use crate::{
    fatal::InHand,
    member::{Followed, Writer},
};
use env::pulse;
use group::Proposal;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

/// A write waiting for its turn. It gets `None` if this member does not serve any more: the caller must be sent
/// elsewhere, and nothing has happened.
pub type Attempt = Box<dyn FnOnce(Option<&mut Turn<'_>>) + Send>;

pub enum Work {
    /// Someone wants to change the namespace: by a request, or the service itself.
    Attempt(Option<InHand>, Attempt),
    /// The group has: entries to apply, and what became of this member.
    Follow(Followed),
    /// Runs between two turns, where tree and log agree.
    Between(Box<dyn FnOnce() + Send>),
}

/// The waiting work, in the order of arrival.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    /// The number of attempts among them.
    attempts: usize,
    is_closed: bool,
}

impl Queue {
    /// Gives the work back when the queue is closed.
    pub fn push(&self, work: Work) -> Result<(), Work> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(work);
        }
        state.attempts += usize::from(matches!(work, Work::Attempt(..)));
        state.waiting.push_back(work);
        let is_first = state.waiting.len() == 1;
        drop(state);
        if is_first {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Whether it is closed, and the number of attempts that wait.
    pub fn look(&self) -> (bool, usize) {
        let state = self.state.lock();
        (state.is_closed, state.attempts)
    }

    /// Work that was pushed before is still done; later work is given back.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.wake.notify_all();
    }

    /// Waits for work and takes all of it. False at the end: the queue is closed and empty.
    pub fn take(&self, batch: &mut VecDeque<Work>) -> bool {
        let mut state = self.state.lock();
        while state.waiting.is_empty() {
            if state.is_closed {
                return false;
            }
            self.wake.wait_for(&mut state, pulse::IDLE);
            pulse::step();
        }
        state.attempts = 0;
        std::mem::swap(&mut state.waiting, batch);
        true
    }

    /// Takes the work that came meanwhile, behind that in the batch.
    pub fn take_more(&self, batch: &mut VecDeque<Work>) {
        let mut state = self.state.lock();
        state.attempts = 0;
        batch.extend(state.waiting.drain(..));
    }
}

impl Writer for Queue {
    fn follow(&self, followed: Followed) {
        // Once the queue is closed the server is stopping: no thread looks any more.
        let _ = self.push(Work::Follow(followed));
    }

    fn append(&self, suggested: Proposal) {
        let append = |turn: Option<&mut Turn<'_>>| {
            if let Some(turn) = turn {
                turn.append_suggested(suggested);
            }
        };
        let _ = self.push(Work::Attempt(None, Box::new(append)));
    }

    fn between(&self, run: Box<dyn FnOnce() + Send>) -> bool {
        self.push(Work::Between(run)).is_ok()
    }
}
