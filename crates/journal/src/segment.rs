//! The segment that is written to, and how one follows another.

use crate::{
    block::{self, Footer, SegmentHeader},
    flow::Shared,
    record::{BLOCK_BYTES, batch_bytes, encode_batch},
    settings::BULK_BYTES,
};
use base::{Entry, Epoch, GroupId, LogPoint, Sn};
use env::{Disk, File, OpenMode, pulse};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A segment of the reserve: some hundred entries.
const SHORT_BYTES: u64 = 1 << 20;

/// The next segment, being prepared or ready.
pub(crate) const SPARE: &str = "spare";

pub(crate) struct OpenSegment {
    pub file: Arc<dyn File>,
    pub path: PathBuf,
    epoch: Epoch,
    start: Sn,
    /// The offset of the next batch; a multiple of 4096.
    position: u64,
    allocated: u64,
    count: u64,
    last: LogPoint,
}

/// The first values of the segment to come.
pub(crate) struct Next {
    pub epoch: Epoch,
    /// The entry before its first one.
    pub previous: LogPoint,
    /// Size of the batch that has to fit at least.
    pub batch_bytes: u64,
}

impl OpenSegment {
    /// The number of its first entry.
    pub fn start(&self) -> Sn {
        self.start
    }

    /// Takes the place for a batch, if there is room for it and a footer after it.
    pub fn reserve(&mut self, bytes: u64) -> Option<u64> {
        if self.position + bytes + BLOCK_BYTES > self.allocated {
            return None;
        }
        let offset = self.position;
        self.position += bytes;
        Some(offset)
    }

    /// Entries have been given the place just taken.
    pub fn wrote(&mut self, last: LogPoint, count: u64) {
        self.last = last;
        self.count += count;
    }
}

/// Writes the footer of the old segment and begins the next. An error names the file.
pub(crate) fn roll(
    shared: &Shared,
    old: Option<OpenSegment>,
    next: &Next,
) -> Result<OpenSegment, (PathBuf, io::Error)> {
    let disk = &*shared.env.disk;
    let log = shared.log_directory();
    // Nobody may put another file under the spare's name between its taking and its renaming.
    let _spare = pulse::lock(&shared.spare);
    let start = Sn(next.previous.id.sn.0 + 1);
    let path = log.join(block::file_name(next.epoch, start, true));
    let spare = log.join(SPARE);

    // The new file first: when there is no room for it, the old one stays as it is.
    let new = (|| {
        let needed = next.batch_bytes + 2 * BLOCK_BYTES;
        let (file, allocated) = take_spare(disk, &spare, needed, shared)?;
        let header = SegmentHeader {
            version: block::VERSION,
            group: shared.group,
            epoch: next.epoch,
            previous: next.previous,
            store_uuid: shared.store_uuid,
            allocated,
        };
        file.write_at(&header.encode(), 0)?;
        file.sync_data()?;
        Ok((file, allocated))
    })();
    let (file, allocated) = new.map_err(|error| (path.clone(), error))?;
    // A batch that grew while its segment was made may not fit into it: the segment is made anew. Sealed, the
    // empty one would pass for the whole of what the other, of the same name, is going to hold.
    let (empty, old) = match old {
        Some(old) if old.count == 0 => (Some(old), None),
        old => (None, old),
    };
    if let Some(old) = old {
        let sealed = log.join(block::file_name(old.epoch, old.start, false));
        (|| {
            let footer = Footer {
                version: block::VERSION,
                group: shared.group,
                end: old.last,
                count: old.count,
                offset: old.position,
            };
            old.file.write_at(&footer.encode(), old.position)?;
            old.file.sync_data()?;
            // Only tidy: a sealed segment ends with its footer, whatever is behind it.
            old.file.set_length(old.position + BLOCK_BYTES)?;
            disk.rename(&old.path, &sealed)
        })()
        .map_err(|error| (old.path.clone(), error))?;
    }
    // One sync makes both names durable.
    disk.rename(&spare, &path)
        .and_then(|()| match &empty {
            Some(empty) if empty.path != path => disk.remove_file(&empty.path),
            _ => Ok(()),
        })
        .and_then(|()| disk.sync_directory(&log))
        .map_err(|error| (path.clone(), error))?;
    shared.index.lock().begin(next.epoch, start);
    Ok(OpenSegment {
        file,
        path,
        epoch: next.epoch,
        start,
        position: BLOCK_BYTES,
        allocated,
        count: 0,
        last: next.previous,
    })
}

fn take_spare(
    disk: &dyn Disk,
    spare: &Path,
    needed: u64,
    shared: &Shared,
) -> io::Result<(Arc<dyn File>, u64)> {
    let usual = shared.settings.segment_bytes;
    if needed <= usual && disk.exists(spare)? {
        let file = disk.open(spare, OpenMode::ReadWrite)?;
        // A shorter one is still being prepared, or the preparation was cut off.
        if file.length()? == usual {
            return Ok((file, usual));
        }
    }
    let needed = needed.next_multiple_of(BLOCK_BYTES);
    let mut allocated = usual.max(needed);
    if check_room(disk, spare, allocated, shared.settings.reserve_bytes).is_err() {
        // The disk is nearly full: a short one, out of the reserve, so that what is under way need not fail.
        allocated = usual.min(SHORT_BYTES).max(needed);
        check_room(disk, spare, allocated, 0)?;
    }
    let file = disk.open(spare, OpenMode::CreateOrTruncate)?;
    file.allocate(allocated)?;
    Ok((file, allocated))
}

/// Makes the spare segment: written with zeros, so that later writes change no metadata (a flush was 257 µs at
/// the median on such a file, 356 µs on one that was only allocated; ext4 on a virtual disk).
///
/// # Errors
/// `StorageFull` if the segment would take of the room that is kept free; or the file cannot be made, written or
/// renamed.
pub(crate) fn prepare(shared: &Shared) -> io::Result<()> {
    let disk = &*shared.env.disk;
    let log = &shared.log_directory();
    let (bytes, reserve_bytes) = (shared.settings.segment_bytes, shared.settings.reserve_bytes);
    let spare = log.join(SPARE);
    if disk.exists(&spare)? {
        return Ok(());
    }
    check_room(disk, log, bytes, reserve_bytes)?;
    let preparing = log.join("spare.tmp");
    let file = disk.open(&preparing, OpenMode::CreateOrTruncate)?;
    file.allocate(bytes)?;
    let zeros = vec![0; BULK_BYTES.min(bytes as usize)];
    let mut at = 0;
    while at < bytes {
        let now = (zeros.len() as u64).min(bytes - at);
        file.write_at(&zeros[..now as usize], at)?;
        file.sync_data()?;
        at += now;
    }
    let _spare = pulse::lock(&shared.spare);
    // A segment that could not wait is under that name now and then, but never outside of the lock.
    if disk.exists(&spare)? { disk.remove_file(&preparing) } else { disk.rename(&preparing, &spare) }
}

/// The content of a segment that is written whole.
pub(crate) struct SegmentContent<'a> {
    pub group: GroupId,
    pub store_uuid: [u8; 16],
    /// The epoch of the first entry.
    pub epoch: Epoch,
    pub previous: LogPoint,
    /// The entries of the batch, at least one. They follow `previous` and each other.
    pub entries: &'a [Entry],
}

/// Bytes of entries in a batch of a segment that is written whole.
const WHOLE_BATCH_BYTES: usize = 1 << 20;

/// Writes a sealed segment and syncs it; to be renamed then.
pub(crate) fn write_sealed(
    disk: &dyn Disk,
    path: &Path,
    content: &SegmentContent<'_>,
    reserve_bytes: u64,
) -> io::Result<()> {
    let SegmentContent { group, store_uuid, epoch, previous, entries } = *content;
    let mut batches: Vec<&[Entry]> = Vec::new();
    let mut rest = entries;
    while !rest.is_empty() {
        let mut bytes = 0;
        let count = rest
            .iter()
            .take_while(|entry| {
                let is_first = bytes == 0;
                bytes += entry.payload.len() + 1;
                is_first || bytes <= WHOLE_BATCH_BYTES
            })
            .count();
        let (batch, later) = rest.split_at(count);
        batches.push(batch);
        rest = later;
    }
    let bytes: u64 = batches.iter().map(|batch| batch_bytes(*batch)).sum();
    let allocated = bytes + 2 * BLOCK_BYTES;
    check_room(disk, path, allocated, reserve_bytes)?;
    let file = disk.open(path, OpenMode::CreateOrTruncate)?;
    let version = block::VERSION;
    let header = SegmentHeader { version, group, epoch, previous, store_uuid, allocated };
    file.write_at(&header.encode(), 0)?;
    let mut position = BLOCK_BYTES;
    let mut before = previous.id.sn;
    for batch in batches {
        let bytes = encode_batch(batch, group, before);
        file.write_at(&bytes, position)?;
        // In pieces, as everything beside the log: a batch's sync shall not wait for all of it.
        file.sync_data()?;
        position += bytes.len() as u64;
        before = batch.last().expect("no batch is empty").id.sn;
    }
    let end = entries.last().expect("there are entries").point();
    let footer = Footer { version, group, end, count: entries.len() as u64, offset: position };
    file.write_at(&footer.encode(), position)?;
    file.sync_data()
}

/// # Errors
/// `StorageFull` if fewer than `reserve_bytes` would be left; or the disk does not say how much is free.
pub(crate) fn check_room(disk: &dyn Disk, path: &Path, bytes: u64, reserve_bytes: u64) -> io::Result<()> {
    let directory = if disk.is_directory(path)? { path } else { path.parent().unwrap_or(path) };
    let free = disk.space(directory)?.free_bytes;
    if free < bytes + reserve_bytes {
        return Err(io::Error::new(
            io::ErrorKind::StorageFull,
            format!("a segment of {bytes} bytes would leave less than {reserve_bytes} of {free} free bytes"),
        ));
    }
    Ok(())
}
