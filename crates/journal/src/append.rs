//! Appending: group commit by arrival, several batches in flight, no lock across a flush.

use crate::{
    AppendError, Checkpoint, Fault, ImageError, ImageWriter, MemberState, NextStart, StateError,
    flow::{Opened, Shared, Ticket},
    record::batch_bytes,
    segment,
};
use base::{Durable, Entry, Epoch, Level, LogPoint, Sn};
use env::pulse;
use std::{io, sync::Arc};

/// The ending of the name of an image that must not be used.
const IN_DOUBT: &str = ".in-doubt";

/// Called once, in the order of the appends, on any thread, holding no lock of the journal. In production it is the
/// thread that writes to the disk: a callback that has more to do than to wake others hands that work on.
pub type AppendDone = Box<dyn FnOnce(Result<Durable, Arc<Fault>>) + Send>;

/// An open log. Cheap to clone; the store's lock is given back when the last clone is gone and nothing is
/// under way.
///
/// Entries wait in the order of their arrival. Whenever fewer than [`crate::Settings::flights_max`] batches are under
/// way, all that waits (up to [`crate::Settings::batch_bytes_max`]) makes the next batch. Batches reach the disk in
/// any order; they count as durable, and `done` runs, in the order of their entries.
///
/// The price of this design: an entry may be written twice as late as one flush takes, and a full segment
/// waits until everything under way is done before the next one is begun.
#[derive(Clone)]
pub struct Journal {
    shared: Arc<Shared>,
    _handle: Arc<Handle>,
}

/// Goes with the last clone of a journal.
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        // A thread of the disk may still be on its way out of the last callback; it writes nothing more. With
        // something under way the lock goes when that is done.
        if inner.waiting.is_empty() && inner.flights.is_empty() && inner.under_way == 0 {
            inner.lock = None;
        }
    }
}

impl Journal {
    pub(crate) fn open(opened: Opened) -> Self {
        let shared = Arc::new(Shared::new(opened));
        Self { _handle: Arc::new(Handle(shared.clone())), shared }
    }

    /// Takes entries that follow the last ones taken. Returns at once; `done` runs when they, and all before
    /// them, are durable, or when the journal has failed. An error here means that nothing was taken and
    /// `done` will not be called.
    ///
    /// # Errors
    /// [`AppendError::Failed`] if the journal has failed, [`AppendError::Closed`] if it is closed,
    /// [`AppendError::OutOfOrder`] if an entry does not follow the one before it, [`AppendError::TooLarge`] if an entry
    /// is too large. Nothing was taken then.
    pub fn append(&self, entries: Vec<Entry>, done: AppendDone) -> Result<(), AppendError> {
        {
            let mut inner = self.shared.inner.lock();
            let end = inner.check(&entries)?;
            inner.end = end;
            let bytes = entries.iter().map(|entry| entry.payload.len()).sum();
            inner.waiting_bytes += bytes;
            inner.log_bytes += batch_bytes(&entries);
            inner.waiting.push_back(Ticket { entries, bytes, done });
        }
        self.shared.pump();
        Ok(())
    }

    /// The entry that is written next begins a segment, whether the one before is full or not: its number.
    pub fn begin_segment_with_next(&self) -> Sn {
        let mut inner = self.shared.inner.lock();
        inner.ends_segment = inner.segment.is_some();
        Sn(inner.sent.id.sn.0 + 1)
    }

    /// Blocks while too much waits for the disk. To be called before planning a batch, never under a lock.
    pub fn wait_for_room(&self) {
        let shared = &self.shared;
        let mut inner = shared.inner.lock();
        while inner.waiting_bytes > shared.settings.waiting_bytes_max && inner.fault.is_none() {
            shared.changed.wait_for(&mut inner, pulse::IDLE);
            pulse::step();
        }
    }

    /// The last entry taken (durable or not).
    pub fn end(&self) -> LogPoint {
        self.shared.inner.lock().end
    }

    /// All entries up to here are durable.
    pub fn durable(&self) -> Sn {
        self.shared.inner.lock().durable
    }

    /// The first reason why this journal refuses to go on.
    pub fn fault(&self) -> Option<Arc<Fault>> {
        self.shared.inner.lock().fault.clone()
    }

    pub fn state(&self) -> MemberState {
        let mut state = pulse::lock(&self.shared.file).state.clone();
        state.promised = state.promised.max(self.shared.inner.lock().promised);
        state
    }

    /// Makes a promise durable. Blocks.
    ///
    /// # Errors
    /// [`StateError::PromiseGoesBack`] if a later epoch is promised already; [`StateError::Failed`] if the journal has
    /// failed, or fails now because the promise cannot be written.
    pub fn promise(&self, epoch: Epoch) -> Result<Durable, StateError> {
        self.shared.promise(epoch)
    }

    /// Remembers what has committed, lazily: it is written with the next change of the member's state.
    pub fn note_commit(&self, sn: Sn) {
        let mut inner = self.shared.inner.lock();
        inner.known_commit = inner.known_commit.max(sn);
    }

    /// Makes what was noted as committed survive a crash, cheaply: nothing is synced. To be called about once a
    /// second.
    ///
    /// # Errors
    /// [`StateError::Failed`] if the journal has failed; [`StateError::Io`] if the file of the watermark cannot be
    /// written, after which the journal goes on.
    pub fn persist_commit(&self) -> Result<(), StateError> {
        self.shared.persist_commit()
    }

    /// The log's end was checked against an active's: a torn tail found earlier has lost nothing. Blocks if there
    /// was one.
    ///
    /// # Errors
    /// [`StateError::Failed`] if the journal has failed, or fails now because the member's state cannot be written.
    pub fn tail_is_sound(&self) -> Result<(), StateError> {
        if !pulse::lock(&self.shared.file).state.is_suspect {
            return Ok(());
        }
        self.shared.change_state(|state| state.is_suspect = false).map(drop)
    }

    /// The group is at this level from now on: releases that do not know it refuse this store. Blocks, unless it is noted already.
    ///
    /// # Errors
    /// [`StateError::Failed`] if the journal has failed, or fails now because the member's state cannot be written.
    pub fn note_level(&self, level: Level) -> Result<(), StateError> {
        if pulse::lock(&self.shared.file).state.level >= level {
            return Ok(());
        }
        self.shared.change_state(|state| state.level = state.level.max(level)).map(drop)
    }

    /// The last act of a journal whose content must not be believed: it takes nothing more, its generation
    /// rises, and the next start finds an empty store. Blocks.
    ///
    /// # Errors
    /// [`StateError::Failed`] if the journal had failed before, or fails now because the member's state cannot be
    /// written: then the next start may find the store as it was.
    pub fn distrust(&self, reason: &str) -> Result<(), StateError> {
        let shared = &self.shared;
        let generation = self.state().generation + 1;
        if let Err(error) = crate::aside::note(&shared.env, &shared.directory, generation, reason) {
            tracing::warn!(%error, "why this store is put aside could not be noted beside it");
        }
        self.end_with(reason, |state| {
            state.generation += 1;
            state.next_start = NextStart::Discard;
        })
    }

    /// Refuses everything from now on, and leaves this in the member's state.
    pub(crate) fn end_with(
        &self,
        reason: &str,
        change: impl FnOnce(&mut MemberState),
    ) -> Result<(), StateError> {
        tracing::warn!(store = %self.shared.directory.display(), reason, "this store ends here");
        self.shared.inner.lock().closed = true;
        self.shared.wait_until_written();
        self.shared.change_state(change).map(drop)
    }

    /// The images that recovery may start from, oldest first.
    pub fn images(&self) -> Vec<Checkpoint> {
        pulse::lock(&self.shared.file).state.checkpoints.clone()
    }

    /// The file of this image, whether its checkpoint has committed or not; `NotFound` where it is not here.
    ///
    /// # Errors
    /// `NotFound` if there is no such file, or one of another length; or the system cannot open it.
    pub fn open_image(&self, checkpoint: &Checkpoint) -> io::Result<Arc<dyn env::File>> {
        self.shared.open_image(checkpoint)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Writes an image that contains everything up to `at`, which must have committed. Blocks; for a thread
    /// of its own. The result belongs into a `Checkpoint` entry.
    ///
    /// # Errors
    /// [`ImageError::Failed`] if the journal has failed, [`ImageError::Io`] if `write` failed or the file cannot be
    /// written, [`ImageError::Verify`] if it does not read back as written. The store is as before.
    pub fn write_image(
        &self,
        at: LogPoint,
        write: impl FnOnce(&mut ImageWriter) -> io::Result<()>,
    ) -> Result<Checkpoint, ImageError> {
        let log_bytes = {
            let inner = self.shared.inner.lock();
            if let Some(fault) = &inner.fault {
                return Err(ImageError::Failed(fault.clone()));
            }
            inner.log_bytes
        };
        self.shared.write_image(at, log_bytes, write)
    }

    /// The entry that names this image has committed: the image becomes what recovery starts from, and
    /// segments and images behind the checkpoint before it go. Blocks.
    ///
    /// # Errors
    /// [`StateError::Io`] if the image's file is not there, or a file that is not needed any more cannot be removed;
    /// [`StateError::Failed`] if the journal has failed, or fails while it notes the checkpoint.
    pub fn checkpoint_committed(&self, checkpoint: &Checkpoint) -> Result<(), StateError> {
        self.shared.checkpoint_committed(checkpoint)
    }

    /// Puts an image out of use whose checkpoint has not committed, because the state in it is in doubt. The file
    /// stays beside the others under a name that no start looks for, so that a person can examine it.
    ///
    /// # Errors
    /// The file cannot be renamed, or its directory not be synced. An image that is usable, or is not there, is no
    /// error.
    pub fn withdraw_image(&self, checkpoint: &Checkpoint) -> io::Result<()> {
        if self.images().contains(checkpoint) {
            return Ok(());
        }
        let images = self.shared.directory.join(crate::store::IMAGES);
        let path = images.join(checkpoint.file_name());
        let disk = &*self.shared.env.disk;
        if !disk.exists(&path)? {
            return Ok(());
        }
        disk.rename(&path, &images.join(format!("{}{IN_DOUBT}", checkpoint.file_name())))?;
        disk.sync_directory(&images)
    }

    /// Keeps the segments with entries from `from` on, although no checkpoint needs them, until this is called with a
    /// later entry. With `Sn(u64::MAX)`, which holds at first, no segment is kept for this reason. Segments that are
    /// needed no more are removed. May block.
    ///
    /// # Errors
    /// [`StateError::Io`] if a file that is not needed any more cannot be removed, or a directory cannot be listed or
    /// synced.
    pub fn keep_from(&self, from: Sn) -> Result<(), StateError> {
        self.shared.keep_from(from)
    }

    /// The first entries of the segments, oldest first.
    pub fn segment_starts(&self) -> Vec<Sn> {
        self.shared.index.lock().places().iter().map(|place| place.start).collect()
    }

    /// Bytes of log after the newest usable image: the measure of how long a start would take.
    pub fn bytes_since_checkpoint(&self) -> u64 {
        let log_bytes = self.shared.inner.lock().log_bytes;
        log_bytes.saturating_sub(self.shared.keeping.lock().log_bytes_at_checkpoint())
    }

    /// Prepares the next segment beside the running service. Blocks; to be called now and then from a
    /// background thread. Without it a new segment is made when the old one is full.
    ///
    /// # Errors
    /// [`StateError::Io`] if the next segment cannot be made, on a full disk for example. The journal goes on with the
    /// segments that it has.
    pub fn prepare_segment(&self) -> Result<(), StateError> {
        let shared = &self.shared;
        segment::prepare(shared)
            .map_err(|source| StateError::Io { file: shared.log_directory().join(segment::SPARE), source })
    }

    /// Waits for what is under way, refuses all that follows, and notes the clean end.
    ///
    /// # Errors
    /// [`StateError::Failed`] if the journal has failed, or fails now because the member's state cannot be written.
    pub fn close(&self) -> Result<(), StateError> {
        {
            let mut inner = self.shared.inner.lock();
            inner.closed = true;
            while !inner.is_idle() && inner.fault.is_none() {
                self.shared.changed.wait(&mut inner);
            }
        }
        self.shared.change_state(|_| {}).map(drop)
    }
}
