//! What a Hadoop DataNode leaves in a directory beside its replicas, and why that matters to a server that goes on with them.
//!
//! A directory is refused, and stays as it is, while an upgrade of the DataNode is not final, and while replicas lie where only a
//! DataNode takes them up. Two files are removed as soon as the pool is served: what a DataNode remembers of its replicas is wrong
//! as soon as another server changes them.

use crate::{
    error::OpenError,
    layout::{FileName, PoolPaths, VolumePaths, parse_name},
};
use env::Disk;
use std::{io, path::Path};

/// A copy of the directory as it was before an upgrade, by hard links: a change of a replica would change that copy as well.
pub const PREVIOUS: &str = "previous";
/// From an upgrade, or its way back, that was interrupted between two renames.
pub const INTERRUPTED: &[&str] = &["previous.tmp", "removed.tmp"];
/// A copy that is being deleted after an upgrade has become final. Nobody needs it.
pub const BEING_DELETED: &str = "finalized.tmp";
/// Replicas that were deleted during a rolling upgrade, for a way back.
pub const TRASH: &str = "trash";
/// The mark of a rolling upgrade that is under way.
pub const ROLLING_UPGRADE: &str = "RollingUpgradeInProgress";
/// Copies of replicas that are in memory otherwise. A DataNode's next start moves them to the finished ones.
pub const LAZY_PERSIST: &str = "lazypersist";
/// The list of its replicas that a DataNode writes when it is told to stop. Its next start, within five minutes, believes it
/// and does not look at the directories (`BlockPoolSlice.readReplicasFromCache`).
pub const REPLICA_LIST: &str = "replicas";
/// The bytes that a DataNode has counted; believed for ten minutes.
pub const USED_BYTES: &str = "dfsUsed";

/// Directories below `lazypersist` that are gone into: it has two levels.
const DEPTH_MAX: usize = 4;

/// Refuses a data directory in the midst of an upgrade.
///
/// # Errors
/// [`OpenError::Unfinished`] if it has what only an upgrade leaves; [`OpenError::Io`] if that cannot be seen.
pub(crate) fn refuse_unfinished_volume(disk: &dyn Disk, volume: &VolumePaths) -> Result<(), OpenError> {
    refuse_upgrade(disk, &volume.root)
}

/// Refuses a pool in the midst of an upgrade, and one with replicas that would not be found.
///
/// # Errors
/// [`OpenError::Unfinished`] if it has what only an upgrade leaves, or replicas in `lazypersist`; [`OpenError::Io`] if that cannot be
/// seen.
pub(crate) fn refuse_unfinished_pool(disk: &dyn Disk, pool: &PoolPaths) -> Result<(), OpenError> {
    refuse_upgrade(disk, &pool.root)?;
    let mark = pool.root.join(ROLLING_UPGRADE);
    if disk.exists(&mark).map_err(OpenError::io(&mark))? {
        let what = "a rolling upgrade is under way, in which deleted replicas are kept: make it final \
                    (`hdfs dfsadmin -rollingUpgrade finalize`) while the DataNode runs";
        return Err(OpenError::Unfinished { path: mark, what });
    }
    let trash = pool.root.join(TRASH);
    if has_replicas(disk, &trash, 0).map_err(OpenError::io(&trash))? {
        let what = "it has replicas that were deleted in a rolling upgrade: start the DataNode once, which restores or deletes them";
        return Err(OpenError::Unfinished { path: trash, what });
    }
    let lazy = pool.current().join(LAZY_PERSIST);
    if has_replicas(disk, &lazy, 0).map_err(OpenError::io(&lazy))? {
        let what = "it has replicas of a RAM disk, which this server would not find: start the DataNode once, which moves them to the finished ones";
        return Err(OpenError::Unfinished { path: lazy, what });
    }
    Ok(())
}

fn refuse_upgrade(disk: &dyn Disk, directory: &Path) -> Result<(), OpenError> {
    for name in [PREVIOUS].iter().chain(INTERRUPTED) {
        let path = directory.join(name);
        if disk.exists(&path).map_err(OpenError::io(&path))? {
            let what = match *name {
                PREVIOUS => {
                    "an upgrade of the DataNode is not final, and its way back needs the replicas as they were: \
                     make it final (`hdfs dfsadmin -finalizeUpgrade`) while the DataNode runs"
                }
                _ => "an upgrade of the DataNode was interrupted: start the DataNode once, which ends it",
            };
            return Err(OpenError::Unfinished { path, what });
        }
    }
    Ok(())
}

/// Whether there is a replica's file in this directory, or below it. Without a directory there is none.
fn has_replicas(disk: &dyn Disk, directory: &Path, depth: usize) -> io::Result<bool> {
    if depth > DEPTH_MAX || !disk.is_directory(directory)? {
        return Ok(false);
    }
    for name in disk.list(directory)? {
        let is_replica = matches!(parse_name(&name), Some(FileName::Block(_) | FileName::Meta(_)));
        if is_replica || has_replicas(disk, &directory.join(name), depth + 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes what a DataNode would believe of the pool at its next start, durably, before any replica changes.
///
/// # Errors
/// A file cannot be removed, or the directory cannot be synced.
pub(crate) fn forget_what_a_datanode_believes(disk: &dyn Disk, pool: &PoolPaths) -> io::Result<()> {
    let mut is_changed = false;
    for name in [REPLICA_LIST, USED_BYTES] {
        let path = pool.current().join(name);
        match disk.remove_file(&path) {
            Ok(()) => {
                tracing::info!(path = %path.display(), "what a DataNode remembered of its replicas is removed");
                is_changed = true;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    match is_changed {
        true => disk.sync_directory(&pool.current()),
        false => Ok(()),
    }
}
