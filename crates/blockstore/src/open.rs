//! Opening a store: which directories are there, and of which data server.

use crate::{
    config::{StoreConfig, VolumeConfig},
    error::OpenError,
    layout::VolumePaths,
    opening::{Opening, POOL_COUNT_MAX},
    schedule::turns::Turns,
    store::BlockStore,
    takeover::refuse_unfinished_volume,
    threads::VolumeThreads,
    version_file::{Version, check, check_layout},
    volume::{Volume, VolumeIndex},
    volume_list::{VOLUME_COUNT_MAX, VolumeList},
};
use env::{Disk, Env};
use parking_lot::{Mutex, RwLock};
use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize},
    },
};

const NODE_TYPE: &str = "DATA_NODE";

impl BlockStore {
    /// Locks the data directories and reads who they belong to. Replicas are not served before
    /// [`BlockStore::serve_pool`].
    ///
    /// # Errors
    /// [`OpenError::NoVolume`] if no data directory is given, [`OpenError::TooManyVolumes`] if too many are; [`OpenError::Uuid`] if directories have different uuids;
    /// [`OpenError::TooManyFailed`] if more of them cannot be used than may fail, or all; [`OpenError::Io`] if threads
    /// cannot be started. A directory in the midst of an upgrade of a DataNode cannot be used. With a single directory, the reason why it cannot be used.
    pub fn open(env: Env, config: StoreConfig) -> Result<Arc<Self>, OpenError> {
        if config.volumes.is_empty() {
            return Err(OpenError::NoVolume);
        }
        if config.volumes.len() > VOLUME_COUNT_MAX {
            return Err(OpenError::TooManyVolumes { count_max: VOLUME_COUNT_MAX });
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
        for volume in &mut volumes {
            volume.turns = start_turns(&env, &config, volume)?;
        }
        let uuid = uuid.unwrap_or_else(|| random_uuid(&env).to_string().into());
        Ok(Arc::new(Self {
            opened_ms: env.clock.timestamp().ms,
            env,
            config,
            uuid,
            volumes: VolumeList::new(volumes),
            swapping: RwLock::default(),
            failed_at_start: Mutex::new(failed_at_start),
            pools: (0..POOL_COUNT_MAX).map(|_| OnceLock::new()).collect(),
            opening: Opening::default(),
            turn: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            threads,
        }))
    }
}

pub(crate) fn start_turns(
    env: &Env,
    config: &StoreConfig,
    volume: &Volume,
) -> Result<Option<Turns>, OpenError> {
    if !config.turns.which.has(volume.storage_type, || env.disk.seeks(&volume.paths.root)) {
        return Ok(None);
    }
    tracing::info!(directory = %volume.paths.root.display(), "streams take turns here");
    let name = format!("volume-{}-turns", volume.index.0);
    let started = Turns::start(name, config.turns, env.clock.clone());
    started.map(Some).map_err(OpenError::io(&volume.paths.root))
}

/// Locks a directory and reads its VERSION; the second answer is the server's uuid, where it is known.
pub(crate) fn open_volume(
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
    refuse_unfinished_volume(disk, &paths)?;
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
pub(crate) fn was_missing(disk: &dyn Disk, paths: &VolumePaths) -> io::Result<bool> {
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

fn random_uuid(env: &Env) -> uuid::Uuid {
    let mut bytes = [0; 16];
    env.random.fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}
