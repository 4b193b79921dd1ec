//! Opening a store: whose directories are these, and what is in them.

use crate::{
    config::{PoolInfo, StoreConfig, VolumeConfig},
    error::OpenError,
    layout::{LAYOUT_VERSION, VolumePaths, is_pool_name},
    map::{Record, ReplicaMap},
    pool::PoolStore,
    pool_state::PoolState,
    scan::{Scanned, scan_pool},
    store::BlockStore,
    threads::VolumeThreads,
    version_file::Version,
    volume::{Volume, VolumeIndex},
};
use base::BlockId;
use env::{Disk, Env};
use std::{
    collections::hash_map::Entry,
    io,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize},
    },
};

/// How long after its `format` a cluster counts as new. An operator who sets up a cluster has started its data servers by then.
const NEW_CLUSTER_MS: u64 = 60 * 60 * 1_000;

const NODE_TYPE: &str = "DATA_NODE";

impl BlockStore {
    /// Locks the data directories and reads who they belong to. Replicas are not served before
    /// [`BlockStore::serve_pool`].
    ///
    /// # Errors
    /// [`OpenError::NoVolume`] if no data directory is given; [`OpenError::Uuid`] if directories have different uuids;
    /// [`OpenError::TooManyFailed`] if more of them cannot be used than may fail, or all; [`OpenError::Io`] if threads
    /// cannot be started. With a single directory, the reason why it cannot be used.
    pub fn open(env: Env, config: StoreConfig) -> Result<Arc<Self>, OpenError> {
        if config.volumes.is_empty() {
            return Err(OpenError::NoVolume);
        }
        let mut volumes = Vec::new();
        let mut failed_at_start = Vec::new();
        let mut first_failure = None;
        let mut uuid: Option<Arc<str>> = None;
        for volume in &config.volumes {
            let index = VolumeIndex(volumes.len() as u16);
            match open_volume(&env, volume, index, config.reserved_bytes) {
                Ok((opened, found)) => {
                    agree_on_uuid(&mut uuid, found, &opened)?;
                    volumes.push(opened);
                }
                Err(error) => {
                    tracing::error!(directory = %volume.path.display(), %error, "a data directory is not used");
                    failed_at_start.push(volume.path.display().to_string());
                    first_failure.get_or_insert(error);
                }
            }
        }
        if let Some(first) = first_failure {
            let (failed, all) = (failed_at_start.len(), config.volumes.len());
            if all == 1 {
                return Err(first);
            }
            if failed > config.failed_volumes_tolerated || failed == all {
                let tolerated = config.failed_volumes_tolerated;
                return Err(OpenError::TooManyFailed { failed, all, tolerated, first: Box::new(first) });
            }
        }
        let threads = VolumeThreads::start(volumes.len(), config.threads_per_volume)
            .map_err(|error| OpenError::Io { path: config.volumes[0].path.clone(), error })?;
        let uuid = uuid.unwrap_or_else(|| random_uuid(&env).to_string().into());
        Ok(Arc::new(Self {
            env,
            config,
            uuid,
            volumes,
            failed_at_start,
            pool: OnceLock::new(),
            turn: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            threads,
        }))
    }

    /// The handshake's answer: refuses directories of another cluster, formats empty ones, and scans the
    /// pool's replicas, all volumes at once. A second call with the same pool answers with the same store.
    ///
    /// # Errors
    /// [`OpenError::Foreign`] if another pool is served already or a directory belongs to another cluster,
    /// [`OpenError::Missing`] if a directory was missing although the cluster is not new, [`OpenError::Layout`] if a
    /// later release wrote it, [`OpenError::Version`] if the pool's name cannot be a directory's or a `VERSION` file is
    /// wrong; or the error of the last volume, if none can be formatted and scanned.
    pub fn serve_pool(self: &Arc<Self>, pool: &PoolInfo) -> Result<PoolStore, OpenError> {
        let root = &self.volumes[0].paths.root;
        if let Some(state) = self.pool.get() {
            let served = &state.info;
            check(root, "blockpoolID", &served.pool, &pool.pool)?;
            check(root, "clusterID", &served.cluster, &pool.cluster)?;
            check(root, "namespaceID", &served.namespace_id, &pool.namespace_id)?;
            return Ok(PoolStore { volumes: self.clone(), state: state.clone() });
        }
        if !is_pool_name(&pool.pool) {
            let what = format!("the metadata server's block pool id `{}` is not one", pool.pool);
            return Err(OpenError::Version { path: root.clone(), what });
        }
        self.refuse_missing(pool)?;
        // All are looked at before any is changed, so that a directory of another cluster changes nothing.
        for volume in self.volumes.iter().filter(|volume| volume.is_alive()) {
            self.check_volume(volume, pool)?;
        }
        let results: Vec<_> = std::thread::scope(|scope| {
            let running: Vec<_> = self
                .volumes
                .iter()
                .filter(|volume| volume.is_alive())
                .map(|volume| (volume, scope.spawn(|| self.open_pool(volume, pool))))
                .collect();
            running
                .into_iter()
                .map(|(volume, thread)| (volume, thread.join().expect("scanning a volume does not panic")))
                .collect()
        });
        let mut map = ReplicaMap::default();
        let mut failures = Vec::new();
        for (volume, result) in results {
            match result {
                Ok(scanned) => {
                    volume.add_used(scanned.used_bytes);
                    for (id, record) in scanned.records {
                        insert_better(&mut map, id, record);
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
        let state = self.pool.get_or_init(|| Arc::new(PoolState::new(pool.clone(), map))).clone();
        for (volume, error) in failures {
            self.fail_volume(volume.index, &error.to_string());
        }
        Ok(PoolStore { volumes: self.clone(), state })
    }

    /// A directory that was not there is made anew only for a cluster that is new itself: later it is rather the place of a disk
    /// that is not mounted.
    fn refuse_missing(&self, pool: &PoolInfo) -> Result<(), OpenError> {
        let age_ms = self.env.clock.timestamp().ms.saturating_sub(pool.created_ms);
        let missing: Vec<_> = self.volumes.iter().filter(|volume| volume.was_missing).collect();
        if age_ms < NEW_CLUSTER_MS || missing.is_empty() {
            return Ok(());
        }
        let error = |volume: &Volume| OpenError::Missing { path: volume.paths.root.clone() };
        let failed = self.failed_at_start.len() + missing.len();
        if failed > self.config.failed_volumes_tolerated || missing.len() == self.volumes.len() {
            return Err(error(missing[0]));
        }
        for volume in missing {
            self.fail_volume(volume.index, &error(volume).to_string());
        }
        Ok(())
    }

    /// Whether the volume is empty or this cluster's.
    fn check_volume(&self, volume: &Volume, pool: &PoolInfo) -> Result<(), OpenError> {
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
        Ok(())
    }

    fn open_pool(&self, volume: &Volume, pool: &PoolInfo) -> Result<Scanned, OpenError> {
        self.format_volume(volume, pool)?;
        self.format_pool(volume, pool)?;
        let started = self.env.clock.moment();
        let paths = volume.pool(&pool.pool);
        let scanned = scan_pool(self.disk(), volume.index, &paths).map_err(OpenError::io(&paths.root))?;
        tracing::info!(
            directory = %volume.paths.root.display(),
            replicas = scanned.records.len(),
            bytes = scanned.used_bytes,
            ms = self.env.clock.moment().ms_since(started),
            "replicas found"
        );
        Ok(scanned)
    }

    /// Gives an empty directory its VERSION.
    fn format_volume(&self, volume: &Volume, pool: &PoolInfo) -> Result<(), OpenError> {
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

    fn format_pool(&self, volume: &Volume, pool: &PoolInfo) -> Result<(), OpenError> {
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

/// Locks a directory and reads its VERSION; the second answer is the server's uuid, where it is known.
fn open_volume(
    env: &Env,
    config: &VolumeConfig,
    index: VolumeIndex,
    reserved_bytes: u64,
) -> Result<(Volume, Option<String>), OpenError> {
    let disk = &*env.disk;
    let paths = VolumePaths { root: config.path.clone() };
    let was_missing = was_missing(disk, &paths).map_err(OpenError::io(&paths.root))?;
    disk.create_directory(&paths.root).map_err(OpenError::io(&paths.root))?;
    let lock = disk.lock(&paths.lock()).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::Locked { path: paths.root.clone() },
        _ => OpenError::Io { path: paths.lock(), error },
    })?;
    let path = paths.version();
    let version = Version::read(disk, &path)?;
    let (storage_id, uuid) = match &version {
        Some(version) => {
            check_layout(&path, version)?;
            let node_type = version.require(&path, "storageType")?;
            check(&path, "storageType", node_type, NODE_TYPE)?;
            let uuid = version.get("datanodeUuid").filter(|uuid| !uuid.is_empty());
            (version.require(&path, "storageID")?.to_owned(), uuid.map(str::to_owned))
        }
        None => {
            refuse_strangers(disk, &paths)?;
            (format!("DS-{}", random_uuid(env)), None)
        }
    };
    let storage = (storage_id.into(), config.storage_type);
    Ok((Volume::new(index, paths, storage, reserved_bytes, lock, was_missing), uuid))
}

/// Whether nobody has made this directory but a start of a data server. It is made for the lock; whether it may be new, the
/// cluster says at the handshake, and if it does not, the lock's file tells the next start.
fn was_missing(disk: &dyn Disk, paths: &VolumePaths) -> io::Result<bool> {
    if !disk.is_directory(&paths.root)? {
        return Ok(true);
    }
    Ok(disk.list(&paths.root)?.len() == 1 && disk.exists(&paths.lock())?)
}

/// Refuses a `current` that has files and no VERSION: this program must not write between files of others.
fn refuse_strangers(disk: &dyn Disk, paths: &VolumePaths) -> Result<(), OpenError> {
    let current = paths.current();
    if disk.is_directory(&current).map_err(OpenError::io(&current))? {
        let names = disk.list(&current).map_err(OpenError::io(&current))?;
        if let Some(name) = names.iter().find(|name| *name != "VERSION.tmp") {
            let what = format!("has no VERSION but is not empty (`{name}`, for one)");
            return Err(OpenError::Version { path: current, what });
        }
    }
    Ok(())
}

fn check_layout(path: &Path, version: &Version) -> Result<(), OpenError> {
    match version.require_number(path, "layoutVersion")? {
        LAYOUT_VERSION => Ok(()),
        found => Err(OpenError::Layout { path: path.into(), found, supported: LAYOUT_VERSION }),
    }
}

fn check<T: PartialEq + ToString + ?Sized>(
    path: &Path,
    key: &'static str,
    found: &T,
    wanted: &T,
) -> Result<(), OpenError> {
    if found == wanted {
        return Ok(());
    }
    let (found, wanted) = (found.to_string(), wanted.to_string());
    Err(OpenError::Foreign { path: path.into(), key, found, wanted })
}

fn agree_on_uuid(
    uuid: &mut Option<Arc<str>>,
    found: Option<String>,
    volume: &Volume,
) -> Result<(), OpenError> {
    match (uuid.as_ref(), found) {
        (Some(wanted), Some(found)) if **wanted != *found => {
            let path = volume.paths.version();
            Err(OpenError::Uuid { path, found, wanted: wanted.to_string() })
        }
        (None, Some(found)) => {
            *uuid = Some(found.into());
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Two volumes, or two places of one, may hold a replica of the same block after an accident: the newer,
/// then the finished, then the longer one is the replica; the other is left on disk and unused.
fn insert_better(map: &mut ReplicaMap, id: BlockId, record: Record) {
    let worth = |record: &Record| {
        let block = record.block(id);
        (block.generation_stamp, matches!(record, Record::Finalized(_)), block.length)
    };
    match map.records.entry(id) {
        Entry::Vacant(entry) => {
            entry.insert(record);
        }
        Entry::Occupied(mut entry) => {
            tracing::warn!(block = %record.block(id), other = %entry.get().block(id), "two replicas of one block");
            if worth(&record) > worth(entry.get()) {
                entry.insert(record);
            }
        }
    }
}

fn random_uuid(env: &Env) -> uuid::Uuid {
    let mut bytes = [0; 16];
    env.random.fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}
