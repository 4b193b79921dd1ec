//! Stores that were put aside because they are not trusted any more. One may hold the last copy of something, so
//! nothing is removed by itself: a person looks at it, and drops it.
//!
//! `set-aside-<generation>/` holds the segments and images, and `why`: two lines, `at_ms=` and `reason=`. Those of early
//! releases have no `why`.

use crate::{
    NextStart, OpenError, block,
    renewal::DAMAGED,
    scan::scan,
    store::{IMAGES, LOG, load_state, lock},
};
use base::{Sn, TxId};
use env::{Disk, Env, OpenMode};
use std::{
    io,
    path::{Path, PathBuf},
};

pub(crate) const SET_ASIDE: &str = "set-aside-";
const WHY: &str = "why";
const WHY_BYTES_MAX: u64 = 4096;
const IMAGE: &str = ".image";

/// One store that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    /// The generation that the store got then: the name of this one.
    pub generation: u64,
    /// When, in milliseconds since 1970, and why.
    pub at_ms: Option<u64>,
    pub reason: Option<String>,
    /// The first entry of its log, by the name of the file.
    pub first: Option<Sn>,
    /// The last one that can be read.
    pub last: Option<TxId>,
    pub segments: usize,
    pub images: usize,
    pub bytes: u64,
}

/// Notes why the store is put aside at its next start, beside what will be there. Nothing is noted of an empty store.
pub(crate) fn note(env: &Env, store: &Path, generation: u64, reason: &str) -> io::Result<()> {
    let disk = &*env.disk;
    if is_empty(disk, store)? {
        return Ok(());
    }
    let aside = directory(store, generation);
    disk.create_directory(&aside)?;
    let reason = reason.replace('\n', " ");
    let text = format!("at_ms={}\nreason={reason}\n", env.clock.timestamp().ms);
    let file = disk.open(&aside.join(WHY), OpenMode::CreateOrTruncate)?;
    file.write_at(text.as_bytes(), 0)?;
    file.sync_data()?;
    disk.sync_directory(&aside)?;
    disk.sync_directory(store)
}

/// Whether the store has neither log nor images.
pub(crate) fn is_empty(disk: &dyn Disk, store: &Path) -> io::Result<bool> {
    for directory in [LOG, IMAGES] {
        if !disk.list(&store.join(directory))?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Bytes of a store's log and images.
fn store_bytes(disk: &dyn Disk, store: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for directory in [LOG, IMAGES].map(|name| store.join(name)) {
        for name in disk.list(&directory)? {
            bytes += disk.length(&directory.join(name))?;
        }
    }
    Ok(bytes)
}

/// Whether one more may be put aside by itself: the first always, and another while the disk has room for what the store
/// holds once more. It will be renewed with about as much.
///
/// # Errors
/// [`OpenError::NoRoomAside`] if there is no room; [`OpenError::Io`] if a directory cannot be listed, or the disk does
/// not say how much is free.
pub(crate) fn check_room(disk: &dyn Disk, store: &Path, generation: u64) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { file: store.to_owned(), source };
    let kept = generations(disk, store).map_err(io)?;
    let mut others = Vec::new();
    for other in kept.into_iter().filter(|other| *other != generation) {
        let names = disk.list(&directory(store, other)).map_err(io)?;
        if names.iter().any(|name| name != WHY) {
            others.push(other);
        }
    }
    if others.is_empty() {
        return Ok(());
    }
    let needed = store_bytes(disk, store).map_err(io)?;
    let free = disk.space(store).map_err(io)?.free_bytes;
    if free >= needed {
        return Ok(());
    }
    Err(no_room(disk, store, others.len()))
}

/// The disk has no room for one more.
pub(crate) fn no_room(disk: &dyn Disk, store: &Path, kept: usize) -> OpenError {
    let free = disk.space(store).map_or(0, |space| space.free_bytes);
    let needed = store_bytes(disk, store).unwrap_or_default().max(ROOM_MIN);
    OpenError::NoRoomAside { directory: store.to_owned(), needed, free, kept }
}

pub(crate) fn directory(store: &Path, generation: u64) -> PathBuf {
    store.join(format!("{SET_ASIDE}{generation}"))
}

/// Whether there is such a one, with more than the note of why.
pub(crate) fn holds_something(disk: &dyn Disk, store: &Path, generation: u64) -> io::Result<bool> {
    let directory = self::directory(store, generation);
    Ok(disk.is_directory(&directory)? && disk.list(&directory)?.iter().any(|name| name != WHY))
}

/// Bytes below which a disk counts as full: moving files makes directories grow.
const ROOM_MIN: u64 = 1 << 20;

/// Whether a store that is to be put aside at its next start can be: there is room, and nothing else has the name. Nothing is locked
/// or changed.
pub fn can_be_put_aside(disk: &dyn Disk, store: &Path) -> bool {
    let Ok(survey) = crate::survey::survey(disk, store) else { return false };
    if survey.state.next_start != NextStart::Discard {
        return true;
    }
    let generation = survey.state.generation;
    let free = disk.space(store).map_or(0, |space| space.free_bytes);
    free >= ROOM_MIN
        && check_room(disk, store, generation).is_ok()
        && collision(disk, store, generation).is_ok_and(|collision| collision.is_none())
}

/// A file of the store that has a namesake where it would be put aside.
pub(crate) fn collision(disk: &dyn Disk, store: &Path, generation: u64) -> io::Result<Option<PathBuf>> {
    let aside = directory(store, generation);
    if !disk.is_directory(&aside)? {
        return Ok(None);
    }
    let kept = disk.list(&aside)?;
    for directory in [LOG, IMAGES] {
        if let Some(name) = disk.list(&store.join(directory))?.iter().find(|name| kept.contains(name)) {
            return Ok(Some(aside.join(name)));
        }
    }
    Ok(None)
}

/// Files that a repair has replaced, as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The directory in the store.
    pub name: String,
    /// The start at which they were replaced.
    pub start: u64,
    pub segments: usize,
    pub images: usize,
    pub bytes: u64,
}

/// The files that repairs have replaced, the oldest repair first.
///
/// # Errors
/// A directory cannot be listed, or a file in it cannot be looked at.
pub fn replaced(disk: &dyn Disk, store: &Path) -> io::Result<Vec<Replaced>> {
    let mut all = Vec::new();
    for name in disk.list(store)? {
        let Some(start) = name.strip_prefix(DAMAGED).and_then(|start| start.parse().ok()) else { continue };
        let directory = store.join(&name);
        let mut found = Replaced { name, start, segments: 0, images: 0, bytes: 0 };
        for name in disk.list(&directory)? {
            found.bytes += disk.length(&directory.join(&name))?;
            // A second copy of a file has a number behind its name.
            if name.contains(IMAGE) { found.images += 1 } else { found.segments += 1 }
        }
        all.push(found);
    }
    all.sort_by_key(|found| found.start);
    Ok(all)
}

fn generations(disk: &dyn Disk, store: &Path) -> io::Result<Vec<u64>> {
    let names = disk.list(store)?;
    let mut generations: Vec<u64> =
        names.iter().filter_map(|name| name.strip_prefix(SET_ASIDE)?.parse().ok()).collect();
    generations.sort_unstable();
    Ok(generations)
}

/// All stores that were put aside, the oldest first. Nothing is locked or changed.
///
/// # Errors
/// A directory cannot be listed, or a file in it cannot be looked at.
pub fn list(disk: &dyn Disk, store: &Path) -> io::Result<Vec<Aside>> {
    let mut all = Vec::new();
    for generation in generations(disk, store)? {
        let aside = look(disk, store, generation)?;
        if aside.segments + aside.images > 0 {
            all.push(aside);
        }
    }
    Ok(all)
}

/// The reasons why the stores were put aside, the oldest first. Early releases noted none.
///
/// # Errors
/// A directory cannot be listed, or a note cannot be read.
pub fn reasons(disk: &dyn Disk, store: &Path) -> io::Result<Vec<String>> {
    let mut reasons = Vec::new();
    for generation in generations(disk, store)? {
        // A store that was put back counts no longer: only its note is left.
        let path = directory(store, generation).join(WHY);
        if disk.exists(&path)? && holds_something(disk, store, generation)? {
            reasons.extend(read_why(disk, &path)?.1);
        }
    }
    Ok(reasons)
}

/// When and why.
fn read_why(disk: &dyn Disk, path: &Path) -> io::Result<(Option<u64>, Option<String>)> {
    let file = disk.open(path, OpenMode::Read)?;
    let mut bytes = vec![0; file.length()?.min(WHY_BYTES_MAX) as usize];
    let read = file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..read]);
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
    Ok((value("at_ms=").and_then(|ms| ms.parse().ok()), value("reason=")))
}

fn look(disk: &dyn Disk, store: &Path, generation: u64) -> io::Result<Aside> {
    let directory = self::directory(store, generation);
    let mut found = Aside {
        generation,
        at_ms: None,
        reason: None,
        first: None,
        last: None,
        segments: 0,
        images: 0,
        bytes: 0,
    };
    let mut segments = Vec::new();
    for name in disk.list(&directory)? {
        let path = directory.join(&name);
        found.bytes += disk.length(&path)?;
        if let Some((_, start, is_open)) = block::parse_file_name(&name) {
            segments.push((start, is_open, path));
        } else if name.ends_with(IMAGE) {
            found.images += 1;
        } else if name == WHY {
            (found.at_ms, found.reason) = read_why(disk, &path)?;
        }
    }
    segments.sort();
    found.segments = segments.len();
    found.first = segments.first().map(|(start, ..)| *start);
    // An open one may be empty.
    for (_, _, path) in segments.iter().rev() {
        found.last = last_entry(disk, path)?;
        if found.last.is_some() {
            break;
        }
    }
    Ok(found)
}

/// The last entry before the end of the segment, or before the place where it cannot be read.
pub(crate) fn last_entry(disk: &dyn Disk, path: &Path) -> io::Result<Option<TxId>> {
    let bytes = read_segment(disk, path)?;
    let mut last = None;
    if let Some(header) = block::SegmentHeader::decode(&bytes) {
        // The scan's result is not used: `clover inspect` says where a log ends, and why.
        let _ = scan::<()>(&bytes, header.group, None, |_, entry| {
            last = Some(entry.id);
            Ok(())
        });
    }
    Ok(last)
}

pub(crate) fn read_segment(disk: &dyn Disk, path: &Path) -> io::Result<bytes::Bytes> {
    let file = disk.open(path, OpenMode::Read)?;
    let length = file.length()?.min(crate::Settings::SEGMENT_FILE_BYTES_MAX);
    let mut bytes = vec![0; length as usize];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes.into())
}

/// Removes the store that was put aside under this number, for good. A store that is being put back stays: part of it is in
/// its place already.
///
/// # Errors
/// [`OpenError::Restoring`] if the store is being put back and that was interrupted.
/// [`OpenError::InUse`] if a process has the store's lock. [`OpenError::NotFormatted`], [`OpenError::StateDamaged`],
/// [`OpenError::Version`] or [`OpenError::Level`] if `store` holds no store that can be read. [`OpenError::Io`] if
/// nothing was put aside under this number, or the directory cannot be removed.
pub fn drop_one(env: &Env, store: &Path, generation: u64) -> Result<(), OpenError> {
    let _lock = lock(env, store)?;
    // This refuses a directory that holds no store.
    load_state(env, store)?;
    let directory = self::directory(store, generation);
    let io = |source| OpenError::Io { file: directory.clone(), source };
    if crate::restore::begun(&*env.disk, store).map_err(io)? == Some(generation) {
        return Err(OpenError::Restoring { directory: store.to_owned(), number: generation });
    }
    env.disk.remove_directory(&directory).map_err(io)?;
    env.disk.sync_directory(store).map_err(io)
}
