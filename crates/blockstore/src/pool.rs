//! The store of one block pool: its replicas by block id, over the volumes that all pools share.

use crate::{
    config::PoolInfo,
    error::{StoreError, StoreResult},
    layout::PoolPaths,
    map::Record,
    observer::Observer,
    pool_state::PoolState,
    replica::ReplicaFacts,
    store::BlockStore,
    usage::VolumeUse,
    volume::{Volume, VolumeIndex},
};
use base::{Block, BlockId, ReplicaState, StorageType};
use env::Disk;
use std::{fmt, io, sync::Arc};

/// The replicas of one block pool. Cheap to clone; all operations block and may run on any thread.
///
/// [`BlockStore::serve_pool`] makes it. Reading is in [`crate::reader`], creating in [`crate::create`], taking up
/// interrupted writes in [`crate::recovery`], removing in [`crate::remove`].
#[derive(Clone)]
pub struct PoolStore {
    pub(crate) volumes: Arc<BlockStore>,
    pub(crate) state: Arc<PoolState>,
}

/// The part of a full block report that is about one volume.
#[derive(Clone, Debug)]
pub struct StorageReplicas {
    pub storage_id: Arc<str>,
    pub storage_type: StorageType,
    /// The replicas, sorted by block id.
    pub replicas: Vec<ReplicaFacts>,
}

impl fmt::Debug for PoolStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolStore").field("info", &self.state.info).finish_non_exhaustive()
    }
}

impl PoolStore {
    /// The pool's names, as the handshake told them.
    pub fn info(&self) -> &PoolInfo {
        &self.state.info
    }

    /// The volumes that hold the pool's replicas, and those of other pools.
    pub fn volumes(&self) -> &Arc<BlockStore> {
        &self.volumes
    }

    /// Sets the listener. Only the first one that is set is kept.
    pub fn set_observer(&self, observer: Arc<dyn Observer>) {
        let _ = self.state.observer.set(observer);
    }

    /// # Errors
    /// [`StoreError::UnknownPool`] if this is another pool, [`StoreError::NotFound`] if there is no replica of the
    /// block.
    pub fn facts(&self, pool: &str, id: BlockId) -> StoreResult<ReplicaFacts> {
        self.check_pool(pool)?;
        Ok(self.record(id)?.facts(id))
    }

    /// The storage id of the volume that has this replica.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no replica of the block.
    pub fn storage_of(&self, id: BlockId) -> StoreResult<Arc<str>> {
        Ok(self.storage_id(self.record(id)?.volume()).clone())
    }

    /// Every replica of each living volume but temporary ones, sorted by block id.
    pub fn block_reports(&self) -> Vec<StorageReplicas> {
        let mut by_volume: Vec<Vec<ReplicaFacts>> = Vec::new();
        let map = self.state.map.read();
        // Volumes come under the map's lock: the list has those of all records.
        by_volume.resize_with(self.volumes.volumes.len(), Vec::new);
        for (id, record) in &map.records {
            let facts = record.facts(*id);
            if facts.state != ReplicaState::Temporary {
                by_volume[record.volume().0 as usize].push(facts);
            }
        }
        drop(map);
        let mut reports = Vec::new();
        for (volume, mut replicas) in self.volumes.volumes.iter().zip(by_volume) {
            if volume.is_alive() {
                replicas.sort_unstable_by_key(|facts| facts.block.id);
                let (storage_id, storage_type) = (volume.storage_id.clone(), volume.storage_type);
                reports.push(StorageReplicas { storage_id, storage_type, replicas });
            }
        }
        reports
    }

    /// How many replicas of any state each volume has, in the volumes' order.
    pub fn replica_counts(&self) -> Vec<u64> {
        let map = self.state.map.read();
        // Volumes come under the map's lock: the list has those of all records.
        let mut counts = vec![0; self.volumes.volumes.len()];
        for record in map.records.values() {
            counts[record.volume().0 as usize] += 1;
        }
        counts
    }

    /// Bytes of the pool's block and meta files on a volume.
    pub fn used_bytes(&self, volume: VolumeIndex) -> u64 {
        self.state.used(volume)
    }

    /// Replicas of any state.
    pub fn replica_count(&self) -> usize {
        self.state.map.read().records.len()
    }
}

/// Parts that the other files of this crate use.
impl PoolStore {
    pub(crate) fn disk(&self) -> &dyn Disk {
        self.volumes.disk()
    }

    pub(crate) fn volume(&self, index: VolumeIndex) -> &Volume {
        self.volumes.volume(index)
    }

    pub(crate) fn storage_id(&self, index: VolumeIndex) -> &Arc<str> {
        self.volumes.storage_id(index)
    }

    /// Whether a block of `pool` can be one of this store.
    ///
    /// # Errors
    /// [`StoreError::UnknownPool`] if this is another pool, or the store is closed.
    pub(crate) fn check_pool(&self, pool: &str) -> StoreResult<()> {
        match *self.state.info.pool == *pool && !self.volumes.is_closed() {
            true => Ok(()),
            false => Err(StoreError::UnknownPool(pool.into())),
        }
    }

    /// The paths of the pool on a volume.
    pub(crate) fn paths(&self, volume: VolumeIndex) -> PoolPaths {
        self.volume(volume).pool(&self.state.info.pool)
    }

    /// Keeps a volume from being given away until the answer is dropped.
    ///
    /// # Errors
    /// [`StoreError::VolumeLost`] if the volume has failed or is removed.
    pub(crate) fn enter(&self, volume: VolumeIndex, block: Block) -> StoreResult<VolumeUse> {
        self.volume(volume).enter().ok_or(StoreError::VolumeLost(block))
    }

    pub(crate) fn record(&self, id: BlockId) -> StoreResult<Record> {
        self.state.map.read().records.get(&id).cloned().ok_or(StoreError::NotFound(id))
    }

    /// The record of a replica that the caller is going to change; an error while the replica is being recovered.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no replica of the block, [`StoreError::UnderRecovery`] if it is being
    /// recovered.
    pub(crate) fn record_to_change(&self, id: BlockId) -> StoreResult<Record> {
        let map = self.state.map.read();
        let record = map.records.get(&id).cloned().ok_or(StoreError::NotFound(id))?;
        match map.recovering.get(&id) {
            Some(recovery) => Err(StoreError::UnderRecovery { block: record.block(id), recovery: *recovery }),
            None => Ok(record),
        }
    }

    pub(crate) fn io_error(&self, volume: VolumeIndex, what: &str, error: io::Error) -> StoreError {
        self.volumes.io_error(volume, what, error)
    }

    pub(crate) fn sync_error(&self, volume: VolumeIndex, what: &str, error: io::Error) -> StoreError {
        self.volumes.sync_error(volume, what, error)
    }
}
