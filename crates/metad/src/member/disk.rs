//! The way of a step's writes to the journal, in the order of the steps.
//!
//! Appends are quick, promises and cuts wait for the disk. The writer does what it has caused itself; for threads
//! that must not wait there is one of its own.

use super::{
    disk_queue::Task,
    inbox::{Event, Patience},
    shared::Shared,
};
use crate::ended::Ended;
use env::pulse;
use group::Effects;
use std::sync::Arc;

impl Shared {
    /// Carries out what waits, unless another thread is at it: that one looks again before it ends.
    pub fn work_on_disk(self: &Arc<Self>) {
        while !self.disk.state.lock().waiting.is_empty() {
            let Some(turn) = self.disk.turn.try_lock() else { return };
            loop {
                let Some(task) = self.disk.state.lock().waiting.pop_front() else { break };
                self.carry_out(task);
            }
            drop(turn);
        }
    }

    /// Runs on a thread of its own.
    pub fn run_disk(self: &Arc<Self>) {
        let _watched = self.watched.pulses.begin("group-disk");
        let mut persisted = self.commit.committed();
        loop {
            {
                let mut state = self.disk.state.lock();
                if state.waiting.is_empty() && self.inbox.is_empty() && !state.is_stopped {
                    self.disk.wake.wait_for(&mut state, pulse::IDLE);
                }
                if state.is_stopped && state.waiting.is_empty() {
                    return;
                }
            }
            self.pump(Patience::Disk);
            self.work_on_disk();
            pulse::step();
            let committed = self.commit.committed();
            if committed != persisted && self.persist_due() {
                persisted = committed;
                if let Err(error) = self.journal.persist_commit() {
                    tracing::debug!(%error, "what has committed could not be noted");
                }
            }
        }
    }

    /// The thread does not rest for the whole of a task. The disk says by itself when a thread waits for it, and so do the
    /// journal's locks that are held across its syncs. A thread that is frozen before or behind that hangs.
    fn carry_out(self: &Arc<Self>, task: Task) {
        match task {
            Task::Write(effects) => {
                if let Err(reason) = self.write(effects) {
                    self.push(Event::DiskFailed(reason), Patience::None);
                }
            }
            Task::TailIsSound => {
                if let Err(error) = self.journal.tail_is_sound() {
                    tracing::warn!(%error, "the mark of a torn tail could not be removed");
                }
            }
            Task::NoteLevel(level) => {
                if let Err(error) = self.journal.note_level(level) {
                    // The entry that raises it is in the log, and a start that reads the log learns the level from that.
                    tracing::warn!(%error, %level, "the group's level could not be noted in the member's state");
                }
            }
            Task::Distrust(reason) => match self.journal.distrust(&reason) {
                Ok(()) => self.end(Ended::Restart(reason)),
                Err(error) => {
                    self.end(Ended::Failed(format!("{reason}; and that could not be noted: {error}")))
                }
            },
        }
    }

    fn write(self: &Arc<Self>, mut effects: Box<Effects>) -> Result<(), String> {
        let mut durable = None;
        if let Some(epoch) = effects.promise() {
            durable = Some(self.journal.promise(epoch).map_err(|error| error.to_string())?);
        }
        if let Some(after) = effects.cut() {
            durable = Some(self.journal.cut(after).map_err(|error| error.to_string())?);
        }
        let entries = effects.take_entries();
        if entries.is_empty() {
            let durable = durable.expect("a step that needs the disk writes something");
            self.push(Event::Durable(effects, durable), Patience::None);
            return Ok(());
        }
        let shared = self.clone();
        let began = self.env.clock.moment();
        let done = Box::new(move |result: Result<_, Arc<journal::Fault>>| {
            if result.is_ok() {
                let now = shared.env.clock.moment();
                shared.flushes.record_ns(now.ns.saturating_sub(began.ns));
            }
            let event = match result {
                Ok(durable) => Event::Durable(effects, durable),
                Err(fault) => Event::DiskFailed(fault.to_string()),
            };
            shared.push(event, Patience::None);
        });
        match self.journal.append(entries, done) {
            Ok(()) => Ok(()),
            // The thread that closed the journal carries on from there.
            Err(journal::AppendError::Closed) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
