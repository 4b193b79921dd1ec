//! Taking replicas away.

use crate::{
    active::{Active, Files},
    error::{StoreError, StoreResult},
    layout::Place,
    map::{Record, Settled},
    meta_file,
    pool::PoolStore,
    volume::VolumeIndex,
};
use base::{Block, BlockId, ExtendedBlock};
use std::{io, path::Path};

impl PoolStore {
    /// Forgets the replica at once and removes its files in the background, then tells the observer. Only a
    /// replica of exactly this generation stamp: a newer one is not what the caller wants gone.
    ///
    /// # Errors
    /// [`StoreError::UnknownPool`] if the pool is not served, [`StoreError::NotFound`] if there is no replica of the
    /// block, [`StoreError::GenerationStamp`] if it has another stamp. That files cannot be removed is not told here.
    pub fn invalidate(&self, block: &ExtendedBlock) -> StoreResult<()> {
        self.check_pool(&block.pool)?;
        let id = block.block.id;
        let record = {
            let mut map = self.state.map.write();
            let found = map.records.get(&id).ok_or(StoreError::NotFound(id))?.block(id).generation_stamp;
            if found != block.block.generation_stamp {
                return Err(StoreError::GenerationStamp { wanted: block.block, found });
            }
            map.removing.insert(id);
            map.recovering.remove(&id);
            map.records.remove(&id).expect("it was there a line ago, under the same lock")
        };
        self.state.unsettle(id);
        let removed = record.block(id);
        let volume = record.volume();
        let store = self.clone();
        self.volumes.threads.submit_background(volume, move || {
            store.remove_record(removed, record);
            // Told before the id is free: a replica that is made here next is told of later.
            if let Some(observer) = store.state.observer.get() {
                observer.deleted(store.storage_id(volume), removed);
            }
            store.state.map.write().removing.remove(&id);
        });
        Ok(())
    }

    /// The files of a record that is no longer in the map.
    pub(crate) fn remove_record(&self, block: Block, record: Record) {
        match record {
            Record::Finalized(settled) => self.remove_settled(Place::Finalized, block, settled),
            Record::Waiting(settled) => self.remove_settled(Place::BeingWritten, block, settled),
            Record::Active(active) => self.remove_active(&active, &mut active.files.lock()),
        }
    }

    fn remove_settled(&self, place: Place, block: Block, settled: Settled) {
        self.remove_files(settled.volume, place, block);
    }

    pub(crate) fn remove_active(&self, active: &Active, files: &mut Files) {
        active.replace_writer();
        if std::mem::replace(&mut files.is_gone, true) {
            return;
        }
        files.open = None;
        self.volume(active.volume).release(std::mem::take(&mut files.promised));
        self.remove_files(active.volume, files.place, active.block());
    }

    /// The block file first: a meta file alone is nothing, a block file alone would be a corrupt replica.
    fn remove_files(&self, index: VolumeIndex, place: Place, block: Block) {
        let Some(_in_use) = self.volume(index).enter() else { return };
        let paths = self.paths(index);
        let block_path = paths.block(place, block.id);
        let meta_path = paths.meta(place, block.id, block.generation_stamp);
        let freed = block.length + self.disk().length(&meta_path).unwrap_or(meta_file::HEADER_SIZE);
        for path in [&block_path, &meta_path] {
            self.remove_file(index, path);
        }
        self.state.sub_used(index, freed);
    }

    pub(crate) fn remove_file(&self, index: VolumeIndex, path: &Path) {
        match self.disk().remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let error = self.io_error(index, &format!("removing {}", path.display()), error);
                tracing::warn!(%error, "a replica's file stays behind");
            }
            _ => {}
        }
    }

    /// The block file of a replica in the map is not there: somebody took it away, or its whole volume. Whether the replica
    /// was forgotten.
    pub(crate) fn forget_missing(&self, id: BlockId, settled: Settled) -> bool {
        let index = settled.volume;
        if !self.volumes.is_there(index) {
            return false;
        }
        let is_forgotten = {
            let mut map = self.state.map.write();
            // It may have been removed, appended to or moved since the look-up, which explains the missing file.
            let found = map.records.get(&id);
            let is_same =
                !map.moving.contains(&id) && matches!(found, Some(Record::Finalized(now)) if *now == settled);
            let is_forgotten =
                is_same && !map.recovering.contains_key(&id) && map.records.remove(&id).is_some();
            if is_forgotten {
                map.removing.insert(id);
            }
            is_forgotten
        };
        if is_forgotten {
            self.state.unsettle(id);
            let block = settled.block(id);
            self.state.sub_used(index, settled.length);
            tracing::error!(
                %block, directory = %self.volume(index).paths.root.display(),
                "the replica's block file is missing; it is forgotten"
            );
            if let Some(observer) = self.state.observer.get() {
                observer.deleted(self.storage_id(index), block);
            }
            self.state.map.write().removing.remove(&id);
        }
        is_forgotten
    }
}
