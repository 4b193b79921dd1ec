//! The configuration of a store.

use crate::{choice::VolumeChoice, schedule::config::TurnsConfig};
use base::StorageType;
use std::{fmt, path::PathBuf, str::FromStr, sync::Arc};

/// The directories of replicas, and the room that is left free on each disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    pub volumes: Vec<VolumeConfig>,
    /// Bytes of each volume that are never used for replicas (`dfs.datanode.du.reserved`).
    pub reserved_bytes: u64,
    pub choice: VolumeChoice,
    /// Volumes that may be missing or broken at start before the store refuses to open
    /// (`dfs.datanode.failed.volumes.tolerated`).
    pub failed_volumes_tolerated: usize,
    /// I/O threads of each volume.
    pub threads_per_volume: usize,
    /// How streams share a disk.
    pub turns: TurnsConfig,
}

impl StoreConfig {
    pub fn new(volumes: Vec<VolumeConfig>) -> Self {
        Self {
            volumes,
            reserved_bytes: 0,
            choice: VolumeChoice::RoundRobin,
            failed_volumes_tolerated: 0,
            threads_per_volume: 4,
            turns: TurnsConfig::default(),
        }
    }
}

/// One entry of `dfs.datanode.data.dir`: `[SSD]/data/1` or `/data/1`, also with a `file://` in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeConfig {
    pub path: PathBuf,
    pub storage_type: StorageType,
}

impl FromStr for VolumeConfig {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (storage_type, path) = match text.strip_prefix('[') {
            None => (StorageType::Disk, text),
            Some(rest) => {
                let (name, path) = rest.split_once(']').ok_or_else(|| format!("`{text}`: `]` is missing"))?;
                (storage_type_named(name)?, path)
            }
        };
        let path = path.strip_prefix("file:").map_or(path, |rest| rest.strip_prefix("//").unwrap_or(rest));
        if path.is_empty() {
            return Err(format!("`{text}` names no directory"));
        }
        Ok(Self { path: PathBuf::from(path), storage_type })
    }
}

impl fmt::Display for VolumeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]{}", self.storage_type, self.path.display())
    }
}

/// The storage type of a directory. No directory is of the provided kind, which lies outside of HDFS.
fn storage_type_named(name: &str) -> Result<StorageType, String> {
    let found = StorageType::named(name).filter(|found| *found != StorageType::Provided);
    found.ok_or_else(|| format!("`{name}` is no storage type; DISK, SSD, ARCHIVE, RAM_DISK and NVDIMM are"))
}

/// The identity of a block pool, as the metadata service tells it in the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolInfo {
    pub pool: Arc<str>,
    pub cluster: Arc<str>,
    pub namespace_id: i32,
    /// When the namespace was made, ms since 1970: `cTime` of the pool's VERSION.
    pub created_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_read_as_hadoop_writes_them() {
        let parse = |text: &str| text.parse::<VolumeConfig>();
        let volume = |path: &str, storage_type| VolumeConfig { path: path.into(), storage_type };
        assert_eq!(parse("/data/1"), Ok(volume("/data/1", StorageType::Disk)));
        assert_eq!(parse("[SSD]/data/2"), Ok(volume("/data/2", StorageType::Ssd)));
        assert_eq!(parse("[ram_disk]file:///data/3"), Ok(volume("/data/3", StorageType::RamDisk)));
        for bad in ["", "[SSD]", "[SSD/data", "[TAPE]/data", "[PROVIDED]/data"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
