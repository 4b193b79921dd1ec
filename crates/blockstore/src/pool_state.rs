//! The memory of one served pool: its replicas, and whom to tell of them.

use crate::{
    config::PoolInfo,
    layout::subdirectories,
    map::{Record, ReplicaMap},
    observer::Observer,
    volume::{Volume, VolumeIndex},
};
use base::BlockId;
use parking_lot::{Mutex, RwLock};
use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};

/// Known to the pool's store and, so that a failed volume can take replicas away, to the store of all volumes.
pub(crate) struct PoolState {
    pub info: PoolInfo,
    pub map: RwLock<ReplicaMap>,
    pub observer: OnceLock<Arc<dyn Observer>>,
    /// The `subdirX/subdirY` whose names this process has made durable. Existing is not enough: a finalize
    /// that did not sync may have made them.
    durable_directories: Mutex<HashSet<(VolumeIndex, (u64, u64))>>,
}

impl PoolState {
    pub fn new(info: PoolInfo, map: ReplicaMap) -> Self {
        Self { info, map: RwLock::new(map), observer: OnceLock::new(), durable_directories: Mutex::default() }
    }

    pub fn is_directory_durable(&self, volume: VolumeIndex, id: BlockId) -> bool {
        self.durable_directories.lock().contains(&(volume, subdirectories(id)))
    }

    pub fn set_directory_durable(&self, volume: VolumeIndex, id: BlockId) {
        self.durable_directories.lock().insert((volume, subdirectories(id)));
    }

    /// Forgets the replicas of a volume that has failed, and tells the observer.
    pub fn lose_volume(&self, volume: &Volume) {
        let mut lost = Vec::new();
        self.map.write().records.retain(|id, record| {
            // Recoveries under way notice the loss when they look their replica up again.
            if record.volume() != volume.index {
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
