//! A stream of writes as its writer and its sender see it.

use super::{
    config::TurnsConfig,
    plan::{Kind, StreamId, Ticket},
    stream_file::StreamFile,
    turns::{Shared, Turns},
};
use env::File;
use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// The writer's end. When it is dropped the stream has ended, and its waiting bytes still go out.
pub(crate) struct WriteStream {
    shared: Arc<Shared>,
    id: StreamId,
    file: Arc<StreamFile>,
}

/// The sender's end: it asks for room before it takes more from the network. Cheap to clone.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<Shared>,
    id: StreamId,
}

/// The disk, for as long as something urgent lasts.
pub(crate) struct Urgent<'a> {
    shared: &'a Shared,
    ticket: Option<Ticket>,
}

impl WriteStream {
    /// A stream of a file that may grow to `room_bytes`; 0 if that is not known.
    pub fn open(turns: &Turns, room_bytes: u64) -> Self {
        let shared = turns.shared().clone();
        let TurnsConfig { preallocates, drops_behind_writes, .. } = shared.config;
        let room_bytes = if preallocates { room_bytes } else { 0 };
        let file = Arc::new(StreamFile::new(room_bytes, drops_behind_writes));
        let id = shared.open(Kind::Write, file.clone());
        Self { shared, id, file }
    }

    pub fn gate(&self) -> Gate {
        Gate { shared: self.shared.clone(), id: self.id }
    }

    pub fn file(&self) -> &StreamFile {
        &self.file
    }

    /// Bytes `begin..end` of the file are in the page cache, of which `admitted` came through the gate.
    pub fn wrote(&self, file: &Arc<dyn File>, begin: u64, end: u64, admitted: u64) {
        self.file.set_file(file);
        let now = self.shared.now();
        if let Some(mut state) = self.shared.state()
            && state.plan.wrote(self.id, (begin, end), admitted, now)
        {
            drop(state);
            self.shared.nudge();
        }
    }

    /// So many bytes that came through the gate were not written.
    pub fn give_back(&self, admitted: u64) {
        if admitted > 0 {
            self.change(|plan, id| plan.give_back(id, admitted));
        }
    }

    /// A sync has made everything before `end` durable.
    pub fn synced(&self, end: u64) {
        self.change(|plan, id| plan.synced(id, end));
    }

    /// The file is removed: nothing of it has to go out.
    pub fn forget(&self) {
        self.change(|plan, id| plan.forget(id));
    }

    /// Waits until the disk is done with the pieces under way, and keeps the disk until the answer is dropped.
    pub fn urgent(&self) -> Urgent<'_> {
        Urgent { shared: &self.shared, ticket: self.shared.wait_for_disk() }
    }

    fn change(&self, change: impl FnOnce(&mut super::plan::Plan, StreamId)) {
        let Some(mut state) = self.shared.state() else { return };
        change(&mut state.plan, self.id);
        let wakers = state.roomy();
        drop(state);
        wakers.into_values().for_each(Waker::wake);
    }
}

impl Drop for WriteStream {
    fn drop(&mut self) {
        self.file.end();
        let now = self.shared.now();
        self.change(|plan, id| {
            plan.close(id, now);
        });
        self.shared.nudge();
    }
}

impl Gate {
    /// Whether so many bytes more may be taken from the sender; the task is woken when it is worth while to ask again.
    pub fn poll_admit(&self, context: &mut Context<'_>, bytes: u64) -> Poll<()> {
        let Some(mut state) = self.shared.state() else { return Poll::Ready(()) };
        if state.plan.admit(self.id, bytes) {
            return Poll::Ready(());
        }
        state.wake_later(self.id, context.waker());
        drop(state);
        // To make room, a stream with less than a run may have to have its turn now.
        self.shared.nudge();
        Poll::Pending
    }
}

impl Drop for Urgent<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.shared.give_disk_back(ticket);
        }
    }
}
