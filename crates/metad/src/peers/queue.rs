//! The letters that wait to be sent to one member.

use super::letter::Letter;
use env::pulse;
use group::Message;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{collections::VecDeque, time::Duration};

/// Twice the window of entries that an active has under way to a member.
const BYTES_MAX: usize = 64 << 20;
/// Far more than the messages that a window of large entries makes.
const COUNT_MAX: usize = 50_000;
/// About the bytes of a message without its payloads.
const MESSAGE_BYTES: usize = 96;
const ENTRY_BYTES: usize = 64;

/// Letters to one member, in two lanes: beacons and their like overtake entries, so that megabytes of log do not
/// delay a lease. A letter that finds the queue closed is dropped. A letter that finds it full closes it, and the
/// connection is made anew.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    urgent: VecDeque<Letter>,
    rest: VecDeque<Letter>,
    bytes: usize,
    is_open: bool,
    is_stopped: bool,
}

/// Why there is nothing to send any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl Queue {
    /// A connection is there.
    pub fn open(&self) {
        let mut state = self.state.lock();
        *state = State { is_open: !state.is_stopped, is_stopped: state.is_stopped, ..State::default() };
    }

    /// The connection is gone, and what waited for it.
    pub fn close(&self) {
        let mut state = self.state.lock();
        *state = State { is_stopped: state.is_stopped, ..State::default() };
        drop(state);
        self.wake.notify_all();
    }

    /// Stops the queue: no letter will ever be sent again.
    pub fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.close();
    }

    pub fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// False when the queue was full: it is closed now.
    #[must_use]
    pub fn push(&self, letter: Letter) -> bool {
        let state = self.state.lock();
        self.push_to(state, letter)
    }

    /// Pushes like [`Self::push`], for a thread that must not wait for long. Where another thread holds the lock for longer than
    /// `patience`, the letter is dropped.
    pub fn push_within(&self, patience: Duration, letter: Letter) {
        if let Some(state) = self.state.try_lock_for(patience) {
            let _ = self.push_to(state, letter);
        }
    }

    fn push_to(&self, mut state: MutexGuard<'_, State>, letter: Letter) -> bool {
        if !state.is_open {
            return true;
        }
        let bytes = bytes_of(&letter);
        let count = state.urgent.len() + state.rest.len();
        if count > 0 && (state.bytes + bytes > BYTES_MAX || count >= COUNT_MAX) {
            drop(state);
            self.close();
            return false;
        }
        state.bytes += bytes;
        if is_urgent(&letter) {
            state.urgent.push_back(letter);
        } else {
            state.rest.push_back(letter);
        }
        if count == 0 {
            self.wake.notify_one();
        }
        true
    }

    /// Waits for letters and takes up to about `bytes_max` of them, urgent ones first.
    pub fn take(&self, bytes_max: usize, to: &mut Vec<Letter>) -> Result<(), Closed> {
        let mut state = self.state.lock();
        while state.is_open && state.urgent.is_empty() && state.rest.is_empty() {
            self.wake.wait_for(&mut state, pulse::IDLE);
            pulse::step();
        }
        if !state.is_open {
            return Err(Closed);
        }
        let mut taken = 0;
        while taken < bytes_max {
            let Some(letter) = state.urgent.pop_front().or_else(|| state.rest.pop_front()) else { break };
            taken += bytes_of(&letter);
            to.push(letter);
        }
        state.bytes -= taken;
        Ok(())
    }

    pub fn end_pause(&self) {
        self.wake.notify_all();
    }

    /// Sleeps, unless the queue is stopped meanwhile.
    pub fn pause(&self, period: Duration) {
        let mut state = self.state.lock();
        if !state.is_stopped {
            self.wake.wait_for(&mut state, period);
        }
    }
}

fn is_urgent(letter: &Letter) -> bool {
    // A process that tells of a fatal request ends in a moment, and members know of a watcher before the entries that it asks for.
    let Letter::Group(message) = letter else { return true };
    matches!(
        message,
        Message::Beacon { .. }
            | Message::Grant { .. }
            | Message::PreVote { .. }
            | Message::PreVoted { .. }
            | Message::Hello { .. }
    )
}

fn bytes_of(letter: &Letter) -> usize {
    let payloads = match letter {
        Letter::FatalRequests(text) => text.len(),
        Letter::Group(Message::Append(append)) => bytes_of_entries(&append.entries),
        Letter::Group(Message::Fetched { entries, .. }) => bytes_of_entries(entries),
        Letter::Group(Message::Suggest { proposal, .. }) => proposal.payload.len(),
        Letter::Group(_) | Letter::Watched { .. } => 0,
    };
    MESSAGE_BYTES + payloads
}

fn bytes_of_entries(entries: &[base::Entry]) -> usize {
    entries.iter().map(|entry| ENTRY_BYTES + entry.payload.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Entry, EntryKind, Epoch, LogPoint, Sn};
    use group::Append;

    fn append(bytes: usize) -> Letter {
        let payload = vec![0; bytes].into();
        let entry = Entry::after(LogPoint::default(), Epoch(1), EntryKind::Operation, payload);
        let (previous, committed) = (LogPoint::default(), Sn(0));
        Message::Append(Append { epoch: Epoch(1), previous, entries: vec![entry], committed }).into()
    }

    fn beacon() -> Letter {
        Message::Beacon { epoch: Epoch(1), round: 1, committed: Sn(0), lease_ms: 400 }.into()
    }

    fn take(queue: &Queue) -> Vec<Letter> {
        let mut taken = Vec::new();
        queue.take(1 << 20, &mut taken).unwrap();
        taken
    }

    #[test]
    fn a_beacon_overtakes_entries() {
        let queue = Queue::default();
        queue.open();
        assert!(queue.push(append(10)) && queue.push(append(20)) && queue.push(beacon()));
        assert_eq!(take(&queue), [beacon(), append(10), append(20)]);
    }

    #[test]
    fn a_member_that_takes_nothing_loses_its_connection_and_not_our_memory() {
        let queue = Queue::default();
        queue.open();
        let mut pushed = 0;
        while queue.push(append(4 << 20)) {
            pushed += 1;
            assert!(pushed < 100, "the queue has a bound");
        }
        assert_eq!(queue.take(1, &mut Vec::new()), Err(Closed));
        assert!(queue.push(beacon()), "without a connection messages are dropped");
        queue.open();
        assert!(queue.push(beacon()));
        assert_eq!(take(&queue), [beacon()], "nothing of before is sent");
    }
}
