//! A store that was put aside is put back in place, by order of a person. Nothing is deleted: what is in its place now is put aside
//! first.
//!
//! The store gets a generation that no member has seen, so no member counts on it. An active brings it up to date
//! from where the logs agree, and an unclean election can choose it. Every step may be repeated: a file names what is
//! being put back until all of it is there, and a store with that file is not opened. If the directory that it came from
//! is gone when the step is repeated, the store is what was moved before.

use crate::{
    Checkpoint, NextStart, OpenError, aside, block, renewal,
    scan::scan,
    store::{IMAGES, LOG, load_state, lock},
};
use base::{EntryKind, Sn, TxId};
use env::{Disk, Env, OpenMode};
use std::{
    io,
    path::{Path, PathBuf},
};

const RESTORING: &str = "restoring";

/// A store that was put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBack {
    /// The last entry that can be read.
    pub last: Option<TxId>,
    /// The newest image that a start may begin from.
    pub image: Option<Checkpoint>,
    /// The generation under which that was put aside which was in the place of the store.
    pub put_aside: Option<u64>,
    /// The store's generation from now on.
    pub generation: u64,
}

/// Puts the store with this number of [`aside::list`] back. The server is not running: the store's lock is taken.
///
/// # Errors
/// [`OpenError::InUse`] if a process has the store's lock, [`OpenError::Untrusted`] if the store's disk had failed,
/// [`OpenError::Restoring`] if another store is being put back, [`OpenError::NothingAside`] if nothing was put aside
/// under this number, [`OpenError::AsideExists`] if something stands where a file is to go. Those of
/// [`FailedStore::open`](crate::FailedStore::open) for the member's state; [`OpenError::Io`] if a file cannot be read,
/// written or moved.
pub fn restore(env: &Env, store: &Path, number: u64) -> Result<PutBack, OpenError> {
    let disk = &*env.disk;
    let _lock = lock(env, store)?;
    let (mut file, _) = load_state(env, store)?;
    if let Some(note) = &file.state.fault_note {
        return Err(OpenError::Untrusted { directory: store.to_owned(), note: note.clone() });
    }
    let io = |source| OpenError::Io { file: store.to_owned(), source };
    let keep = |file: &mut crate::member_state::StateFile| {
        file.store(disk).map_err(|(file, source)| OpenError::Io { file, source })
    };
    let mut put_aside = None;
    match begun(disk, store).map_err(io)? {
        Some(other) if other != number => {
            return Err(OpenError::Restoring { directory: store.to_owned(), number: other });
        }
        Some(_) => {}
        None => {
            if file.state.next_start == NextStart::Discard && file.state.generation == number {
                // It is still in its place, and was to be put aside at the next start.
                file.state.next_start = NextStart::Recover;
                keep(&mut file)?;
                return Ok(PutBack {
                    last: last_entry(disk, store).map_err(io)?,
                    image: file.state.checkpoints.last().copied(),
                    put_aside: None,
                    generation: file.state.generation,
                });
            }
            if !aside::holds_something(disk, store, number).map_err(io)? {
                return Err(OpenError::NothingAside { directory: store.to_owned(), number });
            }
            if !aside::is_empty(disk, store).map_err(io)? {
                if file.state.next_start != NextStart::Discard {
                    file.state.generation += 1;
                    file.state.next_start = NextStart::Discard;
                    let reason = format!("a person had the store put back that was put aside as {number}");
                    aside::note(env, store, file.state.generation, &reason).map_err(io)?;
                    keep(&mut file)?;
                }
                put_aside = Some(file.state.generation);
            }
            renewal::set_aside(disk, store, file.state.generation)?;
            file.state.generation += 1;
            renewal::begin(disk, &mut file, None)?;
            begin(disk, store, number).map_err(io)?;
        }
    }
    // Repeated after a crash: someone may have removed the directory meanwhile. Then the store is what was moved before.
    let is_there = disk.exists(&aside::directory(store, number)).map_err(io)?;
    if is_there {
        move_log(disk, store, number)?;
    }
    let checkpoints = move_images(disk, store, number)?;
    let image = checkpoints.last().copied();
    file.state.known_commit = image.map_or(Sn(0), |image| image.at.id.sn);
    file.state.checkpoints = checkpoints;
    // The end of its log is where the log ends now: no later entry is expected.
    file.state.next = Sn(1);
    keep(&mut file)?;
    disk.remove_file(&store.join(RESTORING)).map_err(io)?;
    disk.sync_directory(store).map_err(io)?;
    let last = last_entry(disk, store).map_err(io)?;
    Ok(PutBack { last, image, put_aside, generation: file.state.generation })
}

/// The number of the store that an interrupted restore was putting back; `None` if no restore was interrupted.
///
/// # Errors
/// `InvalidData` if the file holds no number; or it cannot be read.
pub(crate) fn begun(disk: &dyn Disk, store: &Path) -> io::Result<Option<u64>> {
    let path = store.join(RESTORING);
    if !disk.exists(&path)? {
        return Ok(None);
    }
    let file = disk.open(&path, OpenMode::Read)?;
    let mut bytes = [0; 20];
    let read = file.read_at(&mut bytes, 0)?;
    let number = std::str::from_utf8(&bytes[..read]).ok().and_then(|text| text.trim().parse().ok());
    let what = || format!("{} names nothing that was put aside", path.display());
    number.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, what()))
}

fn begin(disk: &dyn Disk, store: &Path, number: u64) -> io::Result<()> {
    let (path, temporary) = (store.join(RESTORING), store.join("restoring.tmp"));
    let file = disk.open(&temporary, OpenMode::CreateOrTruncate)?;
    file.write_at(number.to_string().as_bytes(), 0)?;
    file.sync_data()?;
    disk.rename(&temporary, &path)?;
    disk.sync_directory(store)
}

fn move_log(disk: &dyn Disk, store: &Path, number: u64) -> Result<(), OpenError> {
    let is_segment = |name: &str| block::parse_file_name(name).is_some();
    let from = aside::directory(store, number);
    let io = |source| OpenError::Io { file: from.clone(), source };
    for name in disk.list(&from).map_err(io)?.iter().filter(|name| is_segment(name)) {
        renewal::move_file(disk, &from, &store.join(LOG), name)?;
    }
    disk.sync_directory(&store.join(LOG)).and_then(|()| disk.sync_directory(&from)).map_err(io)
}

/// Moves the images that a start may begin from: the log has the entry that made them usable. Other images stay where
/// they are, because a person may have put them there to examine them.
fn move_images(disk: &dyn Disk, store: &Path, number: u64) -> Result<Vec<Checkpoint>, OpenError> {
    let (from, images) = (aside::directory(store, number), store.join(IMAGES));
    let io = |source| OpenError::Io { file: from.clone(), source };
    let mut usable = Vec::new();
    for checkpoint in checkpoints(disk, store).map_err(io)? {
        let name = checkpoint.file_name();
        let place = match disk.exists(&from.join(&name)).map_err(io)? {
            true => &from,
            false if disk.exists(&images.join(&name)).map_err(io)? => &images,
            false => continue,
        };
        if disk.length(&place.join(&name)).map_err(io)? != checkpoint.file_bytes {
            continue;
        }
        if place == &from {
            renewal::move_file(disk, &from, &images, &name)?;
        }
        usable.push(checkpoint);
    }
    disk.sync_directory(&images).map_err(io)?;
    if disk.exists(&from).map_err(io)? {
        disk.sync_directory(&from).map_err(io)?;
    }
    usable.sort_by_key(|checkpoint| checkpoint.at.id);
    usable.dedup();
    let extra = usable.len().saturating_sub(crate::member_state::CHECKPOINTS_MAX);
    Ok(usable.split_off(extra))
}

/// The checkpoints that the log names.
fn checkpoints(disk: &dyn Disk, store: &Path) -> io::Result<Vec<Checkpoint>> {
    let mut found = Vec::new();
    for path in segments(disk, store)? {
        let bytes = aside::read_segment(disk, &path)?;
        let Some(header) = block::SegmentHeader::decode(&bytes) else { continue };
        // The next start examines where the segment ends, and why.
        let _ = scan::<()>(&bytes, header.group, None, |_, entry| {
            if entry.kind == EntryKind::Checkpoint {
                found.extend(Checkpoint::decode(&entry.payload));
            }
            Ok(())
        });
    }
    Ok(found)
}

fn last_entry(disk: &dyn Disk, store: &Path) -> io::Result<Option<TxId>> {
    for path in segments(disk, store)?.iter().rev() {
        if let Some(last) = aside::last_entry(disk, path)? {
            return Ok(Some(last));
        }
    }
    Ok(None)
}

/// The paths of the segments, in the order of the log.
fn segments(disk: &dyn Disk, store: &Path) -> io::Result<Vec<PathBuf>> {
    let log = store.join(LOG);
    let names = disk.list(&log)?;
    let mut segments: Vec<_> =
        names.iter().filter_map(|name| Some((block::parse_file_name(name)?.1, log.join(name)))).collect();
    segments.sort();
    Ok(segments.into_iter().map(|(_, path)| path).collect())
}
