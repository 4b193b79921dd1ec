//! The faults of a backup, and what to do about each.

use base::{Level, LogPoint, Sn};
use std::{io, path::PathBuf};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ArchiveError {
    #[error("{} holds no backup", .directory.display())]
    NoBackup { directory: PathBuf },
    #[error(
        "{} is not empty (it holds {found}) and holds no backup: name a directory that is empty or does not exist. Nothing was \
         changed", .directory.display()
    )]
    NotEmpty { directory: PathBuf, found: String },
    #[error(
        "{} is a backup of {found}, and this is {expected}: name another directory. Nothing was changed", .directory.display()
    )]
    Foreign { directory: PathBuf, found: String, expected: String },
    #[error("another process adds to the backup in {}", .directory.display())]
    InUse { directory: PathBuf },
    #[error(
        "{} has version {found}, and {known} is known: use the release that wrote it, or a newer one. Nothing was changed",
        .file.display()
    )]
    Version { file: PathBuf, found: String, known: String },
    #[error(
        "{} says that its group began at level {level}, which this release does not know: use the release that wrote it, or a newer \
         one. Nothing was changed", .file.display()
    )]
    Level { file: PathBuf, level: Level },
    #[error("{} is damaged at offset {offset}: expected {expected}, found {found}", .file.display())]
    Damaged { file: PathBuf, offset: u64, expected: String, found: String },
    #[error("neither copy of the manifest can be read: {first}; {second}")]
    Manifest { first: String, second: String },
    /// A file of the log is not there.
    #[error("{} has no file that goes on behind entry {after}: entries up to {up_to} are missing", .directory.display())]
    Gap { directory: PathBuf, after: Sn, up_to: Sn },
    /// The image that a span begins with.
    #[error("the image {} cannot be used: {what}", .file.display())]
    Image { file: PathBuf, what: String },
    #[error("entry {found} does not follow {after}: it is of another history")]
    Diverged { after: LogPoint, found: base::TxId },
    #[error(
        "the backup has {0} separate ranges, which is the most that one may have: begin another directory"
    )]
    TooManySpans(usize),
    #[error("no room is left for {}: make room there and give the order again, it goes on where it stopped", .file.display())]
    NoRoom { file: PathBuf, source: io::Error },
    #[error("cannot read or write {}", .file.display())]
    Io { file: PathBuf, source: io::Error },
}

impl ArchiveError {
    pub(crate) fn io(file: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| match env::disk::is_want(&source) {
            true => Self::NoRoom { file, source },
            false => Self::Io { file, source },
        }
    }

    /// Whether bytes or files of the backup are not what they were.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Manifest { .. } | Self::Gap { .. } | Self::Image { .. })
    }
}
