//! A replica being written, as the store, its writer and its readers share it.

use crate::{
    checksum::Checksum,
    error::{StoreError, StoreResult},
    layout::Place,
    replica::ReplicaFacts,
    volume_index::VolumeIndex,
};
use base::{Block, BlockId, GenerationStamp, ReplicaState};
use env::File;
use parking_lot::{Mutex, MutexGuard};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// The counters are atomic so that reports and look-ups never wait for a write; a change of the files holds the lock
/// `files`. Lock order: `files` before the store's replica map, never the other way round.
pub(crate) struct Active {
    pub id: BlockId,
    pub volume: VolumeIndex,
    pub checksum: Checksum,
    pub files: Mutex<Files>,
    stamp: AtomicU64,
    on_disk: AtomicU64,
    acknowledged: AtomicU64,
    is_temporary: AtomicBool,
    /// The number of the current writer. A higher number shuts out the writer before it.
    writer: AtomicU64,
}

pub(crate) struct Files {
    pub place: Place,
    /// Closed when the writer went away without finishing.
    pub open: Option<OpenFiles>,
    /// The sum of the partial last chunk.
    pub last_sum: Option<[u8; 4]>,
    /// The part of the volume's promised bytes that is kept for this replica.
    pub promised: u64,
    /// The names in the replica's directory are durable: needed once before the first hsync is answered.
    pub is_named_durably: bool,
    /// Bytes of it have been durable before: it was hsynced, or had been finished before an append. So it is made durable when it is finished.
    /// Once its file is closed, nobody recovers what a loss of power has undone.
    pub was_durable: bool,
    /// A write has failed in its midst: the files may hold more than the replica has, and another sum for its last chunk.
    pub is_torn: bool,
    /// The replica was invalidated and may not be written any more.
    pub is_gone: bool,
}

#[derive(Clone)]
pub(crate) struct OpenFiles {
    pub block: Arc<dyn File>,
    pub meta: Arc<dyn File>,
}

impl Active {
    pub fn new(block: Block, volume: VolumeIndex, checksum: Checksum, files: Files) -> Self {
        Self {
            id: block.id,
            volume,
            checksum,
            stamp: AtomicU64::new(block.generation_stamp.0),
            on_disk: AtomicU64::new(block.length),
            acknowledged: AtomicU64::new(block.length),
            is_temporary: AtomicBool::new(files.place == Place::Temporary),
            writer: AtomicU64::new(0),
            files: Mutex::new(files),
        }
    }

    /// Id, stamp and bytes on disk.
    pub fn block(&self) -> Block {
        Block { id: self.id, generation_stamp: self.stamp(), length: self.on_disk() }
    }

    pub fn stamp(&self) -> GenerationStamp {
        GenerationStamp(self.stamp.load(Ordering::Acquire))
    }

    pub fn on_disk(&self) -> u64 {
        self.on_disk.load(Ordering::Acquire)
    }

    /// Acknowledged by the whole pipeline, as far as it is on disk.
    pub fn visible(&self) -> u64 {
        self.acknowledged.load(Ordering::Acquire).min(self.on_disk())
    }

    pub fn state(&self) -> ReplicaState {
        match self.is_temporary.load(Ordering::Acquire) {
            true => ReplicaState::Temporary,
            false => ReplicaState::BeingWritten,
        }
    }

    pub fn facts(&self) -> ReplicaFacts {
        ReplicaFacts { block: self.block(), state: self.state(), visible_length: self.visible() }
    }

    pub fn set_stamp(&self, _files: &mut Files, stamp: GenerationStamp) {
        self.stamp.store(stamp.0, Ordering::Release);
    }

    pub fn set_on_disk(&self, _files: &mut Files, length: u64) {
        self.on_disk.store(length, Ordering::Release);
    }

    pub fn set_acknowledged(&self, _files: &mut Files, length: u64) {
        self.acknowledged.store(length, Ordering::Release);
    }

    pub fn set_written_by_client(&self, _files: &mut Files) {
        self.is_temporary.store(false, Ordering::Release);
    }

    /// Notes the length that the pipeline of `writer` has acknowledged. A writer that has been replaced is ignored.
    pub fn acknowledge(&self, writer: u64, length: u64) {
        if self.writer.load(Ordering::Acquire) == writer {
            self.acknowledged.fetch_max(length, Ordering::AcqRel);
        }
    }

    /// Fences off the writer there is; the answer names the new one.
    pub fn replace_writer(&self) -> u64 {
        self.writer.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub fn is_written_by(&self, writer: u64) -> bool {
        self.writer.load(Ordering::Acquire) == writer
    }

    /// The files, for `writer` to write.
    pub fn files_for(&self, writer: u64) -> StoreResult<MutexGuard<'_, Files>> {
        let files = self.files.lock();
        if files.is_gone || !self.is_written_by(writer) {
            return Err(StoreError::Replaced(self.block()));
        }
        Ok(files)
    }
}
