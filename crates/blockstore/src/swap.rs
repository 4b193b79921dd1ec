//! Volumes come and go while the store runs.
//!
//! A directory is added by the same checks as at the start. Its replicas are known before anything new can be written there.
//! A directory is removed in two steps. It is lost at once, like a directory whose disk has failed: its replicas are forgotten,
//! writers there get an error, and the observers are told. Then the store waits until no thread uses a file of the directory, and
//! gives up its lock. So when the directory is added again, no earlier user goes on changing a file in it.

use crate::{
    config::VolumeConfig,
    doubles::Double,
    error::OpenError,
    map::Record,
    open::{open_volume, start_turns, was_missing},
    pool::PoolStore,
    pool_state::PoolState,
    scan::Scanned,
    serve::worth,
    store::BlockStore,
    volume::{Volume, VolumeIndex},
    volume_list::VOLUME_COUNT_MAX,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};
use thiserror::Error;

/// How often it is looked whether a removed volume is still used.
const LOOK: Duration = Duration::from_millis(10);

/// The replicas of each pool that lie on a new volume.
type Found = Vec<(Arc<PoolState>, Scanned)>;

/// The outcome of an order to use these directories and no others.
#[derive(Debug, Default)]
pub struct Swap {
    /// The volumes that are new.
    pub added: Vec<VolumeIndex>,
    /// The volumes that are not used any more.
    pub removed: Vec<VolumeIndex>,
    /// Directories that could not be added, or not be given away, in the order of the configuration.
    pub failures: Vec<SwapFailure>,
    /// The directories that are used now.
    pub effective: Vec<VolumeConfig>,
}

/// Why one directory is not as it was ordered to be.
#[derive(Debug, Error)]
pub enum SwapFailure {
    /// The text begins as Hadoop's does.
    #[error("FAILED TO ADD: {volume}: {error}")]
    Add { volume: VolumeConfig, error: OpenError },
    /// End the transfers that go on, or this server; then order it again.
    #[error(
        "FAILED TO REMOVE: {}: it is not used any more, but reads or writes that began before have not ended: is its disk \
         hanging? The directory stays locked. Give the order once more when they have ended",
        path.display()
    )]
    StillUsed { path: PathBuf },
}

/// Why nothing was changed at all.
#[derive(Debug, Error)]
pub enum SwapError {
    /// Hadoop's text.
    #[error("Attempt to remove all volumes.")]
    NoneLeft,
    #[error("{}: the directory is named twice", path.display())]
    Twice { path: PathBuf },
    /// Remove the directory first, and add it in a second step. Hadoop's text.
    #[error("Changing storage type is not allowed.")]
    StorageType,
    #[error("the store is closed")]
    Closed,
}

impl BlockStore {
    /// Uses these data directories and no others from now on. A directory whose volume has failed is opened anew. A
    /// directory that cannot be added is told, and the others stay as they are. The call lasts until all replicas of the new
    /// directories have been found, and until the files of the removed ones are not in use any more, for which it waits `patience` at most.
    ///
    /// One caller at a time is served; a pool that is served for the first time waits as well.
    ///
    /// # Errors
    /// [`SwapError::NoneLeft`] if no directory would be in use, [`SwapError::Twice`] if one is named twice,
    /// [`SwapError::StorageType`] if one that is in use is named with another type, [`SwapError::Closed`] after
    /// [`BlockStore::close`]. Then nothing is changed, but that the locks of failed volumes are given up.
    pub fn swap_volumes(
        self: &Arc<Self>,
        wanted: &[VolumeConfig],
        patience: Duration,
    ) -> Result<Swap, SwapError> {
        let _swapping = self.swapping.write();
        if self.is_closed() {
            return Err(SwapError::Closed);
        }
        self.refuse_senseless(wanted)?;
        let mut swap = Swap::default();
        // Failed volumes go first: new ones take their places. Volumes that an earlier order could not give away go as well.
        for volume in self.volumes.iter().filter(|volume| !volume.is_alive()) {
            self.retire(volume, "it is removed", patience, &mut swap);
        }
        let is_wanted = |path: &Path| wanted.iter().any(|other| *other.path == *path);
        self.failed_at_start.lock().retain(|path| is_wanted(Path::new(path)));
        for volume in wanted {
            if self.living_at(&volume.path).is_some() {
                continue;
            }
            match self.add_volume(volume) {
                Ok(index) => {
                    swap.added.push(index);
                    let path = volume.path.display().to_string();
                    self.failed_at_start.lock().retain(|failed| *failed != path);
                }
                Err(error) => {
                    tracing::error!(directory = %volume.path.display(), %error, "a data directory is not added");
                    swap.failures.push(SwapFailure::Add { volume: volume.clone(), error });
                }
            }
        }
        let (kept, going): (Vec<_>, Vec<_>) = self
            .volumes
            .iter()
            .filter(|volume| volume.is_alive())
            .partition(|volume| is_wanted(&volume.paths.root));
        if kept.is_empty() {
            return Err(SwapError::NoneLeft);
        }
        // All are lost before any is waited for: a disk that hangs must not keep the others in use.
        for volume in &going {
            self.lose(volume, "an operator has removed it from the configuration");
        }
        for volume in going {
            self.retire(volume, "it is removed", patience, &mut swap);
        }
        swap.effective =
            wanted.iter().filter(|volume| self.living_at(&volume.path).is_some()).cloned().collect();
        Ok(swap)
    }

    /// Whether a removed directory is still locked, because its files were in use for longer than the order waited.
    pub fn has_unfinished_removal(&self) -> bool {
        self.volumes.iter().any(|volume| volume.is_removed() && volume.is_locked())
    }

    /// The directories that are in use.
    pub fn living_volumes(&self) -> Vec<VolumeConfig> {
        let volumes = self.volumes.iter().filter(|volume| volume.is_alive());
        volumes
            .map(|volume| VolumeConfig { path: volume.paths.root.clone(), storage_type: volume.storage_type })
            .collect()
    }

    fn living_at(&self, path: &Path) -> Option<&Volume> {
        self.volumes.iter().find(|volume| volume.is_alive() && volume.paths.root == path)
    }

    fn refuse_senseless(&self, wanted: &[VolumeConfig]) -> Result<(), SwapError> {
        for (at, volume) in wanted.iter().enumerate() {
            if wanted[..at].iter().any(|before| before.path == volume.path) {
                return Err(SwapError::Twice { path: volume.path.clone() });
            }
            if self.living_at(&volume.path).is_some_and(|known| known.storage_type != volume.storage_type) {
                return Err(SwapError::StorageType);
            }
        }
        match wanted.is_empty() {
            true => Err(SwapError::NoneLeft),
            false => Ok(()),
        }
    }

    /// Opens a directory, gives it what it lacks, and takes up its replicas.
    fn add_volume(self: &Arc<Self>, config: &VolumeConfig) -> Result<VolumeIndex, OpenError> {
        let index =
            self.volumes.next_index().ok_or(OpenError::TooManyVolumes { count_max: VOLUME_COUNT_MAX })?;
        let disk = self.disk();
        // A disk that is added was mounted before: there is no directory to make for it.
        let paths = crate::layout::VolumePaths { root: config.path.clone() };
        if was_missing(disk, &paths).map_err(OpenError::io(&paths.root))? {
            return Err(OpenError::MissingToAdd { path: config.path.clone() });
        }
        let was_empty = disk.list(&paths.root).map_err(OpenError::io(&paths.root))?.is_empty();
        let opened = self.open_to_add(config, index);
        if opened.is_err() && was_empty {
            // Else the next try would take it for the place of a disk that is not mounted.
            let _ = disk.remove_file(&paths.lock());
        }
        let (volume, found) = opened?;
        let path = volume.paths.root.clone();
        self.threads.add(index).map_err(OpenError::io(&path))?;
        self.make_known(volume, found);
        tracing::info!(directory = %path.display(), "a data directory is added");
        Ok(index)
    }

    /// Everything that can fail, before anybody else sees the volume.
    fn open_to_add(&self, config: &VolumeConfig, index: VolumeIndex) -> Result<(Volume, Found), OpenError> {
        let (mut volume, uuid) = open_volume(&self.env, config, index, self.config.reserved_bytes)?;
        let path = volume.paths.version();
        if let Some(found) = uuid.filter(|found| **found != *self.uuid) {
            return Err(OpenError::Uuid { path, found, wanted: self.uuid.to_string() });
        }
        let twin =
            self.volumes.iter().find(|known| known.is_alive() && known.storage_id == volume.storage_id);
        if let Some(twin) = twin {
            let what = format!(
                "storageID is {}, and {} has the same: one is a copy of the other",
                volume.storage_id,
                twin.paths.root.display()
            );
            return Err(OpenError::Version { path, what });
        }
        let pools: Vec<_> = self.pool_states().cloned().collect();
        // All are looked at before anything is changed, as at the start.
        for state in &pools {
            self.check_volume(&volume, &state.info)?;
        }
        let mut found = Vec::new();
        for state in pools {
            self.format_volume(&volume, &state.info)?;
            self.format_pool(&volume, &state.info)?;
            let scanned = self.scan_volume(&volume, &state.info)?;
            found.push((state, scanned));
        }
        volume.set_made();
        volume.turns = start_turns(&self.env, &self.config, &volume)?;
        Ok((volume, found))
    }

    /// Puts the volume in use. A writer that chooses it for a new replica takes the lock of the map next, and by then the map has the
    /// volume's replicas.
    fn make_known(self: &Arc<Self>, volume: Volume, found: Found) {
        let (index, directory) = (volume.index, volume.paths.root.display().to_string());
        let states: Vec<_> = found.iter().map(|(state, _)| state.clone()).collect();
        let mut maps: Vec<_> = states.iter().map(|state| state.map.write()).collect();
        for (state, scanned) in &found {
            state.add_used(index, scanned.used_bytes);
        }
        self.volumes.push(volume);
        let mut pools = Vec::new();
        for ((state, scanned), map) in found.into_iter().zip(&mut maps) {
            let mut doubles = Vec::new();
            for (id, record) in scanned.records {
                let is_busy = map.removing.contains(&id)
                    || map.moving.contains(&id)
                    || map.recovering.contains_key(&id);
                let is_better = match map.records.get(&id) {
                    None => !map.removing.contains(&id),
                    // A writer, a move or a recovery relies on the known replica.
                    Some(Record::Active(_)) => false,
                    Some(known) => !is_busy && worth(id, &record) > worth(id, known),
                };
                let record = with_turn(record, state.next_turn());
                if let Some(known) = map.records.get(&id) {
                    tracing::warn!(block = %record.block(id), other = %known.block(id), %directory, "two replicas of one block");
                }
                let other = match is_better {
                    true => map.records.insert(id, record),
                    false => Some(record),
                };
                doubles.extend(other.and_then(|other| Double::of(id, &other)));
            }
            pools.push((state, doubles));
        }
        drop(maps);
        for (state, doubles) in pools {
            PoolStore { volumes: self.clone(), state }.remove_doubles(doubles);
        }
    }

    /// The volume is lost, by order.
    fn lose(&self, volume: &Volume, why: &str) {
        volume.set_removed();
        if !volume.fail(why.into(), self.env.clock.timestamp().ms) {
            return;
        }
        tracing::info!(directory = %volume.paths.root.display(), why, "a data directory is not used any more");
        for pool in self.pool_states() {
            pool.lose_volume(volume);
        }
    }

    /// Waits until the files of a lost volume are not in use any more, and gives up its lock.
    fn retire(&self, volume: &Volume, why: &str, patience: Duration, swap: &mut Swap) {
        if volume.is_removed() && !volume.is_locked() {
            return;
        }
        self.lose(volume, why);
        if let Some(turns) = &volume.turns {
            turns.end();
        }
        match drain(volume, Instant::now() + patience) {
            true => {
                volume.unlock();
                self.threads.end(volume.index);
                tracing::info!(directory = %volume.paths.root.display(), "a data directory is given away: its disk may be taken out");
            }
            false => {
                let path = volume.paths.root.clone();
                tracing::error!(directory = %path.display(), "a data directory is still used, and stays locked");
                swap.failures.push(SwapFailure::StillUsed { path });
            }
        }
        swap.removed.push(volume.index);
    }
}

/// Waits until the volume's files are not in use any more, or until that moment. Whether they are not in use.
fn drain(volume: &Volume, until: Instant) -> bool {
    let mut writers = volume.take_cut_off();
    loop {
        writers.retain(|writer| {
            let Some(active) = writer.upgrade() else { return false };
            // A thread that changes the replica's files holds this lock, for as long as the disk takes.
            let Some(mut files) = active.files.try_lock_until(Instant::now() + LOOK) else { return true };
            files.is_gone = true;
            files.open = None;
            false
        });
        if writers.is_empty() && !volume.is_used() {
            return true;
        }
        if Instant::now() >= until {
            // They are waited for again with the next order.
            writers
                .iter()
                .filter_map(std::sync::Weak::upgrade)
                .for_each(|active| volume.note_cut_off(&active));
            return false;
        }
        std::thread::sleep(LOOK);
    }
}

/// The record with a new turn. A reader that has found the replica before its volume was removed sees by the turn that this is another record.
fn with_turn(record: Record, turn: u32) -> Record {
    match record {
        Record::Finalized(settled) => Record::Finalized(crate::map::Settled { turn, ..settled }),
        Record::Waiting(settled) => Record::Waiting(crate::map::Settled { turn, ..settled }),
        active @ Record::Active(_) => active,
    }
}
