//! Which volumes have turns, and the measures of them.

use super::plan::Limits;
use base::StorageType;
use std::str::FromStr;

/// How streams share the disks of a data server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnsConfig {
    pub which: Which,
    pub limits: Limits,
    /// Whether a block takes the room that it may need at once.
    pub preallocates: bool,
    /// Whether written bytes leave the system's memory once the disk has them, unless the writer says otherwise
    /// (`dfs.datanode.drop.cache.behind.writes`).
    pub drops_behind_writes: bool,
}

impl Default for TurnsConfig {
    /// No volume has turns: see `docs/decisions/2026-11-28-turns-on-a-disk.md`.
    fn default() -> Self {
        Self { which: Which::None, limits: Limits::default(), preallocates: true, drops_behind_writes: false }
    }
}

/// The volumes on which streams take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The volumes of type `DISK` or `ARCHIVE` on devices that seek, as the system says.
    ThatSeek,
    All,
    None,
}

impl Which {
    /// `seeks`: what the system says of the volume's device.
    pub fn has(self, storage_type: StorageType, seeks: impl FnOnce() -> Option<bool>) -> bool {
        match self {
            Self::ThatSeek => {
                matches!(storage_type, StorageType::Disk | StorageType::Archive) && seeks() == Some(true)
            }
            Self::All => true,
            Self::None => false,
        }
    }
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::ThatSeek),
            "all" => Ok(Self::All),
            "none" => Ok(Self::None),
            _ => Err(format!("`{text}` is none of auto, all and none")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_that_seek_have_turns_where_the_system_and_the_type_say_so() {
        let which: Which = "auto".parse().unwrap();
        let seeks = |known| move || known;
        assert!(which.has(StorageType::Disk, seeks(Some(true))));
        assert!(which.has(StorageType::Archive, seeks(Some(true))));
        assert!(!which.has(StorageType::Disk, seeks(Some(false))));
        assert!(!which.has(StorageType::Disk, seeks(None)));
        assert!(!which.has(StorageType::Ssd, seeks(Some(true))));
        assert!(!which.has(StorageType::RamDisk, seeks(Some(true))));
        assert!("all".parse::<Which>().unwrap().has(StorageType::Ssd, seeks(None)));
        assert!(!"none".parse::<Which>().unwrap().has(StorageType::Disk, seeks(Some(true))));
        assert!("on".parse::<Which>().is_err());
    }
}
