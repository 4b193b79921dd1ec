//! The writes of the member's steps that wait for the disk, in the order of the steps.

use base::Level;
use group::Effects;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

/// Work for the disk.
pub enum Task {
    Write(Box<Effects>),
    TailIsSound,
    NoteLevel(Level),
    Distrust(String),
}

#[derive(Default)]
pub struct DiskQueue {
    pub(super) state: Mutex<State>,
    pub(super) wake: Condvar,
    /// The lock that is held while tasks are carried out.
    pub(super) turn: Mutex<()>,
}

#[derive(Default)]
pub(super) struct State {
    pub waiting: VecDeque<Task>,
    pub is_stopped: bool,
}

impl DiskQueue {
    pub fn push(&self, task: Task) {
        self.state.lock().waiting.push_back(task);
    }

    pub fn wake(&self) {
        // Under the lock, or the one that is about to sleep would miss it.
        let _state = self.state.lock();
        self.wake.notify_one();
    }

    pub fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.wake.notify_all();
    }
}
