//! The store: replicas by block id, over all volumes.

use crate::{
    config::{PoolInfo, StorageType, StoreConfig},
    error::{StoreError, StoreResult},
    layout::PoolPaths,
    map::{Record, ReplicaMap},
    reader::ReplicaReader,
    replica::ReplicaFacts,
    threads::VolumeThreads,
    volume::{Volume, is_broken},
};
use base::{Block, BlockId, ExtendedBlock, ReplicaState};
use env::{Disk, Env};
use parking_lot::RwLock;
use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// A volume's place among the opened ones; stays the same while the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeIndex(pub u16);

/// A data server's replicas. Shared behind an `Arc`; all operations block and may run on any thread.
///
/// Opening is in [`crate::open`], creating in [`crate::create`], taking up interrupted writes in
/// [`crate::recovery`], removing in [`crate::remove`].
pub struct BlockStore {
    pub(crate) env: Env,
    pub(crate) config: StoreConfig,
    pub(crate) uuid: Arc<str>,
    pub(crate) volumes: Vec<Volume>,
    /// Data directories that could not be opened at start.
    pub(crate) failed_at_start: Vec<String>,
    /// Set once, after the handshake.
    pub(crate) pool: OnceLock<PoolInfo>,
    pub(crate) map: RwLock<ReplicaMap>,
    pub(crate) observer: OnceLock<Arc<dyn Observer>>,
    pub(crate) turn: AtomicUsize,
    pub(crate) is_closed: AtomicBool,
    pub(crate) threads: VolumeThreads,
}

/// Told of replicas that went away without the caller's doing.
pub trait Observer: Send + Sync {
    /// An invalidated replica's files are gone, or a replica's files were found missing.
    fn deleted(&self, storage_id: &Arc<str>, block: Block);
    /// A volume failed and took these with it.
    fn volume_lost(&self, storage_id: &Arc<str>, blocks: Vec<Block>);
}

/// One volume's figures for a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageReport {
    pub storage_id: Arc<str>,
    pub storage_type: StorageType,
    pub directory: PathBuf,
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub remaining_bytes: u64,
    /// Used on the disk by others.
    pub non_dfs_used_bytes: u64,
    /// Never used for replicas.
    pub reserved_bytes: u64,
}

/// The part of a full block report that is about one volume.
#[derive(Clone, Debug)]
pub struct StorageReplicas {
    pub storage_id: Arc<str>,
    pub storage_type: StorageType,
    /// The replicas, sorted by block id.
    pub replicas: Vec<ReplicaFacts>,
}

impl BlockStore {
    pub fn pool(&self) -> Option<&PoolInfo> {
        self.pool.get()
    }

    /// This server's uuid: read from the directories, or made anew for empty ones.
    pub fn uuid(&self) -> &Arc<str> {
        &self.uuid
    }

    /// Only the first one is kept.
    pub fn set_observer(&self, observer: Arc<dyn Observer>) {
        let _ = self.observer.set(observer);
    }

    pub fn threads(&self) -> &VolumeThreads {
        &self.threads
    }

    /// The storage id of a volume.
    pub fn storage_id(&self, volume: VolumeIndex) -> &Arc<str> {
        &self.volume(volume).storage_id
    }

    /// The storage id and type of every volume, failed ones included.
    pub fn storages(&self) -> impl Iterator<Item = (Arc<str>, StorageType)> {
        self.volumes.iter().map(|volume| (volume.storage_id.clone(), volume.storage_type))
    }

    pub fn has_living_volume(&self) -> bool {
        self.volumes.iter().any(Volume::is_alive)
    }

    /// Opens a replica for reading: not temporary ones, and not those waiting for recovery. The stamp may be
    /// older than the replica's, as a reader learnt it before an append; a replica older than asked for is
    /// refused.
    ///
    /// # Errors
    /// [`StoreError::GenerationStamp`] if the replica's stamp is lower than asked for, [`StoreError::State`] if it is
    /// temporary or waits for recovery, [`StoreError::Corrupt`] if the header of its meta file is damaged; and those of
    /// every operation, see [`StoreError`].
    pub fn read(&self, block: &ExtendedBlock) -> StoreResult<ReplicaReader> {
        self.check_pool(&block.pool)?;
        let id = block.block.id;
        let record = self.record(id)?;
        let found = record.block(id).generation_stamp;
        if found < block.block.generation_stamp {
            return Err(StoreError::GenerationStamp { wanted: block.block, found });
        }
        match record {
            Record::Finalized(settled) => {
                let reader = self.read_settled(id, settled);
                let is_whole = reader.as_ref().is_ok_and(|reader| reader.meta_file.is_some());
                // An append or a new stamp renames files: what was looked up may have moved before it was
                // opened, and then it is looked up once more.
                match self.record(id)? {
                    Record::Finalized(now) if now == settled || is_whole => reader,
                    Record::Finalized(now) => self.read_settled(id, now),
                    Record::Active(active) if !is_whole => self.read_active(&active),
                    _ => reader,
                }
            }
            Record::Waiting(settled) => Err(StoreError::State {
                block: settled.block(id),
                state: ReplicaState::WaitingRecovery,
                what: "it can be read once its lease has been recovered".into(),
            }),
            Record::Active(active) => self.read_active(&active),
        }
    }

    /// # Errors
    /// [`StoreError::UnknownPool`] if the pool is not served, [`StoreError::NotFound`] if there is no replica of the
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
        let mut by_volume: Vec<Vec<ReplicaFacts>> = self.volumes.iter().map(|_| Vec::new()).collect();
        for (id, record) in &self.map.read().records {
            let facts = record.facts(*id);
            if facts.state != ReplicaState::Temporary {
                by_volume[record.volume().0 as usize].push(facts);
            }
        }
        let mut reports = Vec::new();
        for (volume, mut replicas) in self.volumes.iter().zip(by_volume) {
            if volume.is_alive() {
                replicas.sort_unstable_by_key(|facts| facts.block.id);
                let (storage_id, storage_type) = (volume.storage_id.clone(), volume.storage_type);
                reports.push(StorageReplicas { storage_id, storage_type, replicas });
            }
        }
        reports
    }

    /// The figures of the living volumes. A volume whose disk does not tell its room is ended as failed.
    pub fn storage_reports(&self) -> Vec<StorageReport> {
        let mut reports = Vec::new();
        for volume in self.volumes.iter().filter(|volume| volume.is_alive()) {
            match volume.figures(self.disk()) {
                Ok(figures) => reports.push(StorageReport {
                    storage_id: volume.storage_id.clone(),
                    storage_type: volume.storage_type,
                    directory: volume.paths.root.clone(),
                    capacity_bytes: figures.capacity_bytes,
                    used_bytes: figures.used_bytes,
                    remaining_bytes: figures.remaining_bytes,
                    non_dfs_used_bytes: figures.non_dfs_used_bytes,
                    reserved_bytes: volume.reserved_bytes,
                }),
                Err(error) => self.fail_volume(volume.index, &format!("its space cannot be read: {error}")),
            }
        }
        reports
    }

    /// Directories that are not used, those that failed at start included, each with its reason where known.
    pub fn failed_volumes(&self) -> Vec<String> {
        let running = self
            .volumes
            .iter()
            .filter_map(|volume| volume.failure().map(|_| volume.paths.root.display().to_string()));
        self.failed_at_start.iter().cloned().chain(running).collect()
    }

    /// Replicas of any state.
    pub fn replica_count(&self) -> usize {
        self.map.read().records.len()
    }

    /// Refuses everything from now on and lets another process take the directories.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        for volume in &self.volumes {
            volume.unlock();
        }
    }

    /// Takes a broken volume out of use. Its replicas are gone from now on; the observer is told.
    pub fn fail_volume(&self, index: VolumeIndex, why: &str) {
        let volume = self.volume(index);
        if !volume.fail(why.into()) {
            return;
        }
        tracing::error!(directory = %volume.paths.root.display(), why, "a volume has failed and is not used any more");
        let mut lost = Vec::new();
        self.map.write().records.retain(|id, record| {
            // Recoveries under way notice the loss when they look their replica up again.
            if record.volume() != index {
                return true;
            }
            if let Record::Active(active) = record {
                active.replace_writer();
            }
            lost.push(record.block(*id));
            false
        });
        lost.sort_unstable();
        if let Some(observer) = self.observer.get() {
            observer.volume_lost(&volume.storage_id, lost);
        }
    }
}

/// Parts that the other files of this crate use.
impl BlockStore {
    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.env.disk
    }

    pub(crate) fn volume(&self, index: VolumeIndex) -> &Volume {
        &self.volumes[index.0 as usize]
    }

    pub(crate) fn check_pool(&self, pool: &str) -> StoreResult<()> {
        match self.pool.get() {
            Some(served) if *served.pool == *pool && !self.is_closed.load(Ordering::Acquire) => Ok(()),
            _ => Err(StoreError::UnknownPool(pool.into())),
        }
    }

    /// The paths of the pool on a volume. Only after [`BlockStore::check_pool`].
    pub(crate) fn paths(&self, volume: VolumeIndex) -> PoolPaths {
        let pool = self.pool.get().expect("replicas are touched only once a pool is served");
        self.volume(volume).pool(&pool.pool)
    }

    pub(crate) fn record(&self, id: BlockId) -> StoreResult<Record> {
        self.map.read().records.get(&id).cloned().ok_or(StoreError::NotFound(id))
    }

    /// The record of a replica that the caller is going to change; an error while the replica is being recovered.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is no replica of the block, [`StoreError::UnderRecovery`] if it is being
    /// recovered.
    pub(crate) fn record_to_change(&self, id: BlockId) -> StoreResult<Record> {
        let map = self.map.read();
        let record = map.records.get(&id).cloned().ok_or(StoreError::NotFound(id))?;
        match map.recovering.get(&id) {
            Some(recovery) => Err(StoreError::UnderRecovery { block: record.block(id), recovery: *recovery }),
            None => Ok(record),
        }
    }

    /// Makes an error of an I/O error, and ends the volume when the disk is broken.
    pub(crate) fn io_error(&self, volume: VolumeIndex, what: &str, error: io::Error) -> StoreError {
        if is_broken(&error) {
            self.fail_volume(volume, &format!("{what}: {error}"));
        }
        StoreError::Io { what: what.into(), error }
    }

    /// After a failed sync nobody knows what is on the disk: that is the end of the volume.
    pub(crate) fn sync_error(&self, volume: VolumeIndex, what: &str, error: io::Error) -> StoreError {
        self.fail_volume(volume, &format!("{what}: {error}"));
        StoreError::Io { what: what.into(), error }
    }
}
