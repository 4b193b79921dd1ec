//! The work that the last life of a store has left to its next start: to begin empty, or with another member's image.
//!
//! Every step may be repeated. The member's state names what is to be done until all of it is durable; a store
//! found half-way is finished, and one whose staged image is gone is an empty one of a new generation.

use crate::{
    Checkpoint, NextStart, OpenError, aside,
    member_state::StateFile,
    staging,
    store::{IMAGES, LOG},
    watermark,
};
use base::Sn;
use env::Disk;
use std::{io, path::Path};

/// The directory for files that were damaged and written anew, followed by the number of the start that did it.
pub(crate) const DAMAGED: &str = "damaged-";

/// Does what is due, if anything is.
///
/// # Errors
/// [`OpenError::NoRoomAside`] if a store is to be put aside and there is no room, [`OpenError::AsideExists`] if a file
/// is in its way; [`OpenError::Io`] if a file cannot be read, written or moved.
pub(crate) fn carry_out(disk: &dyn Disk, file: &mut StateFile) -> Result<(), OpenError> {
    let store = file.directory.clone();
    let io = |source| OpenError::Io { file: store.clone(), source };
    if file.state.next_start == NextStart::Install {
        let wanted = staging::read_wanted(disk, &store.join(staging::STAGING)).map_err(io)?;
        let is_ready = match &wanted {
            Some(checkpoint) => staging::is_ready(disk, &store, checkpoint).map_err(io)?,
            None => false,
        };
        match wanted.filter(|_| is_ready) {
            Some(checkpoint) => {
                install(disk, &store, &checkpoint).map_err(io)?;
                tracing::info!(at = %checkpoint.at, "the image of another member is in place");
                return begin(disk, file, Some(checkpoint));
            }
            None => {
                tracing::error!(store = %store.display(), "the staged image is gone; the store is empty now");
                file.state.generation += 1;
                file.state.next_start = NextStart::Discard;
                store_state(disk, file)?;
            }
        }
    }
    if file.state.next_start == NextStart::Discard {
        aside::check_room(disk, &store, file.state.generation)?;
        let done = set_aside(disk, &store, file.state.generation).and_then(|()| begin(disk, file, None));
        return done.map_err(|error| match error {
            OpenError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                aside::no_room(disk, &store, 0)
            }
            other => other,
        });
    }
    Ok(())
}

/// The store begins here: with this image, or with nothing.
pub(crate) fn begin(
    disk: &dyn Disk,
    file: &mut StateFile,
    image: Option<Checkpoint>,
) -> Result<(), OpenError> {
    let at = image.map_or(Sn(0), |image| image.at.id.sn);
    let state = &mut file.state;
    state.checkpoints = image.into_iter().collect();
    state.known_commit = at;
    state.next = Sn(at.0 + 1);
    state.is_suspect = false;
    state.next_start = NextStart::Recover;
    store_state(disk, file)?;
    if image.is_some() {
        staging::clear(disk, &file.directory);
    }
    Ok(())
}

fn install(disk: &dyn Disk, store: &Path, checkpoint: &Checkpoint) -> io::Result<()> {
    let image = checkpoint.file_name();
    for directory in [LOG, IMAGES].map(|name| store.join(name)) {
        for name in disk.list(&directory)? {
            if name != image {
                disk.remove_file(&directory.join(name))?;
            }
        }
        disk.sync_directory(&directory)?;
    }
    forget_watermark(disk, store)?;
    staging::move_to_images(disk, store, checkpoint)
}

/// Nothing that was set aside is ever removed by itself: it may be the last copy of something. Nor is it written over.
///
/// # Errors
/// [`OpenError::AsideExists`] if a file is in the way; [`OpenError::Io`] if one cannot be moved, or a directory not be
/// synced.
pub(crate) fn set_aside(disk: &dyn Disk, store: &Path, generation: u64) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { file: store.to_owned(), source };
    if aside::is_empty(disk, store).map_err(io)? {
        return forget_watermark(disk, store).map_err(io);
    }
    if let Some(file) = aside::collision(disk, store, generation).map_err(io)? {
        return Err(OpenError::AsideExists { file });
    }
    let aside = aside::directory(store, generation);
    disk.create_directory(&aside).and_then(|()| disk.sync_directory(store)).map_err(io)?;
    for directory in [LOG, IMAGES].map(|name| store.join(name)) {
        for name in disk.list(&directory).map_err(io)? {
            move_file(disk, &directory, &aside, &name)?;
        }
        disk.sync_directory(&aside).and_then(|()| disk.sync_directory(&directory)).map_err(io)?;
    }
    forget_watermark(disk, store).map_err(io)
}

/// A rename replaces what has the name: here nothing may have it.
pub(crate) fn move_file(disk: &dyn Disk, from: &Path, to: &Path, name: &str) -> Result<(), OpenError> {
    let (from, to) = (from.join(name), to.join(name));
    let io = |source| OpenError::Io { file: from.clone(), source };
    if disk.exists(&to).map_err(io)? {
        return Err(OpenError::AsideExists { file: to });
    }
    disk.rename(&from, &to).map_err(io)
}

pub(crate) fn forget_watermark(disk: &dyn Disk, store: &Path) -> io::Result<()> {
    let path = store.join(watermark::FILE_NAME);
    if disk.exists(&path)? {
        disk.remove_file(&path)?;
    }
    disk.sync_directory(store)
}

fn store_state(disk: &dyn Disk, file: &mut StateFile) -> Result<(), OpenError> {
    file.store(disk).map_err(|(file, source)| OpenError::Io { file, source })
}
