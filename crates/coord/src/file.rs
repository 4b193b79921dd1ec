//! The embedded coordinator's file: one line of JSON, one line with its checksum.

use crate::{
    MemberRecord, Version, Versioned,
    text::{GroupText, MemberText, NoView},
};
use base::{GroupId, Level, MemberId, UnknownLevel};
use env::{Disk, OpenMode};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};
use thiserror::Error;

/// All that the embedded coordinator keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub views: BTreeMap<GroupId, Versioned>,
    pub members: BTreeMap<(GroupId, MemberId), MemberRecord>,
    pub cluster: Option<String>,
}

const NAME: &str = "coordinator.json";
/// 2 added the members' records and the text of the cluster.
const FORMAT: u32 = 2;
/// A view in it names the level of its group. Releases that know of no levels refuse it.
const FORMAT_WITH_LEVEL: u32 = 3;
/// Far above what hundreds of groups need; read before anything is believed.
const FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(Debug, Error)]
pub enum OpenError {
    /// Look at the disk.
    #[error("cannot read or write {}", .file.display())]
    Io { file: PathBuf, source: io::Error },
    /// Restore the file from a copy that is not older than the journal beside it.
    #[error("{} is damaged: {what}. Restore it from a copy", .file.display())]
    Damaged { file: PathBuf, what: String },
    /// Use a newer program.
    #[error("{} has format {found}; this program reads up to {FORMAT_WITH_LEVEL}. Start the release that wrote it, or a later one", .file.display())]
    Version { file: PathBuf, found: u32 },
    /// Use a newer program.
    #[error("{}: {level}", .file.display())]
    Level { file: PathBuf, level: UnknownLevel },
    /// Change the configuration.
    #[error("{what}")]
    Settings { what: String },
    /// The machine has no room for another thread.
    #[error("threads could not be started")]
    Threads { source: io::Error },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    format: u32,
    groups: BTreeMap<u32, Held>,
    #[serde(default)]
    members: BTreeMap<u32, Vec<MemberText>>,
    #[serde(default)]
    cluster: Option<String>,
}

#[derive(Deserialize)]
struct OnlyFormat {
    format: u32,
}

/// A view with the version that ZooKeeper would keep beside it.
#[derive(Serialize, Deserialize)]
struct Held {
    version: u64,
    #[serde(flatten)]
    view: GroupText,
}

/// Reads the file; no file is no groups. A write that was cut off leaves the old file in place.
///
/// # Errors
/// [`OpenError::Io`] if the directory cannot be created or the file not be read; [`OpenError::Damaged`] if the file is
/// too long, its checksum or its text is wrong, or a view in it breaks a rule; [`OpenError::Version`] or
/// [`OpenError::Level`] if a later release has written it.
pub fn load(disk: &dyn Disk, directory: &Path) -> Result<Kept, OpenError> {
    let path = directory.join(NAME);
    let io = |source| OpenError::Io { file: path.clone(), source };
    disk.create_directory(directory).map_err(io)?;
    if !disk.exists(&path).map_err(io)? {
        return Ok(Kept::default());
    }
    let file = disk.open(&path, OpenMode::Read).map_err(io)?;
    let length = file.length().map_err(io)?;
    let damaged = |what: String| OpenError::Damaged { file: path.clone(), what };
    if length > FILE_BYTES_MAX {
        return Err(damaged(format!("{length} bytes are over the limit of {FILE_BYTES_MAX}")));
    }
    let mut bytes = vec![0; length as usize];
    env::disk::read_exact_at(&*file, &mut bytes, 0).map_err(io)?;
    let (json, checksum) = split(&bytes).ok_or_else(|| damaged("the checksum line is missing".into()))?;
    let found = crc32c::crc32c(json);
    if checksum != format!("crc32c {found:08x}").as_bytes() {
        return Err(damaged(format!("the checksum of its first line is {found:08x}, another is written")));
    }
    decode(json).map_err(|undecodable| match undecodable {
        Undecodable::Damaged(what) => damaged(what),
        Undecodable::Version(found) => OpenError::Version { file: path.clone(), found },
        Undecodable::Level(level) => OpenError::Level { file: path.clone(), level },
    })
}

/// Why the first line could not be read.
#[derive(Debug)]
pub enum Undecodable {
    Damaged(String),
    Version(u32),
    Level(UnknownLevel),
}

/// Reads the first line, whose checksum was right.
///
/// # Errors
/// [`Undecodable::Damaged`] if the line is not JSON of this format, or a view in it breaks a rule;
/// [`Undecodable::Version`] or [`Undecodable::Level`] if a later release has written it.
pub fn decode(json: &[u8]) -> Result<Kept, Undecodable> {
    let damaged = |error: serde_json::Error| Undecodable::Damaged(error.to_string());
    let OnlyFormat { format } = serde_json::from_slice(json).map_err(damaged)?;
    if !(1..=FORMAT_WITH_LEVEL).contains(&format) {
        return Err(Undecodable::Version(format));
    }
    let text: FileText = serde_json::from_slice(json).map_err(damaged)?;
    let mut kept = Kept { cluster: text.cluster, ..Kept::default() };
    for (group, Held { version, view }) in text.groups {
        let view = view.into_view().map_err(|error| match error {
            NoView::Level(level) => Undecodable::Level(level),
            NoView::Broken(what) => Undecodable::Damaged(format!("group {group}: {what}")),
        })?;
        kept.views.insert(GroupId(group), Versioned { version: Version(version), view });
    }
    for (group, members) in text.members {
        for record in members.into_iter().map(MemberRecord::from) {
            kept.members.insert((GroupId(group), record.life.store.member), record);
        }
    }
    Ok(kept)
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = bytes.strip_suffix(b"\n")?;
    let end = text.iter().position(|byte| *byte == b'\n')?;
    Some((&text[..end], &text[end + 1..]))
}

/// The first line.
pub fn encode(kept: &Kept) -> Vec<u8> {
    let has_level = kept.views.values().any(|known| known.view.level > Level::FIRST);
    let mut text = FileText {
        format: if has_level { FORMAT_WITH_LEVEL } else { FORMAT },
        groups: BTreeMap::new(),
        members: BTreeMap::new(),
        cluster: kept.cluster.clone(),
    };
    for (group, Versioned { version, view }) in &kept.views {
        text.groups.insert(group.0, Held { version: version.0, view: view.into() });
    }
    for ((group, _), record) in &kept.members {
        text.members.entry(group.0).or_default().push(record.into());
    }
    serde_json::to_vec(&text).expect("numbers and strings are JSON")
}

/// Replaces the file: temporary file, sync, rename, sync of the directory.
///
/// # Errors
/// The temporary file cannot be written or synced, or the rename or the sync of the directory fails. After a failed
/// sync of the directory either the old or the new file may be found.
pub fn store(disk: &dyn Disk, directory: &Path, kept: &Kept) -> io::Result<()> {
    let mut bytes = encode(kept);
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(format!("\ncrc32c {checksum:08x}\n").as_bytes());
    let temporary = directory.join(format!("{NAME}.tmp"));
    let file = disk.open(&temporary, OpenMode::CreateOrTruncate)?;
    file.write_at(&bytes, 0)?;
    file.sync_data()?;
    disk.rename(&temporary, &directory.join(NAME))?;
    disk.sync_directory(directory)
}
