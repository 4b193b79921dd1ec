//! Reads a finished replica and compares it with its checksums.

use crate::{
    checksum::Checksum,
    layout::Place,
    map::{Record, Settled},
    meta_file,
    pool::PoolStore,
    volume::VolumeIndex,
};
use base::{BlockId, ChecksumKind};
use env::{
    Disk, File, OpenMode,
    disk::{is_want, read_exact_at},
};
use std::{io, path::Path, sync::Arc};

/// About so many bytes are read at a time, with their sums.
const PIECE_BYTES: u64 = 512 << 10;

/// Opening a replica costs as much of the rate as so many bytes.
const OPEN_BYTES: u64 = 4 << 10;

/// What a check has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Sound,
    /// The replica is not there any more, or not as it was.
    Changed,
    /// The replica was damaged in both looks, and is still the same. The text says how.
    Damaged(Settled, String),
    /// The block file is gone; the replica was forgotten, if its volume is there.
    Missing,
    /// The check could not be made; the text says why.
    Undecided(String),
    /// The one that asked wants no more.
    Stopped,
}

/// What one look has met.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The bytes from `offset` on are not what they should be.
    Bytes {
        offset: u64,
        what: String,
    },
    /// There is no block file.
    Missing,
    /// The system refuses to read, at `offset` of the block.
    Io {
        offset: u64,
        what: String,
        error: io::Error,
    },
    Stopped,
}

/// Asked before so many bytes are read; `false` ends the look.
pub(crate) type GoOn<'a> = dyn FnMut(u64) -> bool + 'a;

impl PoolStore {
    /// The finished replica of a block on this volume.
    pub(crate) fn settled_on(&self, id: BlockId, volume: VolumeIndex) -> Option<Settled> {
        match self.state.map.read().records.get(&id) {
            Some(Record::Finalized(settled)) if settled.volume == volume => Some(*settled),
            _ => None,
        }
    }

    /// Checks a finished replica on this volume. It is looked at a second time from the place where something was wrong, and
    /// nothing is said of a replica that is another one by then.
    pub(crate) fn check_replica(&self, id: BlockId, volume: VolumeIndex, go_on: &mut GoOn<'_>) -> Found {
        let Some(settled) = self.settled_on(id, volume) else { return Found::Changed };
        let mut from = 0;
        let mut fault = None;
        for _ in 0..2 {
            let is_same = || self.settled_on(id, volume) == Some(settled);
            let looked = self.look(id, settled, from, &mut |bytes| is_same() && go_on(bytes));
            match looked {
                Ok(()) => return Found::Sound,
                Err(_) if !is_same() => return Found::Changed,
                Err(Fault::Stopped) => return Found::Stopped,
                Err(found) => {
                    from = found.offset();
                    fault = Some(found);
                }
            }
        }
        // The two looks have met it.
        fault.map_or(Found::Sound, |fault| self.judge(id, settled, fault))
    }

    /// Whether it is the replica or the volume, or nothing at all, that is broken.
    fn judge(&self, id: BlockId, settled: Settled, fault: Fault) -> Found {
        if let Fault::Io { what, error, .. } = &fault
            && is_want(error)
        {
            return Found::Undecided(format!("{what}: {error}"));
        }
        if !self.volumes.is_there(settled.volume) {
            return Found::Undecided("its volume is not there".into());
        }
        match fault {
            Fault::Bytes { what, .. } => Found::Damaged(settled, what),
            Fault::Io { what, error, .. } => Found::Damaged(settled, format!("{what}: {error}")),
            Fault::Missing => match self.forget_missing(id, settled) {
                true => Found::Missing,
                false => Found::Changed,
            },
            Fault::Stopped => Found::Stopped,
        }
    }

    pub(crate) fn look(
        &self,
        id: BlockId,
        settled: Settled,
        from: u64,
        go_on: &mut GoOn<'_>,
    ) -> Result<(), Fault> {
        let Some(_in_use) = self.volume(settled.volume).enter() else { return Err(Fault::Stopped) };
        let paths = self.paths(settled.volume);
        let block = paths.block(Place::Finalized, id);
        let meta = paths.meta(Place::Finalized, id, settled.generation_stamp);
        look_at_files(self.disk(), &block, &meta, settled.length, from, go_on)
    }
}

/// Reads the first `length` bytes of a block file, from the chunk that holds `from` on, and compares them with the sums of
/// the meta file. Both are read from the medium where the system can do that.
///
/// # Errors
/// The first [`Fault`]: a file is missing, too short or unreadable, or bytes do not match their sum.
pub(crate) fn look_at_files(
    disk: &dyn Disk,
    block: &Path,
    meta: &Path,
    length: u64,
    from: u64,
    go_on: &mut GoOn<'_>,
) -> Result<(), Fault> {
    if !go_on(OPEN_BYTES) {
        return Err(Fault::Stopped);
    }
    let io = |what: &str, offset| {
        let what = what.to_owned();
        move |error| Fault::Io { offset, what, error }
    };
    let bytes = |what: String| Fault::Bytes { offset: 0, what };
    let file = disk.open(block, OpenMode::ReadMedium).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Fault::Missing,
        _ => io("its block file cannot be opened", 0)(error),
    })?;
    let found = file.length().map_err(io("the length of its block file cannot be read", 0))?;
    if found < length {
        return Err(bytes(format!("its block file has {found} bytes, and should have {length}")));
    }
    let sums = disk.open(meta, OpenMode::ReadMedium).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => bytes("its meta file is missing".into()),
        _ => io("its meta file cannot be opened", 0)(error),
    })?;
    let checksum = meta_file::read_header(&*sums).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => bytes(format!("its meta file: {error}")),
        _ => io("its meta file cannot be read", 0)(error),
    })?;
    let chunk = u64::from(checksum.bytes_per_checksum);
    let piece = (PIECE_BYTES / chunk).max(1) * chunk;
    let mut offset = from - from % chunk;
    while offset < length {
        let count = piece.min(length - offset);
        if !go_on(count + checksum.chunk_count(count) * checksum.size() as u64) {
            return Err(Fault::Stopped);
        }
        compare(&*file, &sums, checksum, offset, count)?;
        offset += count;
    }
    Ok(())
}

/// Compares `count` bytes from `offset` on, where a chunk begins.
fn compare(
    file: &dyn File,
    meta: &Arc<dyn File>,
    checksum: Checksum,
    offset: u64,
    count: u64,
) -> Result<(), Fault> {
    let failed = |name: &str, error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Fault::Bytes { offset, what: format!("its {name} file is too short: {error}") }
        }
        _ => Fault::Io {
            offset,
            what: format!("its {name} file cannot be read from offset {offset} of the block on"),
            error,
        },
    };
    let mut data = vec![0; count as usize];
    read_exact_at(file, &mut data, offset).map_err(|error| failed("block", error))?;
    if checksum.kind == ChecksumKind::Null {
        return Ok(());
    }
    let mut sums = vec![0; checksum.chunk_count(count) as usize * checksum.size()];
    read_exact_at(&**meta, &mut sums, meta_file::sum_offset(checksum, offset))
        .map_err(|error| failed("meta", error))?;
    let chunk = checksum.bytes_per_checksum as usize;
    let mut pairs = data.chunks(chunk).zip(sums.chunks(checksum.size()));
    match pairs.position(|(data, sum)| checksum.sum(data) != sum) {
        None => Ok(()),
        Some(at) => {
            let offset = offset + (at * chunk) as u64;
            let what = format!("the chunk at offset {offset} does not match its checksum");
            Err(Fault::Bytes { offset, what })
        }
    }
}

impl Fault {
    fn offset(&self) -> u64 {
        match self {
            Self::Bytes { offset, .. } | Self::Io { offset, .. } => *offset,
            Self::Missing | Self::Stopped => 0,
        }
    }
}
