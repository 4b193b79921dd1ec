//! The two files of one replica: what they say, and whether they agree.

use super::{Depth, GoOn};
use crate::{
    checksum::Checksum,
    layout::{FileName, Place, block_name, meta_name, parse_name},
    meta_file::{self, HEADER_SIZE},
    scanner::check::{Fault, look_at_files},
};
use base::{BlockId, ChecksumKind, GenerationStamp};
use env::{Disk, FileKind, OpenMode};
use std::{
    io,
    path::{Path, PathBuf},
};

/// A replica as it is on the disk.
#[derive(Clone, Debug)]
pub struct ReplicaSurvey {
    pub id: BlockId,
    /// Where it lies, by the names of the directories above it; `None` for files that somebody has copied elsewhere.
    pub place: Option<Place>,
    /// The stamp in the name of the meta file; `None` without one.
    pub generation_stamp: Option<GenerationStamp>,
    /// The path at which the block file is, or should be.
    pub block: PathBuf,
    /// Bytes of the block file; `None` without one.
    pub length: Option<u64>,
    pub meta: Option<PathBuf>,
    pub meta_length: Option<u64>,
    /// `None` if the meta file is missing, or has no header that can be read.
    pub checksum: Option<Checksum>,
    /// Chunks that were read and match their sums, from the start of the block on, up to the first that does not.
    pub matching_chunk_count: u64,
    /// Bytes of the block file that the meta file vouches for. Fewer than `length` are normal for a replica that was being written.
    pub vouched_length: u64,
    /// The faults of the two files. If bytes do not match their checksums, the first such chunk is named with its offset.
    pub damage: Vec<Damage>,
    /// Meta files of other stamps beside it: left from an interrupted recovery.
    pub other_metas: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where in the block file, if it is a place in it.
    pub offset: Option<u64>,
    pub what: String,
}

impl ReplicaSurvey {
    /// Chunks of the block file, the last of which may be short; `None` if the meta file does not say how long they are.
    pub fn chunk_count(&self) -> Option<u64> {
        Some(self.checksum?.chunk_count(self.length?))
    }

    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }

    fn damaged(&mut self, offset: Option<u64>, what: impl Into<String>) {
        self.damage.push(Damage { offset, what: what.into() });
    }
}

/// The files of one block in one directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    pub has_block: bool,
    /// The stamps of its meta files.
    pub stamps: Vec<GenerationStamp>,
}

/// Looks at the replica that a block file or a meta file is one half of. Every byte is read and compared.
///
/// # Errors
/// `InvalidInput` if the path has not the name of a block file or a meta file, or if it is a symbolic link, a directory or
/// something else that is no file; `NotFound` if there is nothing; or the directory cannot be listed. Damage is no error.
pub fn survey_replica(disk: &dyn Disk, path: &Path, go_on: &mut GoOn<'_>) -> io::Result<ReplicaSurvey> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what);
    let name = path.file_name().and_then(|name| parse_name(name.to_str()?));
    let Some(name) = name else {
        return Err(invalid("the name is neither a block file's nor a meta file's"));
    };
    match disk.kind(path)? {
        Some(FileKind::File) => {}
        Some(other) => {
            return Err(invalid(&format!("it has the name of a replica's file, and is {}", a_kind(other))));
        }
        None => return Err(io::ErrorKind::NotFound.into()),
    }
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut files = Files::default();
    for other in disk.list(directory)?.iter().filter_map(|name| parse_name(name)) {
        match other {
            FileName::Block(id) if id == name.id() => files.has_block = true,
            FileName::Meta(meta) if meta.id == name.id() => files.stamps.push(meta.generation_stamp),
            _ => {}
        }
    }
    // The meta file that was asked for is looked at, even if there is a newer one.
    let wanted = match name {
        FileName::Meta(meta) => Some(meta.generation_stamp),
        FileName::Block(_) => files.stamps.iter().max().copied(),
    };
    Ok(look(
        disk,
        Spot { directory, place: place_of(directory), id: name.id() },
        wanted,
        &files,
        Depth::Bytes,
        go_on,
    ))
}

/// Where a replica's files are.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'a> {
    pub directory: &'a Path,
    pub place: Option<Place>,
    pub id: BlockId,
}

/// Looks at a replica whose names are known. `stamp` is that of the meta file to look at.
pub(crate) fn look(
    disk: &dyn Disk,
    spot: Spot<'_>,
    stamp: Option<GenerationStamp>,
    files: &Files,
    depth: Depth,
    go_on: &mut GoOn<'_>,
) -> ReplicaSurvey {
    let Spot { directory, place, id } = spot;
    let meta_path = |stamp: GenerationStamp| directory.join(meta_name(id, stamp));
    let mut found = ReplicaSurvey {
        id,
        place,
        generation_stamp: stamp,
        block: directory.join(block_name(id)),
        length: None,
        meta: stamp.map(meta_path),
        meta_length: None,
        checksum: None,
        matching_chunk_count: 0,
        vouched_length: 0,
        damage: Vec::new(),
        other_metas: files
            .stamps
            .iter()
            .filter(|other| Some(**other) != stamp)
            .map(|other| meta_path(*other))
            .collect(),
    };
    match files.has_block {
        true => found.length = length(disk, &found.block.clone(), "its block file", &mut found),
        false => found.damaged(None, "there is no block file beside its meta file"),
    }
    match found.meta.clone() {
        Some(meta) => found.meta_length = length(disk, &meta, "its meta file", &mut found),
        None => found.damaged(None, "there is no meta file beside its block file"),
    }
    if let (Some(meta), Some(meta_length)) = (found.meta.clone(), found.meta_length)
        && let Some(checksum) = header(disk, &meta, meta_length, &mut found, depth)
    {
        found.checksum = Some(checksum);
        if let Some(length) = found.length {
            compare(disk, &meta, Sizes { checksum, length, meta_length }, &mut found, depth, go_on);
        }
    }
    found
}

/// The length of a file that must be one.
fn length(disk: &dyn Disk, path: &Path, name: &str, found: &mut ReplicaSurvey) -> Option<u64> {
    let length = match disk.kind(path) {
        Ok(Some(FileKind::File)) => disk.length(path),
        Ok(Some(other)) => {
            found.damaged(None, format!("{name} is {}", a_kind(other)));
            return None;
        }
        Ok(None) => Err(io::ErrorKind::NotFound.into()),
        Err(error) => Err(error),
    };
    length.map_err(|error| found.damaged(None, format!("the length of {name} cannot be read: {error}"))).ok()
}

/// The header of the meta file. Where only names are looked at, nearly every file has the length that HDFS's default
/// checksums give, and is not opened, as at a server's start.
fn header(
    disk: &dyn Disk,
    path: &Path,
    meta_length: u64,
    found: &mut ReplicaSurvey,
    depth: Depth,
) -> Option<Checksum> {
    let usual = found.length.map(|length| meta_file::length_for(Checksum::DEFAULT, length));
    if depth == Depth::Names && usual == Some(meta_length) {
        return Some(Checksum::DEFAULT);
    }
    if meta_length < HEADER_SIZE {
        found.damaged(
            None,
            format!("its meta file has {meta_length} bytes, fewer than the {HEADER_SIZE} of its header"),
        );
        return None;
    }
    let header = disk.open(path, OpenMode::Read).and_then(|file| meta_file::read_header(&*file));
    header.map_err(|error| found.damaged(None, format!("its meta file: {error}"))).ok()
}

#[derive(Clone, Copy)]
struct Sizes {
    checksum: Checksum,
    length: u64,
    meta_length: u64,
}

/// Whether the two lengths belong together, and whether the bytes are those that were summed.
fn compare(
    disk: &dyn Disk,
    meta: &Path,
    sizes: Sizes,
    found: &mut ReplicaSurvey,
    depth: Depth,
    go_on: &mut GoOn<'_>,
) {
    let Sizes { checksum, length, meta_length } = sizes;
    let covered = meta_file::covered_length(checksum, length, meta_length);
    let is_being_written = matches!(found.place, Some(Place::BeingWritten | Place::Temporary));
    found.vouched_length = covered;
    if is_being_written {
        // Data is written before its sums. A start keeps what the sums vouch for, and so does this look.
        let verified = disk
            .open(&found.block, OpenMode::Read)
            .and_then(|block| meta_file::verified_length(&*block, &*disk.open(meta, OpenMode::Read)?));
        match verified {
            Ok(verified) => found.vouched_length = verified,
            Err(error) => return found.damaged(None, format!("its last chunk cannot be read: {error}")),
        }
    }
    if depth == Depth::Bytes {
        let chunk = u64::from(checksum.bytes_per_checksum);
        let whole = checksum.chunk_count(found.vouched_length);
        match look_at_files(disk, &found.block.clone(), meta, found.vouched_length, 0, go_on) {
            Ok(()) => {
                found.matching_chunk_count = if checksum.kind == ChecksumKind::Null { 0 } else { whole }
            }
            Err(Fault::Bytes { offset, what }) => {
                found.matching_chunk_count = offset / chunk;
                found.damaged(Some(offset), what);
            }
            Err(Fault::Io { offset, what, error }) => {
                found.matching_chunk_count = offset / chunk;
                found.damaged(Some(offset), format!("{what}: {error}"));
            }
            Err(Fault::Missing) => found.damaged(None, "its block file has just gone"),
            Err(Fault::Stopped) => {}
        }
    }
    let wanted = meta_file::length_for(checksum, length);
    if is_being_written || wanted == meta_length {
        return;
    }
    let fits =
        format!("its meta file has {meta_length} bytes, and {wanted} belong to a block file of {length}");
    match wanted > meta_length {
        true => found
            .damaged(Some(covered), format!("{fits}: the bytes from offset {covered} on have no checksum")),
        false => found
            .damaged(None, format!("{fits}: the block file has been cut off, or the meta file is too long")),
    }
}

/// Where a directory is in a data directory, by its name and those above it.
fn place_of(directory: &Path) -> Option<Place> {
    let directory = std::path::absolute(directory).ok()?;
    let mut names = directory.iter().rev().map(|name| name.to_str().unwrap_or_default());
    match (names.next()?, names.next()?, names.next()?) {
        ("rbw", "current", _) => Some(Place::BeingWritten),
        ("tmp", pool, "current") if pool.starts_with(crate::layout::POOL_PREFIX) => Some(Place::Temporary),
        (inner, outer, "finalized") if inner.starts_with("subdir") && outer.starts_with("subdir") => {
            Some(Place::Finalized)
        }
        _ => None,
    }
}

/// A thing that is no file, in words.
pub(crate) fn a_kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "a file",
        FileKind::Directory => "a directory",
        FileKind::SymbolicLink => "a symbolic link",
        FileKind::Special => "a pipe, a socket or a device",
    }
}
