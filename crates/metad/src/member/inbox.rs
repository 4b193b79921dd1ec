//! The place where inputs from all threads meet the one member.
//!
//! No thread waits for the member's lock to hand an input in: it goes into the inbox, and the holder of the lock
//! takes it from there before letting go ([`super::pump`]).

use base::Durable;
use group::{Effects, Input};
use parking_lot::Mutex;
use std::collections::VecDeque;

/// An input for the member.
pub enum Event {
    Input(Input),
    /// The writes of this step are durable.
    Durable(Box<Effects>, Durable),
    DiskFailed(String),
}

/// Whether a thread may wait for a disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// The thread must not: it ticks, reads a connection, or runs the journal's callbacks.
    None,
    Disk,
    /// The thread cannot now, because it holds the namespace's lock: it does the work for the disk as soon as it has
    /// given that back.
    Later,
}

#[derive(Default)]
pub struct Inbox {
    pub(super) waiting: Mutex<VecDeque<Event>>,
}

impl Inbox {
    pub fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }
}
