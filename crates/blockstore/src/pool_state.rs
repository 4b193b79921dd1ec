//! The memory of one served pool: its replicas, and whom to tell of them.

use crate::{
    config::PoolInfo,
    layout::subdirectories,
    map::{Record, ReplicaMap},
    observer::Observer,
    volume::{Volume, VolumeIndex},
    volume_list::VOLUME_COUNT_MAX,
};
use base::BlockId;
use parking_lot::{Mutex, RwLock};
use std::{
    collections::HashSet,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

/// Known to the pool's store and, so that a failed volume can take replicas away, to the store of all volumes.
pub(crate) struct PoolState {
    pub info: PoolInfo,
    pub map: RwLock<ReplicaMap>,
    pub observer: OnceLock<Arc<dyn Observer>>,
    /// See [`Settled::turn`](crate::map::Settled).
    turns: AtomicU32,
    /// Bytes of the pool's block and meta files on each volume.
    used: Box<[AtomicU64]>,
    /// The `subdirX/subdirY` whose names this process has made durable. Existing is not enough: a finalize
    /// that did not sync may have made them.
    durable_directories: Mutex<HashSet<(VolumeIndex, (u64, u64))>>,
}

impl PoolState {
    /// A pool with `used` bytes on each volume. There is room for volumes that are added later.
    pub fn new(info: PoolInfo, map: ReplicaMap, used: Vec<u64>) -> Self {
        Self {
            info,
            map: RwLock::new(map),
            observer: OnceLock::new(),
            turns: AtomicU32::new(0),
            used: used
                .into_iter()
                .chain(std::iter::repeat(0))
                .take(VOLUME_COUNT_MAX)
                .map(AtomicU64::new)
                .collect(),
            durable_directories: Mutex::default(),
        }
    }

    /// The number of a replica that is finished now.
    pub fn next_turn(&self) -> u32 {
        self.turns.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Bytes of the pool's files on a volume.
    pub fn used(&self, volume: VolumeIndex) -> u64 {
        self.used[volume.0 as usize].load(Ordering::Relaxed)
    }

    pub fn add_used(&self, volume: VolumeIndex, bytes: u64) {
        self.used[volume.0 as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes bytes off again. What was on the disk may differ from what was counted: it never goes below none.
    pub fn sub_used(&self, volume: VolumeIndex, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.used[volume.0 as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    pub fn is_directory_durable(&self, volume: VolumeIndex, id: BlockId) -> bool {
        self.durable_directories.lock().contains(&(volume, subdirectories(id)))
    }

    pub fn set_directory_durable(&self, volume: VolumeIndex, id: BlockId) {
        self.durable_directories.lock().insert((volume, subdirectories(id)));
    }

    /// Tells the observer that a finished replica changes or goes.
    pub fn unsettle(&self, id: BlockId) {
        if let Some(observer) = self.observer.get() {
            observer.unsettled(id);
        }
    }

    /// Forgets the replicas of a volume that has failed or is removed, and tells the observer.
    pub fn lose_volume(&self, volume: &Volume) {
        let mut lost = Vec::new();
        let mut map = self.map.write();
        let ReplicaMap { records, recovering, .. } = &mut *map;
        records.retain(|id, record| {
            if record.volume() != volume.index {
                return true;
            }
            if let Record::Active(active) = record {
                active.replace_writer();
                volume.note_cut_off(active);
            }
            // A recovery under way finds that its replica is gone. If the replica comes back with its volume, another recovery may begin.
            recovering.remove(id);
            lost.push(record.block(*id));
            false
        });
        drop(map);
        self.durable_directories.lock().retain(|(index, _)| *index != volume.index);
        for block in &lost {
            self.unsettle(block.id);
        }
        lost.sort_unstable();
        if let Some(observer) = self.observer.get() {
            observer.volume_lost(&volume.storage_id, lost);
        }
    }
}
