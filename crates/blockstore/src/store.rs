//! The store of a data server: its volumes, which all pools share.

use crate::{
    config::StoreConfig,
    error::{StoreError, StoreResult},
    opening::Opening,
    pool_state::PoolState,
    schedule::turns::{TurnFigures, Turns},
    threads::VolumeThreads,
    volume::{Figures, Volume, VolumeIndex, is_broken},
    volume_list::VolumeList,
};
use base::StorageType;
use env::{Disk, Env};
use parking_lot::{Mutex, RwLock};
use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// A data server's volumes. Shared behind an `Arc`; all operations block and may run on any thread.
///
/// Opening is in [`crate::open`], beginning to serve a pool in [`crate::serve`]. The replicas of a pool are in the [`PoolStore`](crate::PoolStore) that
/// [`BlockStore::serve_pool`] makes.
pub struct BlockStore {
    pub(crate) env: Env,
    pub(crate) config: StoreConfig,
    pub(crate) uuid: Arc<str>,
    pub(crate) volumes: VolumeList,
    /// Held while volumes come and go, and shared by those who open a pool.
    pub(crate) swapping: RwLock<()>,
    /// Data directories that could not be opened at start, and are still in the configuration.
    pub(crate) failed_at_start: Mutex<Vec<String>>,
    /// When the store was opened, in milliseconds since 1970.
    pub(crate) opened_ms: u64,
    /// The pools that are served, from the front: each has a place from its first handshake on. So they can be read without a lock.
    pub(crate) pools: Box<[OnceLock<Arc<PoolState>>]>,
    pub(crate) opening: Opening,
    pub(crate) turn: AtomicUsize,
    pub(crate) is_closed: AtomicBool,
    pub(crate) threads: VolumeThreads,
}

/// The volumes that are not used because they have failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeFailures {
    pub directories: Vec<String>,
    /// When the last of them failed, in milliseconds since 1970; for one that failed at start, when that was.
    pub last_ms: u64,
    /// The room of those that have told it before they failed.
    pub capacity_bytes: u64,
}

/// One volume's figures for a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageReport {
    pub volume: VolumeIndex,
    pub storage_id: Arc<str>,
    pub storage_type: StorageType,
    pub directory: PathBuf,
    pub capacity_bytes: u64,
    /// Used by the replicas of all pools that are served.
    pub used_bytes: u64,
    pub remaining_bytes: u64,
    /// Used on the disk by others.
    pub non_dfs_used_bytes: u64,
    /// Never used for replicas.
    pub reserved_bytes: u64,
}

impl BlockStore {
    /// This server's uuid: read from the directories, or made anew for empty ones.
    pub fn uuid(&self) -> &Arc<str> {
        &self.uuid
    }

    pub fn threads(&self) -> &VolumeThreads {
        &self.threads
    }

    /// The storage id of a volume.
    pub fn storage_id(&self, volume: VolumeIndex) -> &Arc<str> {
        &self.volume(volume).storage_id
    }

    /// The storage id and type of every volume, failed and removed ones included; the latest first.
    pub fn storages(&self) -> impl Iterator<Item = (Arc<str>, StorageType)> {
        let volumes: Vec<&Volume> = self.volumes.iter().collect();
        volumes.into_iter().rev().map(|volume| (volume.storage_id.clone(), volume.storage_type))
    }

    pub fn has_living_volume(&self) -> bool {
        self.volumes.iter().any(Volume::is_alive)
    }

    /// The figures of the living volumes. A volume whose disk does not tell its room is ended as failed.
    pub fn storage_reports(&self) -> Vec<StorageReport> {
        let mut reports = Vec::new();
        for volume in self.volumes.iter().filter(|volume| volume.is_alive()) {
            match self.figures(volume) {
                Ok(figures) => reports.push(StorageReport {
                    volume: volume.index,
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

    /// The figures of all volumes' turns together.
    pub fn turn_figures(&self) -> TurnFigures {
        let mut sum = TurnFigures::default();
        for figures in self.volumes.iter().filter_map(|volume| volume.turns.as_ref()).map(Turns::figures) {
            sum.turns += figures.turns;
            sum.written_out_bytes += figures.written_out_bytes;
            sum.queued_bytes += figures.queued_bytes;
            sum.refused += figures.refused;
        }
        sum
    }

    /// Directories that are not used, those that failed at start included, each with its reason where known.
    pub fn failed_volumes(&self) -> Vec<String> {
        let running = self
            .volumes
            .iter()
            .filter(|volume| !volume.is_removed())
            .filter_map(|volume| volume.failure().map(|_| volume.paths.root.display().to_string()));
        self.failed_at_start.lock().iter().cloned().chain(running).collect()
    }

    /// The directories of [`BlockStore::failed_volumes`], with when they failed and what room went with them. `None`: no volume has failed.
    pub fn volume_failures(&self) -> Option<VolumeFailures> {
        let directories = self.failed_volumes();
        if directories.is_empty() {
            return None;
        }
        let at_start = if self.failed_at_start.lock().is_empty() { 0 } else { self.opened_ms };
        let running = self.volumes.iter().filter(|volume| !volume.is_removed() && !volume.is_alive());
        let (last_ms, capacity_bytes) = running.map(Volume::loss).fold((at_start, 0), |sum, loss| {
            let (last_ms, bytes): (u64, u64) = sum;
            (last_ms.max(loss.0), bytes.saturating_add(loss.1))
        });
        Some(VolumeFailures { directories, last_ms, capacity_bytes })
    }

    /// Refuses everything from now on and lets another process take the directories.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        for volume in self.volumes.iter() {
            volume.unlock();
        }
    }

    /// Takes a broken volume out of use. Its replicas are gone from now on, those of every pool; the pools' observers are told.
    pub fn fail_volume(&self, index: VolumeIndex, why: &str) {
        let volume = self.volume(index);
        if !volume.fail(why.into(), self.env.clock.timestamp().ms) {
            return;
        }
        tracing::error!(directory = %volume.paths.root.display(), why, "a volume has failed and is not used any more");
        for pool in self.pool_states() {
            pool.lose_volume(volume);
        }
    }
}

/// Parts that the other files of this crate use.
impl BlockStore {
    /// The pools that are served.
    pub(crate) fn pool_states(&self) -> impl Iterator<Item = &Arc<PoolState>> {
        self.pools.iter().map_while(OnceLock::get)
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.env.disk
    }

    /// A volume's figures. What is used is the sum over all pools that are served, as in HDFS.
    pub(crate) fn figures(&self, volume: &Volume) -> io::Result<Figures> {
        let used_bytes = self.pool_states().map(|pool| pool.used(volume.index)).sum();
        volume.figures(self.disk(), used_bytes)
    }

    /// The turns of a volume, if its streams take turns.
    pub(crate) fn turns(&self, index: VolumeIndex) -> Option<&Turns> {
        self.volume(index).turns.as_ref()
    }

    pub(crate) fn volume(&self, index: VolumeIndex) -> &Volume {
        self.volumes.get(index)
    }

    /// Chooses the volume for a replica of `size` bytes: one of the storage type asked for, or any one if no volume of
    /// that type has room.
    pub(crate) fn choose_volume(&self, storage_type: StorageType, size: u64) -> StoreResult<VolumeIndex> {
        let mut candidates = Vec::new();
        for volume in self.volumes.iter().filter(|volume| volume.is_alive()) {
            match self.figures(volume) {
                Ok(figures) if figures.remaining_bytes > size => {
                    candidates.push((volume.index, volume.storage_type, figures.remaining_bytes));
                }
                Ok(_) => {}
                Err(error) => self.fail_volume(volume.index, &format!("its space cannot be read: {error}")),
            }
        }
        if candidates.iter().any(|candidate| candidate.1 == storage_type) {
            candidates.retain(|candidate| candidate.1 == storage_type);
        }
        let free: Vec<u64> = candidates.iter().map(|candidate| candidate.2).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let picked = self.config.choice.pick(&free, turn, self.env.random.next_u64());
        picked.map(|at| candidates[at].0).ok_or(StoreError::OutOfSpace(size))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
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
