//! A whole data directory: whose it is, and what each block pool has in it.

use super::{
    Depth, GoOn,
    finding::Findings,
    pool::{PoolSurvey, PutAside, Walk},
};
use crate::{
    layout::{LAYOUT_VERSION, LOCK_FILE, POOL_PREFIX, VERSION_FILE, VolumePaths, is_pool_name},
    takeover::{BEING_DELETED, INTERRUPTED, PREVIOUS, refuse_unfinished_volume},
    version_file::Version,
};
use env::{Disk, FileKind};
use std::{io, path::Path};

/// Pools that are looked into. A server serves far fewer.
const POOL_COUNT_MAX: usize = 1_000;

const NODE_TYPE: &str = "DATA_NODE";

/// A data directory as it is on the disk.
#[derive(Clone, Debug)]
pub struct DirectorySurvey {
    /// The lines of `current/VERSION`; `None` if it cannot be read.
    pub version: Option<Version>,
    pub pools: Vec<PoolSurvey>,
    /// The trees that an upgrade of the whole directory has put aside.
    pub put_aside: Vec<PutAside>,
    pub findings: Findings,
}

impl DirectorySurvey {
    /// Replicas that a start would find, finished or waiting for recovery, with the bytes of their block files.
    pub fn replicas(&self) -> (u64, u64) {
        let places = self.pools.iter().flat_map(|pool| [pool.finalized, pool.being_written]);
        places.fold((0, 0), |sum, place| (sum.0 + place.replica_count, sum.1 + place.block_bytes))
    }
}

/// Whether this is the directory of a data server: it has the `VERSION` of one, or a pool's directory.
///
/// # Errors
/// `InvalidData` if a `VERSION` says that another kind of server has made it; or the directory cannot be listed.
pub fn is_data_directory(disk: &dyn Disk, root: &Path) -> io::Result<bool> {
    let paths = VolumePaths { root: root.into() };
    if disk.kind(&paths.current())? != Some(FileKind::Directory) {
        return Ok(false);
    }
    if disk.kind(&paths.version())? == Some(FileKind::File)
        && let Ok(Some(version)) = Version::read(disk, &paths.version())
        && let Some(node_type) = version.get("storageType")
    {
        return match node_type == NODE_TYPE {
            true => Ok(true),
            false => {
                let what = format!(
                    "{}: storageType is {node_type}: this is no data server's",
                    paths.version().display()
                );
                Err(io::Error::new(io::ErrorKind::InvalidData, what))
            }
        };
    }
    Ok(disk.list(&paths.current())?.iter().any(|name| is_pool_name(name)))
}

/// Looks through a data directory, directory by directory, and with [`Depth::Bytes`] at every byte of its replicas.
///
/// # Errors
/// The directory itself cannot be listed. All else that is wrong is among the findings.
pub fn survey(
    disk: &dyn Disk,
    root: &Path,
    depth: Depth,
    go_on: &mut GoOn<'_>,
) -> io::Result<DirectorySurvey> {
    let paths = VolumePaths { root: root.into() };
    let mut walk = Walk { disk, depth, go_on, findings: Findings::default(), is_stopped: false };
    let mut put_aside = Vec::new();
    for name in disk.list(root)? {
        match name.as_str() {
            "current" | LOCK_FILE => {}
            PREVIOUS | BEING_DELETED => put_aside.push(walk.put_aside(root.join(&name))),
            name if INTERRUPTED.contains(&name) => put_aside.push(walk.put_aside(root.join(name))),
            _ => walk.stranger(root.join(&name)),
        }
    }
    walk.unfinished(refuse_unfinished_volume(disk, &paths));
    let version = walk.version(&paths.version());
    if let Some(version) = &version {
        walk.check_version(
            &paths.version(),
            version,
            &["storageID", "clusterID", "datanodeUuid", "storageType"],
        );
    }
    let mut pools = Vec::new();
    for name in walk.list(&paths.current()) {
        let path = paths.current().join(&name);
        if name == VERSION_FILE {
            continue;
        }
        if !is_pool_name(&name) || walk.kind(&path) != Some(FileKind::Directory) {
            walk.stranger(path);
        } else if pools.len() < POOL_COUNT_MAX {
            let pool = walk.pool(&name, &paths.pool(&name));
            if let Some(version) = &pool.version {
                walk.check_pool(&paths.pool(&name).version(), version, &name);
            }
            pools.push(pool);
        } else {
            let what =
                format!("is not looked into: {POOL_COUNT_MAX} names with {POOL_PREFIX} came before it");
            walk.findings.damage(path, what);
        }
    }
    Ok(DirectorySurvey { version, pools, put_aside, findings: walk.findings })
}

impl Walk<'_, '_> {
    fn check_version(&mut self, path: &Path, version: &Version, keys: &[&str]) {
        for key in keys.iter().filter(|key| version.get(key).is_none_or(str::is_empty)) {
            self.findings.damage(path, format!("has no {key}"));
        }
        match version.require_number(path, "layoutVersion") {
            Ok(LAYOUT_VERSION) => {}
            Ok(found) => {
                let what = format!(
                    "says layoutVersion {found}; this release reads {LAYOUT_VERSION} (a lower number is a newer layout)"
                );
                self.findings.damage(path, what);
            }
            Err(error) => self.findings.damage(path, format!("is wrong: {error}")),
        }
    }

    fn check_pool(&mut self, path: &Path, version: &Version, name: &str) {
        self.check_version(path, version, &["namespaceID", "blockpoolID"]);
        if let Some(found) = version.get("blockpoolID").filter(|found| *found != name) {
            self.findings.damage(path, format!("says blockpoolID {found}, and lies in {name}"));
        }
    }
}
