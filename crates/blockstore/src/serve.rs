//! Beginning to serve a block pool: is this its cluster, what is there of it, and what has to be made.

use crate::{
    config::PoolInfo,
    doubles::Double,
    error::OpenError,
    layout::{LAYOUT_VERSION, POOL_PREFIX, is_pool_name},
    map::{Record, ReplicaMap},
    opening::too_many_pools,
    pool::PoolStore,
    pool_state::PoolState,
    scan::{Scanned, scan_pool},
    store::BlockStore,
    takeover::{forget_what_a_datanode_believes, refuse_unfinished_pool},
    version_file::{Version, check, check_layout},
    volume::Volume,
};
use base::{BlockId, GenerationStamp};
use std::{collections::hash_map::Entry, path::Path, sync::Arc};

/// How long after its `format` a cluster counts as new. An operator who sets up a cluster has started its data servers by then.
const NEW_CLUSTER_MS: u64 = 60 * 60 * 1_000;

const NODE_TYPE: &str = "DATA_NODE";

/// A volume, and whether it has what a pool needs there.
type Outcome<'a> = (&'a Volume, Result<(), OpenError>);

impl BlockStore {
    /// The handshake's answer: refuses another cluster, formats empty directories, and scans the pool's replicas, all
    /// volumes at once. A second call with the same pool answers with the same store.
    ///
    /// Several pools may be served, if they are of one cluster. Each has a directory of its own on every volume. No pool
    /// waits until another one has been scanned, which may take minutes.
    ///
    /// # Errors
    /// [`OpenError::Foreign`] if a directory, or a pool that is served already, belongs to another cluster, or the pool
    /// to another namespace; [`OpenError::TooManyPools`] if [`POOL_COUNT_MAX`](crate::POOL_COUNT_MAX) others are served;
    /// [`OpenError::Missing`] if a directory was missing although the cluster is not new, [`OpenError::Layout`] if a
    /// later release wrote it, [`OpenError::Unfinished`] if an upgrade of a DataNode is not final, [`OpenError::Version`] if the pool's name cannot be a directory's or a `VERSION` file is
    /// wrong; or the error of the last volume, if none can be formatted and scanned.
    pub fn serve_pool(self: &Arc<Self>, pool: &PoolInfo) -> Result<PoolStore, OpenError> {
        if let Some(served) = self.served(pool)? {
            return Ok(served);
        }
        if !is_pool_name(&pool.pool) {
            let what = format!("the metadata server's block pool id `{}` is not one", pool.pool);
            return Err(OpenError::Version { path: self.volumes[0].paths.root.clone(), what });
        }
        let turn = self.opening.turn_of(&pool.pool)?;
        let opened = {
            let _turn = turn.lock();
            // Another metadata server of the pool may have been faster.
            match self.served(pool) {
                Ok(None) => self.open_pool(pool),
                Ok(Some(served)) => Ok(served),
                Err(error) => Err(error),
            }
        };
        if opened.is_err() {
            self.opening.give_up(&pool.pool, turn);
        }
        opened
    }

    /// Formats and scans a pool that is not served yet.
    fn open_pool(self: &Arc<Self>, pool: &PoolInfo) -> Result<PoolStore, OpenError> {
        // No volume is added or removed meanwhile. A volume may fail.
        let _swapping = self.swapping.read();
        let mut failures = Vec::new();
        let mut formatted = Vec::new();
        for (volume, result) in self.format_everywhere(pool)? {
            match result {
                Ok(()) => formatted.push(volume),
                Err(error) => failures.push((volume, error)),
            }
        }
        let mut map = ReplicaMap::default();
        let mut doubles = Vec::new();
        let mut used = vec![0; self.volumes.len()];
        for (volume, result) in on_each(formatted, |volume| self.scan_volume(volume, pool)) {
            match result {
                Ok(scanned) => {
                    used[volume.index.0 as usize] = scanned.used_bytes;
                    for (id, record) in scanned.records {
                        doubles.extend(insert_better(&mut map, id, record));
                    }
                }
                Err(error) => failures.push((volume, error)),
            }
        }
        let alive = self.volumes.iter().filter(|volume| volume.is_alive()).count();
        if failures.len() >= alive
            && let Some((_, error)) = failures.pop()
        {
            return Err(error);
        }
        let state = Arc::new(PoolState::new(pool.clone(), map, used));
        if !self.pools.iter().any(|place| place.set(state.clone()).is_ok()) {
            return Err(too_many_pools(&pool.pool));
        }
        for (volume, error) in failures {
            self.fail_volume(volume.index, &error.to_string());
        }
        // A volume that failed meanwhile did not know of this pool.
        for volume in self.volumes.iter().filter(|volume| !volume.is_alive()) {
            state.lose_volume(volume);
        }
        let store = PoolStore { volumes: self.clone(), state };
        store.remove_doubles(doubles);
        Ok(store)
    }

    /// The pool's store, if the pool is served already.
    ///
    /// # Errors
    /// [`OpenError::Foreign`] if the pools that are served are of another cluster, or this one is of another namespace.
    fn served(self: &Arc<Self>, pool: &PoolInfo) -> Result<Option<PoolStore>, OpenError> {
        for state in self.pool_states() {
            let served = &state.info;
            let volume = &self.volumes[0].paths;
            check(&volume.version(), "clusterID", &served.cluster, &pool.cluster)?;
            if served.pool == pool.pool {
                let path = volume.pool(&pool.pool).version();
                check(&path, "namespaceID", &served.namespace_id, &pool.namespace_id)?;
                return Ok(Some(PoolStore { volumes: self.clone(), state: state.clone() }));
            }
        }
        Ok(None)
    }

    /// A directory that was not there is made anew only for a cluster that is new itself: later it is rather the place of a disk
    /// that is not mounted. A new pool does not make an old cluster new.
    fn refuse_missing(&self, pool: &PoolInfo) -> Result<(), OpenError> {
        let missing: Vec<_> = self.volumes.iter().filter(|volume| volume.is_missing()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let oldest_ms = self.oldest_pool_ms()?.map_or(pool.created_ms, |ms| ms.min(pool.created_ms));
        let age_ms = self.env.clock.timestamp().ms.saturating_sub(oldest_ms);
        if age_ms < NEW_CLUSTER_MS {
            return Ok(());
        }
        let error = |volume: &Volume| OpenError::Missing { path: volume.paths.root.clone() };
        let failed = self.failed_at_start.lock().len() + missing.len();
        if failed > self.config.failed_volumes_tolerated
            || missing.len() == self.volumes.iter().filter(|volume| !volume.is_removed()).count()
        {
            return Err(error(missing[0]));
        }
        for volume in missing {
            self.fail_volume(volume.index, &error(volume).to_string());
        }
        Ok(())
    }

    /// When the oldest pool was made that has a directory on any volume.
    fn oldest_pool_ms(&self) -> Result<Option<u64>, OpenError> {
        let mut oldest = None;
        for volume in self.volumes.iter().filter(|volume| volume.is_alive()) {
            let current = volume.paths.current();
            if !self.disk().is_directory(&current).map_err(OpenError::io(&current))? {
                continue;
            }
            let names = self.disk().list(&current).map_err(OpenError::io(&current))?;
            for name in names.iter().filter(|name| name.starts_with(POOL_PREFIX)) {
                let version = Version::read(self.disk(), &volume.pool(name).version())?;
                let made: Option<u64> = version.and_then(|version| version.get("cTime")?.parse().ok());
                oldest = oldest.into_iter().chain(made).min();
            }
        }
        Ok(oldest)
    }

    /// Whether the volume is empty or this cluster's, and nothing in it waits for a DataNode.
    pub(crate) fn check_volume(&self, volume: &Volume, pool: &PoolInfo) -> Result<(), OpenError> {
        let path = volume.paths.version();
        if let Some(version) = Version::read(self.disk(), &path)? {
            check(&path, "clusterID", version.require(&path, "clusterID")?, &pool.cluster)?;
        }
        let path = volume.pool(&pool.pool).version();
        if let Some(version) = Version::read(self.disk(), &path)? {
            check_layout(&path, &version)?;
            check(&path, "blockpoolID", version.require(&path, "blockpoolID")?, &pool.pool)?;
            let namespace_id = version.require_number(&path, "namespaceID")?;
            check(&path, "namespaceID", &namespace_id, &i64::from(pool.namespace_id))?;
        }
        refuse_unfinished_pool(self.disk(), &volume.pool(&pool.pool))
    }

    /// Gives all living volumes what they lack for the pool. One pool after another does that, because the first one says
    /// whose the directories are.
    fn format_everywhere(&self, pool: &PoolInfo) -> Result<Vec<Outcome<'_>>, OpenError> {
        let _turn = self.opening.formatting();
        self.refuse_missing(pool)?;
        let alive = || self.volumes.iter().filter(|volume| volume.is_alive());
        // All are looked at before any is changed, so that a directory of another cluster changes nothing.
        for volume in alive() {
            self.check_volume(volume, pool)?;
        }
        Ok(on_each(alive(), |volume| {
            self.format_volume(volume, pool)?;
            self.format_pool(volume, pool)?;
            volume.set_made();
            Ok(())
        }))
    }

    pub(crate) fn scan_volume(&self, volume: &Volume, pool: &PoolInfo) -> Result<Scanned, OpenError> {
        let started = self.env.clock.moment();
        let paths = volume.pool(&pool.pool);
        forget_what_a_datanode_believes(self.disk(), &paths).map_err(OpenError::io(&paths.root))?;
        let scanned = scan_pool(self.disk(), volume.index, &paths).map_err(OpenError::io(&paths.root))?;
        tracing::info!(
            directory = %volume.paths.root.display(),
            pool = %pool.pool,
            replicas = scanned.records.len(),
            bytes = scanned.used_bytes,
            ms = self.env.clock.moment().ms_since(started),
            "replicas found"
        );
        Ok(scanned)
    }

    /// Gives an empty directory its VERSION.
    pub(crate) fn format_volume(&self, volume: &Volume, pool: &PoolInfo) -> Result<(), OpenError> {
        let path = volume.paths.version();
        if Version::read(self.disk(), &path)?.is_some_and(|version| version.get("datanodeUuid").is_some()) {
            return Ok(());
        }
        self.make_directory(&volume.paths.current())?;
        Version::default()
            .with("storageID", &volume.storage_id)
            .with("clusterID", &pool.cluster)
            .with("cTime", 0)
            .with("datanodeUuid", &self.uuid)
            .with("storageType", NODE_TYPE)
            .with("layoutVersion", LAYOUT_VERSION)
            .write(self.disk(), &path)?;
        self.disk().sync_directory(&volume.paths.root).map_err(OpenError::io(&volume.paths.root))
    }

    pub(crate) fn format_pool(&self, volume: &Volume, pool: &PoolInfo) -> Result<(), OpenError> {
        use crate::layout::Place::{BeingWritten, Finalized, Temporary};
        let paths = volume.pool(&pool.pool);
        for place in [Finalized, BeingWritten, Temporary] {
            self.make_directory(&paths.place(place))?;
        }
        if Version::read(self.disk(), &paths.version())?.is_none() {
            Version::default()
                .with("namespaceID", pool.namespace_id)
                .with("cTime", pool.created_ms)
                .with("blockpoolID", &pool.pool)
                .with("layoutVersion", LAYOUT_VERSION)
                .write(self.disk(), &paths.version())?;
            for directory in [paths.root.clone(), volume.paths.current()] {
                self.disk().sync_directory(&directory).map_err(OpenError::io(&directory))?;
            }
        }
        Ok(())
    }

    fn make_directory(&self, path: &Path) -> Result<(), OpenError> {
        self.disk().create_directory(path).map_err(OpenError::io(path))
    }
}

/// Does some work for each of these volumes, all at once.
fn on_each<'a, T: Send>(
    volumes: impl IntoIterator<Item = &'a Volume>,
    work: impl Fn(&Volume) -> T + Sync,
) -> Vec<(&'a Volume, T)> {
    let work = &work;
    std::thread::scope(|scope| {
        let running: Vec<_> =
            volumes.into_iter().map(|volume| (volume, scope.spawn(move || work(volume)))).collect();
        running
            .into_iter()
            .map(|(volume, thread)| (volume, thread.join().expect("the work on a volume does not panic")))
            .collect()
    })
}

/// Two volumes, or two places of one, may hold a replica of the same block after an accident: the newer,
/// then the finished, then the longer one is the replica. The answer is the other one, if it may be removed.
fn insert_better(map: &mut ReplicaMap, id: BlockId, record: Record) -> Option<Double> {
    match map.records.entry(id) {
        Entry::Vacant(entry) => {
            entry.insert(record);
            None
        }
        Entry::Occupied(mut entry) => {
            tracing::warn!(block = %record.block(id), other = %entry.get().block(id), "two replicas of one block");
            let other = match worth(id, &record) > worth(id, entry.get()) {
                true => entry.insert(record),
                false => record,
            };
            Double::of(id, &other)
        }
    }
}

/// The rank of a replica among several of the same block, of which the highest is used: the newer stamp first, then a finished
/// replica before others, then the longer one.
pub(crate) fn worth(id: BlockId, record: &Record) -> (GenerationStamp, bool, u64) {
    let block = record.block(id);
    (block.generation_stamp, matches!(record, Record::Finalized(_)), block.length)
}
