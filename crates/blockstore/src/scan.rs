//! Finds the replicas in a pool's directories when a store starts.
//!
//! A finalized replica is believed if its meta file is there and long enough. Those in `rbw` were being written when
//! the server ended: each is cut back to what its sums vouch for and waits for recovery. `tmp` is emptied. One
//! accident is put right: a crash between the two renames of a finalize or of an append, or one that loses either of
//! them, leaves one file in `rbw` and the other with the finalized ones.

use crate::{
    layout::{FileName, Place, PoolPaths, SUBDIRECTORY_COUNT, parse_name},
    map::{Record, Settled},
    meta_file::{self, HEADER_SIZE},
    volume::VolumeIndex,
};
use base::{Block, BlockId, GenerationStamp};
use env::{Disk, OpenMode};
use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
};

/// Threads that read directories of one volume: enough to keep a disk's queue filled, by eye.
const SCAN_THREAD_COUNT: u64 = 4;

#[derive(Default)]
pub(crate) struct Scanned {
    pub records: Vec<(BlockId, Record)>,
    pub used_bytes: u64,
}

/// The replica files of one directory.
#[derive(Default)]
struct Listing {
    blocks: Vec<BlockId>,
    /// The newest meta file of each block.
    metas: HashMap<BlockId, GenerationStamp>,
}

pub(crate) fn scan_pool(disk: &dyn Disk, volume: VolumeIndex, paths: &PoolPaths) -> io::Result<Scanned> {
    empty(disk, &paths.place(Place::Temporary))?;
    // Before the finalized ones are listed: a replica whose move was interrupted joins them.
    let mut scanned = scan_rbw(disk, volume, paths)?;
    let parts: Vec<io::Result<Scanned>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..SCAN_THREAD_COUNT)
            .map(|part| scope.spawn(move || scan_finalized(disk, volume, paths, part)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("scanning does not panic")).collect()
    });
    for part in parts {
        let part = part?;
        scanned.records.extend(part.records);
        scanned.used_bytes += part.used_bytes;
    }
    Ok(scanned)
}

/// Removes the copies that were under way. The metadata server orders them again.
fn empty(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    for name in disk.list(directory)? {
        if parse_name(&name).is_some() {
            disk.remove_file(&directory.join(name))?;
        }
    }
    Ok(())
}

fn list(disk: &dyn Disk, directory: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for name in disk.list(directory)? {
        match parse_name(&name) {
            Some(FileName::Block(id)) => listing.blocks.push(id),
            Some(FileName::Meta(meta)) => {
                let newest = listing.metas.entry(meta.id).or_default();
                *newest = meta.generation_stamp.max(*newest);
            }
            None => {}
        }
    }
    Ok(listing)
}

/// Every fourth `subdirX`.
fn scan_finalized(disk: &dyn Disk, volume: VolumeIndex, paths: &PoolPaths, part: u64) -> io::Result<Scanned> {
    let mut scanned = Scanned::default();
    for first in (0..SUBDIRECTORY_COUNT).filter(|first| first % SCAN_THREAD_COUNT == part) {
        let outer = paths.finalized().join(format!("subdir{first}"));
        if !disk.is_directory(&outer)? {
            continue;
        }
        for name in disk.list(&outer)?.iter().filter(|name| name.starts_with("subdir")) {
            let directory = outer.join(name);
            let listing = list(disk, &directory)?;
            for id in listing.blocks {
                // A file in the wrong directory would not be found again by its id.
                if directory == paths.directory(Place::Finalized, id) {
                    let stamp = listing.metas.get(&id).copied();
                    let (settled, bytes) = look_at_finalized(disk, volume, paths, id, stamp)?;
                    scanned.records.push((id, Record::Finalized(settled)));
                    scanned.used_bytes += bytes;
                } else {
                    tracing::warn!(block = %id, directory = %directory.display(), "a block file in the wrong directory is ignored");
                }
            }
        }
    }
    Ok(scanned)
}

fn look_at_finalized(
    disk: &dyn Disk,
    volume: VolumeIndex,
    paths: &PoolPaths,
    id: BlockId,
    stamp: Option<GenerationStamp>,
) -> io::Result<(Settled, u64)> {
    let mut length = disk.length(&paths.block(Place::Finalized, id))?;
    let Some(generation_stamp) = stamp else {
        tracing::error!(block = %id, "the meta file is missing: the replica will be reported at stamp 0, as corrupt");
        return Ok((Settled { volume, generation_stamp: GenerationStamp(0), length, turn: 0 }, length));
    };
    let meta_path = paths.meta(Place::Finalized, id, generation_stamp);
    let meta_length = disk.length(&meta_path)?;
    let used = length + meta_length;
    // Nearly every replica has HDFS's default chunks; the header is read only when the size does not fit that.
    if meta_length != meta_file::length_for(crate::checksum::Checksum::DEFAULT, length) {
        let covered = match covered_by_meta(disk, &meta_path, length, meta_length) {
            Ok(covered) => covered,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => 0,
            Err(error) => return Err(error),
        };
        if covered < length {
            tracing::error!(block = %id, length, covered, "the meta file is too short or not one: the replica is reported as short as its sums");
            length = covered;
        }
    }
    Ok((Settled { volume, generation_stamp, length, turn: 0 }, used))
}

fn covered_by_meta(disk: &dyn Disk, meta_path: &Path, length: u64, meta_length: u64) -> io::Result<u64> {
    if meta_length < HEADER_SIZE {
        return Ok(0);
    }
    let checksum = meta_file::read_header(&*disk.open(meta_path, OpenMode::Read)?)?;
    Ok(meta_file::covered_length(checksum, length, meta_length))
}

fn scan_rbw(disk: &dyn Disk, volume: VolumeIndex, paths: &PoolPaths) -> io::Result<Scanned> {
    let mut scanned = Scanned::default();
    let listing = list(disk, &paths.place(Place::BeingWritten))?;
    let metas_alone = listing.metas.iter().filter(|(id, _)| !listing.blocks.contains(id));
    let mut found = Vec::new();
    for (id, stamp) in metas_alone {
        let split = Split { block: Place::Finalized, meta: Place::BeingWritten, id: *id, stamp: *stamp };
        // Without a block file a meta file is nothing; one with a meta file of its own is complete.
        let home = list_home(disk, paths, *id)?;
        let is_split = home.blocks.contains(id) && !home.metas.contains_key(id);
        if is_split && !bring_together(disk, paths, split)? {
            found.push((*id, Some(*stamp)));
        }
    }
    for id in &listing.blocks {
        let mut stamp = listing.metas.get(id).copied();
        if stamp.is_none() {
            let home = list_home(disk, paths, *id)?;
            stamp = home.metas.get(id).copied().filter(|_| !home.blocks.contains(id));
            if let Some(stamp) = stamp
                && let split = (Split { block: Place::BeingWritten, meta: Place::Finalized, id: *id, stamp })
                && bring_together(disk, paths, split)?
            {
                continue;
            }
        }
        found.push((*id, stamp));
    }
    for (id, stamp) in found {
        let (settled, bytes) = look_at_interrupted(disk, volume, paths, id, stamp)?;
        scanned.records.push((id, Record::Waiting(settled)));
        scanned.used_bytes += bytes;
    }
    Ok(scanned)
}

fn list_home(disk: &dyn Disk, paths: &PoolPaths, id: BlockId) -> io::Result<Listing> {
    let home = paths.directory(Place::Finalized, id);
    match disk.is_directory(&home)? {
        true => list(disk, &home),
        false => Ok(Listing::default()),
    }
}

/// A replica one of whose files was moved and the other not.
#[derive(Clone, Copy)]
struct Split {
    block: Place,
    meta: Place,
    id: BlockId,
    stamp: GenerationStamp,
}

/// If the meta file vouches for every byte, the replica is complete and both files go with the finalized ones
/// (`true`); otherwise both go to `rbw`.
fn bring_together(disk: &dyn Disk, paths: &PoolPaths, split: Split) -> io::Result<bool> {
    let Split { id, stamp, .. } = split;
    let block_path = paths.block(split.block, id);
    let meta_path = paths.meta(split.meta, id, stamp);
    let block = disk.open(&block_path, OpenMode::Read)?;
    let meta = disk.open(&meta_path, OpenMode::Read)?;
    let length = block.length()?;
    let is_whole = match (meta_file::read_header(&*meta), meta_file::verified_length(&*block, &*meta)) {
        (Ok(checksum), Ok(verified)) => {
            verified == length && meta.length()? == meta_file::length_for(checksum, length)
        }
        _ => false,
    };
    let place = if is_whole { Place::Finalized } else { Place::BeingWritten };
    if split.block != place {
        disk.rename(&block_path, &paths.block(place, id))?;
    }
    if split.meta != place {
        disk.rename(&meta_path, &paths.meta(place, id, stamp))?;
    }
    tracing::info!(block = %id, is_whole, "the two files of an interrupted move are together again");
    Ok(is_whole)
}

fn look_at_interrupted(
    disk: &dyn Disk,
    volume: VolumeIndex,
    paths: &PoolPaths,
    id: BlockId,
    stamp: Option<GenerationStamp>,
) -> io::Result<(Settled, u64)> {
    let block_path: PathBuf = paths.block(Place::BeingWritten, id);
    let Some(generation_stamp) = stamp else {
        // Nothing vouches for a byte of it.
        let settled = Settled { volume, generation_stamp: GenerationStamp(0), length: 0, turn: 0 };
        return Ok((settled, disk.length(&block_path)?));
    };
    let meta_path = paths.meta(Place::BeingWritten, id, generation_stamp);
    let block = disk.open(&block_path, OpenMode::ReadWrite)?;
    let meta = disk.open(&meta_path, OpenMode::ReadWrite)?;
    let length = match meta_file::verified_length(&*block, &*meta) {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => 0,
        Err(error) => return Err(error),
    };
    let settled = Settled { volume, generation_stamp, length, turn: 0 };
    let found = block.length()?;
    if length < found {
        let replica = Block { id, generation_stamp, length };
        tracing::warn!(block = %replica, found, verified = length, "an interrupted replica is cut back to what its sums vouch for");
        block.set_length(length)?;
    }
    if let Ok(checksum) = meta_file::read_header(&*meta) {
        let wanted = meta_file::length_for(checksum, length);
        if wanted < meta.length()? {
            meta.set_length(wanted)?;
        }
    }
    Ok((settled, length + meta.length()?))
}
