//! The state that a member must remember about itself, in two copies.
//!
//! ```text
//!  0  magic "CLOVMEMB"   8  crc32c of bytes 12..   12  version (3, or 4)
//! 16  count of writes   24  group   28  member   32  store uuid (16)
//! 48  promised   56  known commit   64  boot   72  next   80  generation
//! 88  length of the cluster id (1), the cluster id
//!     length of the fault note (2, 0: none), the fault note
//!     count of checkpoints (1), each 65 bytes
//!     flags (1): 1 suspect, 2 discard at the next start, 4 install at the next start; not in version 1
//!     level (2), length of a release's name (1), the release that came with that level; version 4 only
//! ```
//!
//! A change is written to both copies, one after the other, before it counts; so either alone carries all
//! that was ever promised, and rot in one loses nothing.

use crate::{
    Checkpoint, Identity,
    record::{u32_at, u64_at},
};
use base::{Epoch, GroupId, Level, MemberId, Sn, UnknownLevel, level::RELEASE_BYTES_MAX};
use bytes::{Buf, BufMut};
use env::{Disk, OpenMode};
use std::{
    io,
    path::{Path, PathBuf},
};

const MAGIC: [u8; 8] = *b"CLOVMEMB";
/// The version that names the level of the group. It is not written at the first level: releases that know of no levels
/// refuse it.
pub const VERSION: u32 = 4;
/// The file `promise` beside it may know of a later promise.
const VERSION_WITHOUT_LEVEL: u32 = 3;
const SUSPECT: u8 = 1;
const DISCARD: u8 = 2;
const INSTALL: u8 = 4;
pub const FILE_NAMES: [&str; 2] = ["member.0", "member.1"];
const TEMPORARY: &str = "member.tmp";
const FILE_BYTES_MAX: u64 = 4096;
const FAULT_NOTE_BYTES_MAX: usize = 1024;
pub(crate) const CHECKPOINTS_MAX: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberState {
    pub identity: Identity,
    /// Made by `format`; tells a restored copy from the store that it was copied from.
    pub store_uuid: [u8; 16],
    /// Entries and messages of lower epochs are refused. Never falls.
    pub promised: Epoch,
    /// A lower bound of what has committed; written lazily.
    pub known_commit: Sn,
    /// Starts of this store, this one included.
    pub boot: u64,
    /// A lower bound of the log's next sn; written lazily. A log that ends before it has lost entries.
    pub next: Sn,
    /// Rises when the store has become untrusted.
    pub generation: u64,
    /// The reason why this store must not be trusted, if there is one.
    pub fault_note: Option<String>,
    /// The last two committed checkpoints, oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// A torn tail was found, and no active has vouched for the log's end since: an entry that this member had
    /// acknowledged may be missing.
    pub is_suspect: bool,
    /// The step that the next start carries out on this store before it reads it.
    pub next_start: NextStart,
    /// The level that the group is known to be at, a lower bound. The log and the images are written at this level.
    pub level: Level,
}

/// The step that a store's next start begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextStart {
    /// The store is read back.
    #[default]
    Recover,
    /// Its log and images are put aside: the store is empty from then on.
    Discard,
    /// The staged image replaces its log and images. Where that image cannot be used, the store is empty and
    /// of a new generation.
    Install,
}

impl MemberState {
    pub(crate) fn encode(&self, writes: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        bytes.put_slice(&MAGIC);
        bytes.put_u32_le(0);
        let has_level = self.level > Level::FIRST;
        bytes.put_u32_le(if has_level { VERSION } else { VERSION_WITHOUT_LEVEL });
        bytes.put_u64_le(writes);
        bytes.put_u32_le(self.identity.group.0);
        bytes.put_u32_le(self.identity.member.0);
        bytes.put_slice(&self.store_uuid);
        bytes.put_u64_le(self.promised.0);
        bytes.put_u64_le(self.known_commit.0);
        bytes.put_u64_le(self.boot);
        bytes.put_u64_le(self.next.0);
        bytes.put_u64_le(self.generation);
        bytes.put_u8(self.identity.cluster_id.len() as u8);
        bytes.put_slice(self.identity.cluster_id.as_bytes());
        let note = self.fault_note.as_deref().unwrap_or_default();
        let note = &note[..note.floor_char_boundary(FAULT_NOTE_BYTES_MAX)];
        bytes.put_u16_le(note.len() as u16);
        bytes.put_slice(note.as_bytes());
        bytes.put_u8(self.checkpoints.len() as u8);
        for checkpoint in &self.checkpoints {
            bytes.put_slice(&checkpoint.encode());
        }
        let next_start = match self.next_start {
            NextStart::Recover => 0,
            NextStart::Discard => DISCARD,
            NextStart::Install => INSTALL,
        };
        bytes.put_u8(next_start | if self.is_suspect { SUSPECT } else { 0 });
        if has_level {
            let release = self.level.release().unwrap_or_default();
            bytes.put_u16_le(self.level.0);
            bytes.put_u8(release.len() as u8);
            bytes.put_slice(release.as_bytes());
        }
        let crc = crc32c::crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The version in bytes that are intact and that this program cannot read; `None` for all others.
    pub fn unknown_version(bytes: &[u8]) -> Option<u32> {
        let is_intact =
            bytes.len() >= 16 && bytes[..8] == MAGIC && u32_at(bytes, 8) == crc32c::crc32c(&bytes[12..]);
        is_intact.then(|| u32_at(bytes, 12)).filter(|version| !(1..=VERSION).contains(version))
    }

    /// The level that intact bytes name, if this program does not know it; `None` otherwise.
    pub fn unknown_level(bytes: &[u8]) -> Option<UnknownLevel> {
        let (state, _, release) = Self::read(bytes).ok()?;
        (!state.level.is_known()).then_some(UnknownLevel { level: state.level, release })
    }

    /// The state and how many writes led to it, or what is wrong with the bytes.
    ///
    /// # Errors
    /// The bytes are damaged, or of a version or at a level that this release does not know. The text says which.
    pub fn decode(bytes: &[u8]) -> Result<(Self, u64), String> {
        let (state, writes, release) = Self::read(bytes)?;
        if !state.level.is_known() {
            return Err(UnknownLevel { level: state.level, release }.to_string());
        }
        Ok((state, writes))
    }

    /// The state, how many writes led to it, and the release that came with its level.
    fn read(bytes: &[u8]) -> Result<(Self, u64, String), String> {
        if bytes.len() < 89 || bytes[..8] != MAGIC {
            return Err(format!("{} bytes that are no member's state", bytes.len()));
        }
        let (written, found) = (u32_at(bytes, 8), crc32c::crc32c(&bytes[12..]));
        if written != found {
            return Err(format!("checksum {found:08x} where {written:08x} is written"));
        }
        let version = u32_at(bytes, 12);
        if !(1..=VERSION).contains(&version) {
            return Err(format!("format version {version} where up to {VERSION} is supported"));
        }
        let mut rest = &bytes[88..];
        let short = || "its fields are longer than the file".to_owned();
        let length = rest.try_get_u8().map_err(|_| short())? as usize;
        let cluster_id = take_text(&mut rest, length).ok_or_else(short)?;
        let length = rest.try_get_u16_le().map_err(|_| short())? as usize;
        let note = take_text(&mut rest, length).ok_or_else(short)?;
        let count = rest.try_get_u8().map_err(|_| short())? as usize;
        let flag_bytes = usize::from(version > 1);
        let tail = count * Checkpoint::ENCODED_BYTES + flag_bytes;
        let has_level = version > VERSION_WITHOUT_LEVEL;
        if count > CHECKPOINTS_MAX || rest.len() < tail || (rest.len() > tail && !has_level) {
            return Err(format!("{count} checkpoints in {} bytes", rest.len()));
        }
        let (rest, behind) = rest.split_at(count * Checkpoint::ENCODED_BYTES);
        let flags = behind.first().copied().unwrap_or(0);
        let named = behind.get(1..).filter(|_| has_level);
        let (level, release) = match named {
            Some(named) => decode_level(named).ok_or("the level of its group makes no sense")?,
            None if has_level => return Err(short()),
            None => (Level::FIRST, String::new()),
        };
        let next_start = match flags & !SUSPECT {
            0 => NextStart::Recover,
            DISCARD => NextStart::Discard,
            INSTALL => NextStart::Install,
            other => return Err(format!("flags {other:#04x} that this program does not know")),
        };
        let checkpoints = rest
            .chunks_exact(Checkpoint::ENCODED_BYTES)
            .map(|chunk| {
                Checkpoint::decode(chunk).ok_or_else(|| "a checkpoint of another version".to_owned())
            })
            .collect::<Result<_, _>>()?;
        let state = Self {
            identity: Identity {
                cluster_id,
                group: GroupId(u32_at(bytes, 24)),
                member: MemberId(u32_at(bytes, 28)),
            },
            store_uuid: bytes[32..48].try_into().expect("sixteen bytes"),
            promised: Epoch(u64_at(bytes, 48)),
            known_commit: Sn(u64_at(bytes, 56)),
            boot: u64_at(bytes, 64),
            next: Sn(u64_at(bytes, 72)),
            generation: u64_at(bytes, 80),
            fault_note: (!note.is_empty()).then_some(note),
            checkpoints,
            is_suspect: flags & SUSPECT != 0,
            next_start,
            level,
        };
        Ok((state, u64_at(bytes, 16), release))
    }

    pub(crate) fn add_checkpoint(&mut self, checkpoint: Checkpoint) {
        if self.checkpoints.last().is_some_and(|last| last.at.id.sn >= checkpoint.at.id.sn) {
            return;
        }
        self.checkpoints.push(checkpoint);
        let extra = self.checkpoints.len().saturating_sub(CHECKPOINTS_MAX);
        self.checkpoints.drain(..extra);
    }
}

/// The level that a group is at, and the release that came with it. These are the last bytes.
fn decode_level(mut rest: &[u8]) -> Option<(Level, String)> {
    let level = Level(rest.try_get_u16_le().ok()?);
    let length = usize::from(rest.try_get_u8().ok()?);
    let release = take_text(&mut rest, length)?;
    (rest.is_empty() && level > Level::FIRST && length <= RELEASE_BYTES_MAX).then_some((level, release))
}

fn take_text(rest: &mut &[u8], length: usize) -> Option<String> {
    let text = std::str::from_utf8(rest.get(..length)?).ok()?.to_owned();
    rest.advance(length);
    Some(text)
}

/// The state with the two files that hold it.
pub(crate) struct StateFile {
    pub directory: PathBuf,
    pub state: MemberState,
    pub writes: u64,
}

/// Why the state cannot be had.
pub(crate) enum LoadError {
    Missing,
    Damaged {
        first: String,
        second: String,
    },
    /// A copy is of a later release, which may have promised what the other copy does not know.
    Version {
        file: PathBuf,
        found: u32,
    },
    /// The group is at a level that this program does not know.
    Level {
        file: PathBuf,
        unknown: UnknownLevel,
    },
    Io(PathBuf, io::Error),
}

impl StateFile {
    /// Reads both copies and believes the newer one. The finding is set when only one can be read.
    pub fn load(disk: &dyn Disk, directory: &Path) -> Result<(Self, Option<(PathBuf, String)>), LoadError> {
        let mut copies = Vec::new();
        let mut missing = 0;
        for name in FILE_NAMES {
            let path = directory.join(name);
            copies.push(match read(disk, &path) {
                Ok(bytes) => {
                    if let Some(found) = MemberState::unknown_version(&bytes) {
                        return Err(LoadError::Version { file: path, found });
                    }
                    if let Some(unknown) = MemberState::unknown_level(&bytes) {
                        return Err(LoadError::Level { file: path, unknown });
                    }
                    MemberState::decode(&bytes)
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    missing += 1;
                    Err("missing".to_owned())
                }
                Err(error) => return Err(LoadError::Io(path, error)),
            });
        }
        if missing == FILE_NAMES.len() {
            return Err(LoadError::Missing);
        }
        let path_of = |index: usize| directory.join(FILE_NAMES[index]);
        let second = copies.pop().expect("there are two");
        let first = copies.pop().expect("there are two");
        let ((state, writes), finding) = match (first, second) {
            (Ok(first), Ok(second)) => (if first.1 >= second.1 { first } else { second }, None),
            (Ok(first), Err(what)) => (first, Some((path_of(1), what))),
            (Err(what), Ok(second)) => (second, Some((path_of(0), what))),
            (Err(first), Err(second)) => {
                return Err(LoadError::Damaged {
                    first: format!("{}: {first}", path_of(0).display()),
                    second: format!("{}: {second}", path_of(1).display()),
                });
            }
        };
        Ok((Self { directory: directory.to_owned(), state, writes }, finding))
    }

    /// Writes the state to both copies. On an error neither the old nor the new state may be relied upon.
    pub fn store(&mut self, disk: &dyn Disk) -> Result<(), (PathBuf, io::Error)> {
        self.writes += 1;
        let bytes = self.state.encode(self.writes);
        for name in FILE_NAMES {
            let path = self.directory.join(name);
            replace(disk, &self.directory, &path, &bytes).map_err(|error| (path, error))?;
        }
        Ok(())
    }
}

fn read(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Read)?;
    let length = file.length()?.min(FILE_BYTES_MAX);
    let mut bytes = vec![0; length as usize];
    env::disk::read_exact_at(&*file, &mut bytes, 0)?;
    Ok(bytes)
}

fn replace(disk: &dyn Disk, directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = directory.join(TEMPORARY);
    let file = disk.open(&temporary, OpenMode::CreateOrTruncate)?;
    file.write_at(bytes, 0)?;
    file.sync_data()?;
    disk.rename(&temporary, path)?;
    disk.sync_directory(directory)
}

#[cfg(test)]
mod tests;
