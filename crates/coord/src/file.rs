//! The embedded coordinator's file: one line of JSON, one line with its checksum.

use crate::{Version, Versioned};
use base::{Epoch, GroupId, GroupView, MemberId, MemberStore, Sn, TxId};
use env::{Disk, OpenMode};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};
use thiserror::Error;

pub type Views = BTreeMap<GroupId, Versioned>;

const NAME: &str = "coordinator.json";
const FORMAT: u32 = 1;
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
    #[error("{} has format {found}; this program reads up to {FORMAT}", .file.display())]
    Version { file: PathBuf, found: u32 },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    format: u32,
    groups: BTreeMap<u32, GroupText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupText {
    version: u64,
    epoch: u64,
    active: Option<u32>,
    /// Pairs of member and generation.
    in_sync: Vec<(u32, u64)>,
    exiles: Vec<(u32, u64)>,
    in_sync_min: u32,
    members: Vec<u32>,
    change_id: u64,
    /// Epoch and sn.
    commit_hint: (u64, u64),
}

/// Reads the file; no file is no groups. A write that was cut off leaves the old file in place.
pub fn load(disk: &dyn Disk, directory: &Path) -> Result<Views, OpenError> {
    let path = directory.join(NAME);
    let io = |source| OpenError::Io { file: path.clone(), source };
    disk.create_directory(directory).map_err(io)?;
    if !disk.exists(&path).map_err(io)? {
        return Ok(Views::new());
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
    let text: FileText = serde_json::from_slice(json).map_err(|error| damaged(error.to_string()))?;
    if text.format != FORMAT {
        return Err(OpenError::Version { file: path, found: text.format });
    }
    Ok(text.groups.into_iter().map(|(group, text)| (GroupId(group), text.into())).collect())
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = bytes.strip_suffix(b"\n")?;
    let end = text.iter().position(|byte| *byte == b'\n')?;
    Some((&text[..end], &text[end + 1..]))
}

/// Replaces the file: temporary file, sync, rename, sync of the directory.
pub fn store(disk: &dyn Disk, directory: &Path, views: &Views) -> io::Result<()> {
    let text = FileText {
        format: FORMAT,
        groups: views.iter().map(|(group, versioned)| (group.0, versioned.into())).collect(),
    };
    let mut bytes = serde_json::to_vec(&text)?;
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(format!("\ncrc32c {checksum:08x}\n").as_bytes());
    let temporary = directory.join(format!("{NAME}.tmp"));
    let file = disk.open(&temporary, OpenMode::CreateOrTruncate)?;
    file.write_at(&bytes, 0)?;
    file.sync_data()?;
    disk.rename(&temporary, &directory.join(NAME))?;
    disk.sync_directory(directory)
}

fn pairs(stores: &[MemberStore]) -> Vec<(u32, u64)> {
    stores.iter().map(|store| (store.member.0, store.generation)).collect()
}

fn stores(pairs: Vec<(u32, u64)>) -> Vec<MemberStore> {
    pairs
        .into_iter()
        .map(|(member, generation)| MemberStore { member: MemberId(member), generation })
        .collect()
}

impl From<&Versioned> for GroupText {
    fn from(Versioned { version, view }: &Versioned) -> Self {
        Self {
            version: version.0,
            epoch: view.epoch.0,
            active: view.active.map(|member| member.0),
            in_sync: pairs(&view.in_sync),
            exiles: pairs(&view.exiles),
            in_sync_min: view.in_sync_min,
            members: view.members.iter().map(|member| member.0).collect(),
            change_id: view.change_id,
            commit_hint: (view.commit_hint.epoch.0, view.commit_hint.sn.0),
        }
    }
}

impl From<GroupText> for Versioned {
    fn from(text: GroupText) -> Self {
        Self {
            version: Version(text.version),
            view: GroupView {
                epoch: Epoch(text.epoch),
                active: text.active.map(MemberId),
                in_sync: stores(text.in_sync),
                exiles: stores(text.exiles),
                in_sync_min: text.in_sync_min,
                members: text.members.into_iter().map(MemberId).collect(),
                change_id: text.change_id,
                commit_hint: TxId { epoch: Epoch(text.commit_hint.0), sn: Sn(text.commit_hint.1) },
            },
        }
    }
}
