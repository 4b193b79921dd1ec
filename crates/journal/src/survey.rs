//! A look at a store from outside: nothing is locked, and nothing is written or mended.
//!
//! If the store is in use, the files are shown as they are at that moment.

use crate::{
    MemberState, block,
    member_state::{LoadError, StateFile},
    promise, store, watermark,
};
use base::{Epoch, Sn};
use env::Disk;
use std::{
    io,
    path::{Path, PathBuf},
};

/// A store's state, and the paths of its segments and images.
#[derive(Debug)]
pub struct Survey {
    pub state: MemberState,
    /// The highest epoch promised, of the member's state and the file for it.
    pub promised: Epoch,
    /// The highest sn known to have committed, of the member's state and the file for it.
    pub known_commit: Sn,
    /// Sealed and open segments in the order of the log.
    pub segments: Vec<PathBuf>,
    /// Images, the oldest first.
    pub images: Vec<PathBuf>,
    /// Faults that lose nothing by themselves.
    pub findings: Vec<String>,
}

/// Whether this directory looks like a store at all.
///
/// # Errors
/// The system cannot tell whether a file is there.
pub fn is_store(disk: &dyn Disk, directory: &Path) -> io::Result<bool> {
    for name in crate::member_state::FILE_NAMES {
        if disk.exists(&directory.join(name))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads the small files of a store and lists the large ones. The error says which file could not be read, and why.
///
/// # Errors
/// The directory is no store, its state is damaged or of a later release, or a directory cannot be listed.
pub fn survey(disk: &dyn Disk, directory: &Path) -> Result<Survey, String> {
    let (file, finding) = StateFile::load(disk, directory).map_err(|error| match error {
        LoadError::Missing => format!("{} is no member's store", directory.display()),
        LoadError::Damaged { first, second } => format!("both copies are damaged: {first}; {second}"),
        LoadError::Version { file, found } => {
            format!(
                "{} has format version {found}, and up to {} is known",
                file.display(),
                crate::member_state::VERSION
            )
        }
        LoadError::Level { file, unknown } => format!("{} says that {unknown}", file.display()),
        LoadError::Io(path, error) => format!("{}: {error}", path.display()),
    })?;
    let state = file.state;
    let mut findings: Vec<String> = Vec::new();
    findings.extend(finding.map(|(path, what)| format!("{}: {what}", path.display())));
    let promised = match promise::read(disk, directory, state.store_uuid) {
        Ok(epoch) => epoch.max(state.promised),
        Err(promise::ReadError::Damaged(slots)) => {
            findings.extend(slots);
            state.promised
        }
        Err(promise::ReadError::Io(error)) => {
            return Err(format!("{}/promise: {error}", directory.display()));
        }
    };
    let known_commit = watermark::read(disk, directory, &state).max(state.known_commit);
    let mut segments = named(disk, &directory.join(store::LOG), |name| {
        block::parse_file_name(name).map(|(_, start, is_open)| (start, is_open))
    })?;
    segments.sort();
    let mut images = named(disk, &directory.join(store::IMAGES), |name| {
        name.strip_suffix(".image").map(|_| name.to_owned())
    })?;
    images.sort();
    Ok(Survey {
        state,
        promised,
        known_commit,
        segments: segments.into_iter().map(|(_, path)| path).collect(),
        images: images.into_iter().map(|(_, path)| path).collect(),
        findings,
    })
}

/// The files of a directory whose names mean something, with what they mean. No directory holds no files.
fn named<K>(
    disk: &dyn Disk,
    directory: &Path,
    meaning: impl Fn(&str) -> Option<K>,
) -> Result<Vec<(K, PathBuf)>, String> {
    let names = match disk.list(directory) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(format!("{}: {error}", directory.display())),
    };
    Ok(names.iter().filter_map(|name| Some((meaning(name)?, directory.join(name)))).collect())
}
