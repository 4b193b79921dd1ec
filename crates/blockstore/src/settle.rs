//! Block recovery: the writer is gone, and the servers that have the block agree on its length.
//!
//! One server, ordered by the metadata service, asks each of them to begin ([`PoolStore::begin_recovery`]):
//! from then on nobody else may change the replica. It picks the length and tells each to take it
//! ([`PoolStore::finish_recovery`]). A recovery with a higher stamp takes over from one that got stuck.

use crate::{
    active::{Active, Files},
    error::{StoreError, StoreResult},
    layout::Place,
    map::{Record, Settled},
    pool::PoolStore,
    reader::read_header,
};
use base::{Block, Candidate, ExtendedBlock, GenerationStamp};
use env::OpenMode;
use std::sync::Arc;

impl PoolStore {
    /// Stops the writer, if there is one, and keeps all others off the replica. `recovery` is the stamp that the
    /// block will have. `None` when there is no such replica here.
    ///
    /// # Errors
    /// [`StoreError::GenerationStamp`] if the replica's stamp is lower than `block`'s or not below `recovery`,
    /// [`StoreError::UnderRecovery`] if a recovery at the same or a later stamp has begun: the writer is stopped all
    /// the same. [`StoreError::UnknownPool`] if the pool is not served; [`StoreError::VolumeLost`] if the volume of a
    /// replica that is being written has failed, and [`StoreError::NotFound`] if such a replica is removed meanwhile.
    pub fn begin_recovery(
        &self,
        block: &ExtendedBlock,
        recovery: GenerationStamp,
    ) -> StoreResult<Option<Candidate>> {
        self.check_pool(&block.pool)?;
        let wanted = block.block;
        let record = match self.record(wanted.id) {
            Ok(record) => record,
            Err(StoreError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        // Waits for a write or a finalize under way.
        let files = match &record {
            Record::Active(active) => {
                let files = self.lock_files(active)?;
                active.replace_writer();
                Some(files)
            }
            Record::Finalized(_) | Record::Waiting(_) => None,
        };
        let mut map = self.state.map.write();
        let Some(record) = map.records.get(&wanted.id) else { return Ok(None) };
        let (found, state) = (record.block(wanted.id), record.state());
        if found.generation_stamp < wanted.generation_stamp || found.generation_stamp >= recovery {
            return Err(StoreError::GenerationStamp { wanted, found: found.generation_stamp });
        }
        if let Some(earlier) = map.recovering.get(&wanted.id).filter(|earlier| **earlier >= recovery) {
            return Err(StoreError::UnderRecovery { block: found, recovery: *earlier });
        }
        map.recovering.insert(wanted.id, recovery);
        drop(files);
        Ok(Some(Candidate { block: found, state }))
    }

    /// Gives the replica the agreed length and the recovery's stamp, finished and durable. `block` is the
    /// candidate as [`PoolStore::begin_recovery`] told it. Answers the storage id.
    ///
    /// # Errors
    /// [`StoreError::State`] if the recovery has not begun at this stamp, or a later one has; [`StoreError::Range`] if
    /// the replica has not the length of `block` any more, or is shorter than `length`; [`StoreError::Corrupt`] if it
    /// is to be cut and its last chunk or the header of its meta file is damaged; and those of every operation, see
    /// [`StoreError`].
    pub fn finish_recovery(
        &self,
        block: &ExtendedBlock,
        recovery: GenerationStamp,
        length: u64,
    ) -> StoreResult<Arc<str>> {
        let record = self.under_recovery(block, recovery, length)?;
        let id = block.block.id;
        let found = record.block(id);
        let volume = record.volume();
        match record {
            Record::Finalized(settled) if settled.length == length => {
                self.restamp_finalized(settled, found, recovery)?;
            }
            Record::Finalized(settled) => {
                let writer = self.reopen(settled, found, recovery)?;
                let (active, token) = writer.parts();
                let mut files = active.files_for(token)?;
                self.take_length(active, &mut files, length)?;
            }
            Record::Waiting(settled) => {
                let active = self.wake(found, settled)?;
                let mut files = self.lock_files(&active)?;
                self.raise_stamp(&active, &mut files, recovery)?;
                self.take_length(&active, &mut files, length)?;
            }
            Record::Active(active) => {
                let mut files = self.lock_files(&active)?;
                active.replace_writer();
                self.raise_stamp(&active, &mut files, recovery)?;
                self.open_again(&active, &mut files)?;
                self.take_length(&active, &mut files, length)?;
            }
        }
        self.state.map.write().recovering.remove(&id);
        Ok(self.storage_id(volume).clone())
    }

    /// The replica that a recovery was begun on, if it is as it was then and long enough.
    ///
    /// # Errors
    /// [`StoreError::UnknownPool`] and [`StoreError::NotFound`]; [`StoreError::State`] if no recovery has begun at this
    /// stamp; [`StoreError::Range`] if the replica has another length than `block`, or is shorter than `length`.
    pub(crate) fn under_recovery(
        &self,
        block: &ExtendedBlock,
        recovery: GenerationStamp,
        length: u64,
    ) -> StoreResult<Record> {
        self.check_pool(&block.pool)?;
        let id = block.block.id;
        let record = self.record(id)?;
        let (found, state) = (record.block(id), record.state());
        if self.state.map.read().recovering.get(&id) != Some(&recovery) {
            let what = format!("no recovery at stamp {recovery} has begun");
            return Err(StoreError::State { block: found, state, what });
        }
        if found.length != block.block.length || length > found.length {
            return Err(StoreError::Range(format!(
                "{found} has {} bytes here, the recovery speaks of {} and wants {length}",
                found.length, block.block.length
            )));
        }
        Ok(record)
    }

    fn take_length(&self, active: &Arc<Active>, files: &mut Files, length: u64) -> StoreResult<()> {
        if length < active.on_disk() {
            self.cut(active, files, length)?;
        }
        self.finalize_active(active, files, true)?;
        Ok(())
    }

    /// An interrupted replica, found at start, becomes one that can be changed.
    fn wake(&self, found: Block, settled: Settled) -> StoreResult<Arc<Active>> {
        let open = self.open_files(settled.volume, Place::BeingWritten, found, OpenMode::ReadWrite)?;
        let checksum = read_header(self, settled.volume, found, &*open.meta)?;
        let files = Files {
            place: Place::BeingWritten,
            open: Some(open),
            last_sum: None,
            promised: 0,
            is_named_durably: false,
            was_durable: false,
            is_torn: false,
            is_gone: false,
        };
        let active = Arc::new(Active::new(found, settled.volume, checksum, files));
        let mut map = self.state.map.write();
        match map.records.get_mut(&found.id) {
            Some(record @ Record::Waiting(_)) if record.block(found.id) == found => {
                *record = Record::Active(active.clone());
                Ok(active)
            }
            _ => Err(StoreError::NotFound(found.id)),
        }
    }
}
