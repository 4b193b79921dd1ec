//! Making and opening a store's directory.
//!
//! ```text
//! lock                      held while the store is open
//! member.0, member.1        the member's state, twice
//! log/<epoch>-<sn>          a sealed segment, named for its first entry
//! log/<epoch>-<sn>.open     the segment that is written to
//! log/spare                 the next segment, being prepared
//! images/<epoch>-<sn>.image
//! commit                    what is known to have committed, never synced
//! promise                   the highest epoch promised, twice
//! staging/                  an image on its way from another member
//! set-aside-<generation>/   what was there before the store was given up
//! restoring                 the number of what is being put back, while that is under way
//! ```

use crate::{
    AcceptError, Checkpoint, FailedStore, FormatError, Identity, ImageError, ImageReader, ImageWriter,
    MemberState, NextStart, OpenError, RecoverError, Recovery, Settings, TakenBack, Word, aside,
    image::ImageHeader,
    member_state::{FILE_NAMES, LoadError, StateFile},
    promise,
    record::BLOCK_BYTES,
    renewal, restore, watermark,
};
use base::{Epoch, Level, LogPoint, Sn};
use env::{Env, OpenMode, disk::Lock};
use std::{io, path::Path};

pub const LOG: &str = "log";
pub const IMAGES: &str = "images";
const LOCK: &str = "lock";

/// Makes a store in a directory that is empty or does not exist. Returns the new store's uuid.
///
/// # Errors
/// [`FormatError::NotEmpty`] if the directory is not empty, [`FormatError::ClusterId`] if the cluster's id is empty or
/// too long, [`FormatError::Io`] if a file cannot be written.
pub fn format(env: &Env, directory: &Path, identity: &Identity) -> Result<[u8; 16], FormatError> {
    let length = identity.cluster_id.len();
    if !(1..=255).contains(&length) {
        return Err(FormatError::ClusterId { length });
    }
    let io = |source| FormatError::Io { file: directory.to_owned(), source };
    env.disk.create_directory(directory).map_err(io)?;
    if !env.disk.list(directory).map_err(io)?.is_empty() {
        return Err(FormatError::NotEmpty { directory: directory.to_owned() });
    }
    for name in [LOG, IMAGES] {
        env.disk.create_directory(&directory.join(name)).map_err(io)?;
    }
    let mut store_uuid = [0; 16];
    env.random.fill(&mut store_uuid);
    let state = MemberState {
        identity: identity.clone(),
        store_uuid,
        promised: Epoch(0),
        known_commit: Sn(0),
        boot: 0,
        next: Sn(1),
        generation: 0,
        fault_note: None,
        checkpoints: Vec::new(),
        is_suspect: false,
        next_start: NextStart::Recover,
        level: Level::FIRST,
    };
    let mut file = StateFile { directory: directory.to_owned(), state, writes: 0 };
    file.store(&*env.disk).map_err(|(file, source)| FormatError::Io { file, source })?;
    if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        env.disk.sync_directory(parent).map_err(io)?;
    }
    Ok(store_uuid)
}

/// Makes a store that begins with an image instead of an empty log: everything up to `at` is in it.
///
/// # Errors
/// [`ImageError::Io`] if the store cannot be made (its text is that of [`format()`]), `write` failed, or the image
/// cannot be written; [`ImageError::Verify`] if it does not read back as written.
pub fn format_with_image(
    env: &Env,
    directory: &Path,
    identity: &Identity,
    at: LogPoint,
    write: impl FnOnce(&mut ImageWriter) -> io::Result<()>,
) -> Result<(), ImageError> {
    let failed =
        |file: &Path, what: String| ImageError::Io { file: file.to_owned(), source: io::Error::other(what) };
    let store_uuid = format(env, directory, identity).map_err(|error| failed(directory, told(&error)))?;
    if at.id.sn == Sn(0) {
        return Ok(());
    }
    let disk = &*env.disk;
    let images = directory.join(IMAGES);
    let name = Checkpoint { at, file_bytes: 0, sha256: [0; 32] }.file_name();
    let (path, temporary) = (images.join(&name), images.join(format!("{name}.tmp")));
    let header = ImageHeader { group: identity.group, at, store_uuid };
    let checkpoint = (|| {
        let mut writer = ImageWriter::new(disk.open(&temporary, OpenMode::CreateOrTruncate)?, &header)?;
        write(&mut writer)?;
        writer.finish()
    })()
    .map_err(|source| ImageError::Io { file: temporary.clone(), source })?;
    let read =
        disk.open(&temporary, OpenMode::Read).and_then(ImageReader::open).and_then(ImageReader::finish);
    match read {
        Ok(digest) if digest == checkpoint.sha256 => {}
        Ok(_) => return Err(ImageError::Verify { file: temporary, what: "another sha256".into() }),
        Err(error) => return Err(ImageError::Verify { file: temporary, what: error.to_string() }),
    }
    disk.rename(&temporary, &path)
        .and_then(|()| disk.sync_directory(&images))
        .map_err(|source| ImageError::Io { file: path, source })?;
    let made = load_state(env, directory)
        .and_then(|(mut file, _)| renewal::begin(disk, &mut file, Some(checkpoint)));
    made.map_err(|error| failed(directory, told(&error)))
}

/// An error with all that has led to it.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text += &format!(": {inner}");
        source = inner.source();
    }
    text
}

/// Opens a store: takes its lock and reads the member's state. Does what the last life has left to be done: a
/// store that is not believed any more begins empty, a staged image takes the place of the log. Otherwise
/// nothing is changed before [`Recovery::replay`].
///
/// # Errors
/// [`OpenError::Settings`] if the settings are out of bounds, [`OpenError::NotFormatted`] if the directory holds no
/// store, [`OpenError::InUse`] if another process has its lock, [`OpenError::StateDamaged`], [`OpenError::Version`] or
/// [`OpenError::Level`] if its state cannot be read, [`OpenError::Untrusted`] if its disk had failed,
/// [`OpenError::Restoring`] if a store that was put aside was being put back. [`OpenError::NoRoomAside`] or
/// [`OpenError::AsideExists`] if what the last life has left to be done cannot be; [`OpenError::Io`] if a file cannot
/// be read, written or moved.
pub fn open(env: &Env, directory: &Path, settings: Settings) -> Result<Recovery, OpenError> {
    check(&settings)?;
    let io = |source| OpenError::Io { file: directory.to_owned(), source };
    if !env.disk.is_directory(directory).map_err(io)? {
        return Err(OpenError::NotFormatted { directory: directory.to_owned() });
    }
    let mut is_formatted = false;
    for name in FILE_NAMES {
        // A file that cannot be looked for may be there: nobody is told to make a store in its place.
        is_formatted |= env.disk.exists(&directory.join(name)).map_err(io)?;
    }
    if !is_formatted {
        return Err(OpenError::NotFormatted { directory: directory.to_owned() });
    }
    let lock = lock(env, directory)?;
    let (mut file, finding) = load_state(env, directory)?;
    if let Some(note) = &file.state.fault_note {
        return Err(OpenError::Untrusted { directory: directory.to_owned(), note: note.clone() });
    }
    if let Some(number) = restore::begun(&*env.disk, directory).map_err(io)? {
        return Err(OpenError::Restoring { directory: directory.to_owned(), number });
    }
    let promised = promise::read(&*env.disk, directory, file.state.store_uuid)
        .map_err(|error| promise_error(directory, error))?;
    file.state.promised = file.state.promised.max(promised);
    renewal::carry_out(&*env.disk, &mut file)?;
    file.state.known_commit =
        file.state.known_commit.max(watermark::read(&*env.disk, directory, &file.state));
    Recovery::new(env.clone(), directory, settings, file, finding, lock)
}

/// Takes the lock that keeps two processes from one store.
///
/// # Errors
/// [`OpenError::InUse`] if another process has the lock; [`OpenError::Io`] if the lock's file cannot be made.
pub(crate) fn lock(env: &Env, directory: &Path) -> Result<Box<dyn Lock>, OpenError> {
    env.disk.lock(&directory.join(LOCK)).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::InUse { directory: directory.to_owned() },
        _ => OpenError::Io { file: directory.join(LOCK), source: error },
    })
}

/// Keeps every server out of a store for as long as the value lives: nothing runs there, and nothing begins to.
///
/// # Errors
/// [`OpenError::InUse`] if another process has the lock; [`OpenError::Io`] if the lock's file cannot be made.
pub fn hold(env: &Env, directory: &Path) -> Result<Box<dyn Lock>, OpenError> {
    lock(env, directory)
}

pub(crate) fn promise_error(directory: &Path, error: promise::ReadError) -> OpenError {
    match error {
        promise::ReadError::Damaged([first, second]) => OpenError::StateDamaged { first, second },
        promise::ReadError::Io(source) => OpenError::Io { file: directory.join(promise::FILE_NAME), source },
    }
}

/// The result of an operator's order to accept a store whose disk had failed.
#[derive(Debug)]
pub enum Accepted {
    /// There was no note of a failed disk.
    Nothing,
    /// The log was read back from the medium, and its end is in a new file.
    TakenBack(TakenBack),
    /// The note is gone, and the medium does not hold an intact log: the next start says what is to be done.
    Damaged { note: String, error: RecoverError },
}

/// Takes a store whose disk had failed as the medium holds it, by the word of an operator who has checked the disk.
/// Entries that were acknowledged before the failure are there, unless the disk has lost more than it said.
///
/// # Errors
/// [`AcceptError::Open`] if the store cannot be opened (see [`FailedStore::open`]) or its state not be written;
/// [`AcceptError::Recover`] if a segment is of a later release, or a file cannot be read or written. A damaged log is
/// no error but [`Accepted::Damaged`].
pub fn accept_fault(env: &Env, directory: &Path) -> Result<Accepted, AcceptError> {
    let Some(failed) = FailedStore::open(env, directory)? else { return Ok(Accepted::Nothing) };
    let note = failed.note().to_owned();
    match failed.take_back(Word::Operator) {
        Ok(taken) => Ok(Accepted::TakenBack(taken)),
        Err(error @ RecoverError::Damaged { .. }) => {
            let _lock = lock(env, directory)?;
            let (mut file, _) = load_state(env, directory)?;
            file.state.fault_note = None;
            // The entries that the note's writer took for durable need not be there any more.
            file.state.next = Sn(1);
            file.store(&*env.disk).map_err(|(file, source)| OpenError::Io { file, source })?;
            Ok(Accepted::Damaged { note, error })
        }
        Err(error) => Err(error.into()),
    }
}

/// Gives up what a store that cannot be opened holds: its note is removed, its generation rises, and the next start
/// finds it empty. It is for a member of a group whose other members have all that it had. Returns the new
/// generation.
///
/// # Errors
/// [`OpenError::NotFormatted`], [`OpenError::StateDamaged`], [`OpenError::Version`] or [`OpenError::Level`] if the
/// member's state cannot be read; [`OpenError::Io`] if it cannot be written.
pub fn distrust(env: &Env, directory: &Path, reason: &str) -> Result<u64, OpenError> {
    tracing::warn!(store = %directory.display(), reason, "this store is not trusted any more");
    let (mut file, _) = load_state(env, directory)?;
    file.state.fault_note = None;
    file.state.generation += 1;
    file.state.next_start = NextStart::Discard;
    if let Err(error) = aside::note(env, directory, file.state.generation, reason) {
        tracing::warn!(%error, "why this store is put aside could not be noted beside it");
    }
    file.store(&*env.disk).map_err(|(file, source)| OpenError::Io { file, source })?;
    Ok(file.state.generation)
}

/// Gives a store a generation that nobody has seen, because it is a copy of an earlier time: a later life of it is
/// known, with `generation` at most. Entries that the later life had acknowledged may be missing here, so no member
/// counts on this store any more. It keeps all that it holds, which may be the last copy of something. Returns the
/// new generation.
///
/// # Errors
/// Those of [`distrust`].
pub fn outlive(env: &Env, directory: &Path, generation: u64, reason: &str) -> Result<u64, OpenError> {
    tracing::warn!(store = %directory.display(), reason, "this store is not complete any more");
    let (mut file, _) = load_state(env, directory)?;
    // The file for it tells of one generation only.
    file.state.known_commit =
        file.state.known_commit.max(watermark::read(&*env.disk, directory, &file.state));
    file.state.generation = file.state.generation.max(generation) + 1;
    file.store(&*env.disk).map_err(|(file, source)| OpenError::Io { file, source })?;
    Ok(file.state.generation)
}

/// # Errors
/// [`OpenError::NotFormatted`] if there is no such file, [`OpenError::StateDamaged`] if neither copy can be read,
/// [`OpenError::Version`] or [`OpenError::Level`] if a later release wrote one, [`OpenError::Io`] if the disk refuses.
pub(crate) fn load_state(
    env: &Env,
    directory: &Path,
) -> Result<(StateFile, Option<(std::path::PathBuf, String)>), OpenError> {
    StateFile::load(&*env.disk, directory).map_err(|error| match error {
        LoadError::Missing => OpenError::NotFormatted { directory: directory.to_owned() },
        LoadError::Damaged { first, second } => OpenError::StateDamaged { first, second },
        LoadError::Version { file, found } => {
            OpenError::Version { file, found, supported: crate::member_state::VERSION }
        }
        LoadError::Level { file, unknown } => OpenError::Level { file, unknown },
        LoadError::Io(file, source) => OpenError::Io { file, source },
    })
}

fn check(settings: &Settings) -> Result<(), OpenError> {
    let fail = |what: String| Err(OpenError::Settings { what });
    let bytes = settings.segment_bytes;
    if !bytes.is_multiple_of(BLOCK_BYTES) {
        return fail(format!("segment_bytes {bytes} is no multiple of {BLOCK_BYTES}"));
    }
    if !(Settings::SEGMENT_BYTES_MIN..=Settings::SEGMENT_BYTES_MAX).contains(&bytes) {
        let (min, max) = (Settings::SEGMENT_BYTES_MIN, Settings::SEGMENT_BYTES_MAX);
        return fail(format!("segment_bytes {bytes} is not between {min} and {max}"));
    }
    if !(1..=64).contains(&settings.flights_max) {
        return fail(format!("flights_max {} is not between 1 and 64", settings.flights_max));
    }
    Ok(())
}
