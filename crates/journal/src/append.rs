//! Appending: group commit by arrival, several batches in flight, no lock across a flush.

use crate::{AppendError, Checkpoint, Fault, ImageError, ImageWriter, MemberState, StateError};
use base::{Durable, Entry, Epoch, LogPoint, Sn};
use std::{io, sync::Arc};

/// Called once, in the order of the appends, on any thread, holding no lock of the journal.
pub type AppendDone = Box<dyn FnOnce(Result<Durable, Arc<Fault>>) + Send>;

/// An open log. Cheap to clone.
#[derive(Clone)]
pub struct Journal {}

impl Journal {
    /// Takes entries that follow the last ones taken. Returns at once; `done` runs when they, and all before
    /// them, are durable, or when the journal has failed. An error here means that nothing was taken and
    /// `done` will not be called.
    pub fn append(&self, _entries: Vec<Entry>, _done: AppendDone) -> Result<(), AppendError> {
        todo!()
    }

    /// Blocks while too much waits for the disk. To be called before planning a batch, never under a lock.
    pub fn wait_for_room(&self) {
        todo!()
    }

    /// The last entry taken (durable or not).
    pub fn end(&self) -> LogPoint {
        todo!()
    }

    /// All entries up to here are durable.
    pub fn durable(&self) -> Sn {
        todo!()
    }

    /// The first reason why this journal refuses to go on.
    pub fn fault(&self) -> Option<Arc<Fault>> {
        todo!()
    }

    pub fn state(&self) -> MemberState {
        todo!()
    }

    /// Makes a promise durable. Blocks.
    pub fn promise(&self, _epoch: Epoch) -> Result<Durable, StateError> {
        todo!()
    }

    /// Remembers what has committed, lazily: it is written with the next change of the member's state.
    pub fn note_commit(&self, _sn: Sn) {
        todo!()
    }

    /// Writes an image that contains everything up to `at`, which must have committed. Blocks; for a thread
    /// of its own. The result belongs into a `Checkpoint` entry.
    pub fn write_image(
        &self,
        _at: LogPoint,
        _write: impl FnOnce(&mut ImageWriter) -> io::Result<()>,
    ) -> Result<Checkpoint, ImageError> {
        todo!()
    }

    /// The entry that names this image has committed: the image becomes what recovery starts from, and
    /// segments and images behind the checkpoint before it go. Blocks.
    pub fn checkpoint_committed(&self, _checkpoint: &Checkpoint) -> Result<(), StateError> {
        todo!()
    }

    /// Bytes of log after the newest usable image: the measure of how long a start would take.
    pub fn bytes_since_checkpoint(&self) -> u64 {
        todo!()
    }

    /// Prepares the next segment beside the running service. Blocks; to be called now and then from a
    /// background thread. Without it a new segment is made when the old one is full.
    pub fn prepare_segment(&self) -> Result<(), StateError> {
        todo!()
    }

    /// Waits for what is under way and notes the clean end.
    pub fn close(&self) -> Result<(), StateError> {
        todo!()
    }
}
