//! New replicas.

use crate::{
    active::{Active, Files, OpenFiles},
    checksum::Checksum,
    error::{StoreError, StoreResult},
    layout::Place,
    map::{Record, ReplicaMap},
    meta_file,
    pool::PoolStore,
    writer::ReplicaWriter,
};
use base::{Block, ExtendedBlock, StorageType};
use env::OpenMode;
use parking_lot::MutexGuard;
use std::sync::Arc;

/// The properties of a replica to be made.
#[derive(Clone, Debug)]
pub struct NewReplica {
    /// Its length is not looked at.
    pub block: ExtendedBlock,
    pub checksum: Checksum,
    /// Preferred; another type serves when no volume of this one has room.
    pub storage_type: StorageType,
    /// Bytes that the replica may grow to (0 when unknown): volumes with less are not chosen, and as many
    /// are held back until they are written.
    pub size_expected: u64,
}

impl PoolStore {
    /// A new replica to be written by a client's pipeline.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if there is a replica of the block already, [`StoreError::BeingRemoved`] if one is just going
    /// away, [`StoreError::OutOfSpace`] if no volume has room; and those of every operation, see [`StoreError`].
    pub fn create_rbw(&self, new: &NewReplica) -> StoreResult<ReplicaWriter> {
        self.create(new, Place::BeingWritten)
    }

    /// A new replica to be copied from another server. An older one of the same block, a remnant, gives way.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if there is a replica of the block that is not older, [`StoreError::BeingRemoved`] if one is
    /// just going away, [`StoreError::State`] if the older one is being changed, [`StoreError::OutOfSpace`] if no volume has
    /// room; and those of every operation, see [`StoreError`].
    pub fn create_temporary(&self, new: &NewReplica) -> StoreResult<ReplicaWriter> {
        self.check_pool(&new.block.pool)?;
        let id = new.block.block.id;
        if let Ok(record) = self.record(id)
            && record.block(id).generation_stamp < new.block.block.generation_stamp
        {
            self.remove_now(record.block(id), record)?;
        }
        self.create(new, Place::Temporary)
    }

    fn create(&self, new: &NewReplica, place: Place) -> StoreResult<ReplicaWriter> {
        self.check_pool(&new.block.pool)?;
        let block = Block { length: 0, ..new.block.block };
        refuse_existing(&self.state.map.read(), block)?;
        let index = self.volumes.choose_volume(new.storage_type, new.size_expected)?;
        let volume = self.volume(index);
        let files = Files {
            place,
            open: None,
            last_sum: None,
            promised: 0,
            is_named_durably: false,
            was_durable: false,
            is_torn: false,
            is_gone: false,
        };
        let active = Arc::new(Active::new(block, index, new.checksum, files));
        let writer = active.replace_writer();
        // Held before anybody can find the replica, so that nobody sees it without its files.
        let mut files = active.files.lock();
        {
            let mut map = self.state.map.write();
            refuse_existing(&map, block)?;
            if !volume.is_alive() {
                return Err(StoreError::VolumeLost(block));
            }
            map.records.insert(block.id, Record::Active(active.clone()));
        }
        match self.create_files(&active, place) {
            Ok(open) => {
                files.open = Some(open);
                files.promised = new.size_expected;
                volume.promise(new.size_expected);
                self.state.add_used(index, meta_file::HEADER_SIZE);
            }
            Err(error) => {
                self.forget_active(&active);
                self.remove_active(&active, &mut files);
                return Err(error);
            }
        }
        drop(files);
        Ok(ReplicaWriter::new(self.clone(), active, writer))
    }

    fn create_files(&self, active: &Active, place: Place) -> StoreResult<OpenFiles> {
        let block = active.block();
        // A file that bears one of these names is left from an earlier run: the map has no such replica.
        let open = self.open_files(active.volume, place, block, OpenMode::CreateOrTruncate)?;
        open.meta
            .write_at(&meta_file::encode_header(active.checksum), 0)
            .map_err(|error| self.io_error(active.volume, &format!("the meta file of {block}"), error))?;
        Ok(open)
    }

    /// Forgets a replica and removes its files before returning.
    ///
    /// # Errors
    /// [`StoreError::State`] if the replica in the map is another one by now, or is being removed.
    pub(crate) fn remove_now(&self, block: Block, record: Record) -> StoreResult<()> {
        {
            let mut map = self.state.map.write();
            let is_same = map.records.get(&block.id).is_some_and(|found| found.block(block.id) == block);
            if !is_same || !map.removing.insert(block.id) {
                return Err(StoreError::State {
                    block,
                    state: record.state(),
                    what: "it is being changed by someone else".into(),
                });
            }
            map.records.remove(&block.id);
            // It was about this replica.
            map.recovering.remove(&block.id);
        }
        self.state.unsettle(block.id);
        self.remove_record(block, record);
        self.state.map.write().removing.remove(&block.id);
        Ok(())
    }

    pub(crate) fn forget_active(&self, active: &Arc<Active>) {
        let mut map = self.state.map.write();
        if map.records.get(&active.id).is_some_and(|record| record.is_active(active)) {
            map.records.remove(&active.id);
        }
    }

    /// Puts a finished or changed active replica's place in the map, if it is still this one's.
    ///
    /// # Errors
    /// [`StoreError::Replaced`] if the map has another replica in its place.
    pub(crate) fn settle(&self, active: &Arc<Active>, record: Record) -> StoreResult<()> {
        let mut map = self.state.map.write();
        match map.records.get_mut(&active.id) {
            Some(found) if found.is_active(active) => {
                *found = record;
                Ok(())
            }
            _ => Err(StoreError::Replaced(active.block())),
        }
    }

    /// An active replica with its files locked.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the replica is gone, [`StoreError::VolumeLost`] if its volume has failed.
    pub(crate) fn lock_files<'a>(&self, active: &'a Arc<Active>) -> StoreResult<MutexGuard<'a, Files>> {
        let files = active.files.lock();
        if files.is_gone {
            return Err(StoreError::NotFound(active.id));
        }
        if !self.volume(active.volume).is_alive() {
            return Err(StoreError::VolumeLost(active.block()));
        }
        Ok(files)
    }
}

fn refuse_existing(map: &ReplicaMap, block: Block) -> StoreResult<()> {
    if let Some(record) = map.records.get(&block.id) {
        return Err(StoreError::Exists { block: record.block(block.id), state: record.state() });
    }
    if map.removing.contains(&block.id) || map.moving.contains(&block.id) {
        return Err(StoreError::BeingRemoved(block));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BlockId, GenerationStamp};

    #[test]
    fn a_replica_that_is_being_removed_is_not_told_as_one_that_is_there() {
        let mut map = ReplicaMap::default();
        let block = Block { id: BlockId(1), generation_stamp: GenerationStamp(1002), length: 0 };
        refuse_existing(&map, block).unwrap();
        map.removing.insert(BlockId(1));
        let text = refuse_existing(&map, block).unwrap_err().to_string();
        assert!(text.contains("are being removed") && !text.contains("already exists"), "{text}");
    }
}
