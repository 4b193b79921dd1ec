//! A backup of a group's log: images, and the committed entries behind them, in a directory of their own.
//!
//! ```text
//! manifest.0, manifest.1    whose it is and what it holds, twice
//! lock                      held by the one process that adds to it
//! images/<epoch>-<sn>.image as the members have them, to the last bit
//! images/<…>.image.part     one that is being fetched
//! log/<epoch>-<sn>          a sealed segment, as in a member's store
//! log/<epoch>-<sn>.open     the one that is added to
//! ```
//!
//! Its content is told in [`Span`]s: from an image (or from the first entry) on without a gap. A new span begins where the
//! members have removed entries before they were archived. `docs/format/backup.md` has the byte maps.
//!
//! [`Archiver`] adds to a backup, [`Backup`] reads one. A reader takes no lock: it sees what the manifest told when it was opened.

mod error;
mod manifest;
mod read;
mod staged;
mod write;

pub use error::ArchiveError;
pub use manifest::{Manifest, Span, Whose};
pub use read::{Backup, Checked};
pub use staged::StagedArchiveImage;
pub use write::Archiver;

use crate::block;
use base::Sn;
use env::Disk;
use std::{
    io,
    path::{Path, PathBuf},
};

const LOCK: &str = "lock";
const IMAGES: &str = "images";
const LOG: &str = "log";

/// A segment of a backup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct File {
    start: Sn,
    is_open: bool,
    path: PathBuf,
}

/// The segments, in the order of their first entries.
fn segments(disk: &dyn Disk, directory: &Path) -> io::Result<Vec<File>> {
    let log = directory.join(LOG);
    let names = match disk.list(&log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        listed => listed?,
    };
    let mut files: Vec<File> = names
        .iter()
        .filter_map(|name| {
            let (_, start, is_open) = block::parse_file_name(name)?;
            Some(File { start, is_open, path: log.join(name) })
        })
        .collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests;
