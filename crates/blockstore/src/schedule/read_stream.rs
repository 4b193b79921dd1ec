//! A stream of reads: somebody reads a replica from one end to the other, and the disk reads ahead of it in runs.

use super::{
    plan::{Kind, Plan, StreamId},
    stream_file::StreamFile,
    turns::{Shared, Turns},
};
use env::File;
use std::{
    sync::Arc,
    task::{Context, Poll},
};

/// Bytes that are read ahead in turns. Dropped, the stream is over.
pub struct ReadStream {
    shared: Arc<Shared>,
    id: StreamId,
    file: Arc<dyn File>,
    /// Where what is read ends.
    end: u64,
    /// The disk has read the file into memory up to this byte.
    ready: u64,
    /// The disk was asked to read the file from `ready` up to this byte.
    wanted: u64,
    /// It has not asked the disk yet, nor found what it wants in memory.
    is_new: bool,
}

impl ReadStream {
    pub(crate) fn open(
        turns: &Turns,
        file: &Arc<dyn File>,
        sums: Option<Arc<dyn File>>,
        (begin, end): (u64, u64),
    ) -> Self {
        let shared = turns.shared().clone();
        let id = shared.open(Kind::Read, Arc::new(StreamFile::of_reader(file, sums)));
        Self { shared, id, file: file.clone(), end, ready: begin, wanted: begin, is_new: true }
    }

    /// Ready when the bytes before `end` are in memory, for somebody who is at `position`. Asks the disk for the next run
    /// when less than a run is left; the task is woken when there is news.
    pub fn poll_ready(&mut self, context: &mut Context<'_>, position: u64, end: u64) -> Poll<()> {
        let end = end.min(self.end);
        let Some(mut state) = self.shared.state() else { return Poll::Ready(()) };
        self.ready = self.ready.max(state.read_until(self.id));
        let run_bytes = state.plan.limits().run_bytes;
        while state.plan.wants_nothing(self.id)
            && self.ready == self.wanted
            && self.wanted < self.end
            && self.wanted < position.saturating_add(run_bytes)
        {
            if std::mem::take(&mut self.is_new) && !self.file.is_cached(self.wanted) {
                self.wanted = state.plan.want_first(self.id, self.wanted, self.end);
                self.shared.nudge();
                continue;
            }
            let next = self.end.min(self.wanted + run_bytes);
            // What memory has already needs no turn.
            if self.file.is_cached(self.wanted) && self.file.is_cached(next - 1) {
                (self.ready, self.wanted) = (next, next);
            } else {
                self.wanted = state.plan.want(self.id, self.wanted, next);
                self.shared.nudge();
            }
        }
        if self.ready >= end {
            return Poll::Ready(());
        }
        state.wake_later(self.id, context.waker());
        Poll::Pending
    }
}

impl Drop for ReadStream {
    fn drop(&mut self) {
        if let Some(mut state) = self.shared.state() {
            Plan::forget(&mut state.plan, self.id);
            let wakers = state.roomy();
            drop(state);
            wakers.into_values().for_each(std::task::Waker::wake);
        }
    }
}
