//! The promise, where one small write in place makes it durable.
//!
//! A takeover waits for the promise of every member in sync, one after the other with its first entry. The member's
//! state is written twice under new names, four syncs that change metadata: on a busy disk that alone takes longer
//! than all the rest. So a promise goes into a file of its own whose blocks are there already, and into the state with
//! whatever changes that next, at the latest with the next start.
//!
//! ```text
//! two slots, at 0 and 4096; made anew with each start
//!  0  magic "CLOVPROM"   8  crc32c of bytes 12..48   12  version (1)   16  store uuid (16)
//! 32  the epoch promised   40  how often it was written
//! ```
//!
//! Each promise is written to the slot that was not synced last and counts when that is synced; then the other slot
//! gets it too, unsynced. So at any moment one slot is whole, and rot in one loses nothing once both are on the disk.

use crate::record::{BLOCK_BYTES, u32_at, u64_at};
use base::Epoch;
use env::{Disk, File, OpenMode};
use std::{io, path::Path, sync::Arc};

pub(crate) const FILE_NAME: &str = "promise";
const TEMPORARY: &str = "promise.tmp";
const MAGIC: [u8; 8] = *b"CLOVPROM";
const VERSION: u32 = 1;
const SLOT_BYTES: usize = 48;
const OFFSETS: [u64; 2] = [0, BLOCK_BYTES];

fn encode(store_uuid: [u8; 16], promised: Epoch, writes: u64) -> [u8; SLOT_BYTES] {
    let mut bytes = [0; SLOT_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[12..16].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..32].copy_from_slice(&store_uuid);
    bytes[32..40].copy_from_slice(&promised.0.to_le_bytes());
    bytes[40..48].copy_from_slice(&writes.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The epoch in a slot of this store, or what is wrong with the slot.
fn decode(bytes: &[u8], store_uuid: [u8; 16]) -> Result<Epoch, &'static str> {
    let Some(bytes) = bytes.get(..SLOT_BYTES) else { return Err("it is cut short") };
    if bytes[..8] != MAGIC || u32_at(bytes, 12) != VERSION {
        return Err("these bytes are no promise");
    }
    if crc32c::crc32c(&bytes[12..]) != u32_at(bytes, 8) {
        return Err("its checksum does not match");
    }
    if bytes[16..32] != store_uuid {
        return Err("it is that of another store");
    }
    Ok(Epoch(u64_at(bytes, 32)))
}

/// Why the promise cannot be had.
pub(crate) enum ReadError {
    /// Neither slot can be read; the texts say what is wrong with each.
    Damaged([String; 2]),
    Io(io::Error),
}

/// The epoch that was promised last, as far as this file tells. It is 0 if there is no file, as in a store that was
/// just made.
///
/// # Errors
/// [`ReadError::Damaged`] if neither slot holds a promise of this store; [`ReadError::Io`] if the file cannot be read.
pub(crate) fn read(disk: &dyn Disk, directory: &Path, store_uuid: [u8; 16]) -> Result<Epoch, ReadError> {
    let path = directory.join(FILE_NAME);
    let file = match disk.open(&path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Epoch(0)),
        Err(error) => return Err(ReadError::Io(error)),
    };
    let mut slots = Vec::new();
    for offset in OFFSETS {
        let mut bytes = [0; SLOT_BYTES];
        let read = file.read_at(&mut bytes, offset).map_err(ReadError::Io)?;
        slots.push(decode(&bytes[..read], store_uuid));
    }
    match (slots[0], slots[1]) {
        (Err(first), Err(second)) => {
            let told = |offset: u64, what| format!("{} at {offset}: {what}", path.display());
            Err(ReadError::Damaged([told(OFFSETS[0], first), told(OFFSETS[1], second)]))
        }
        (first, second) => Ok(first.unwrap_or_default().max(second.unwrap_or_default())),
    }
}

/// The file of an open store.
pub(crate) struct PromiseFile {
    file: Arc<dyn File>,
    store_uuid: [u8; 16],
    writes: u64,
}

impl PromiseFile {
    /// Makes it anew, whole in both slots. The caller has made the promise durable elsewhere.
    pub fn make(
        disk: &dyn Disk,
        directory: &Path,
        store_uuid: [u8; 16],
        promised: Epoch,
    ) -> io::Result<Self> {
        let temporary = directory.join(TEMPORARY);
        let file = disk.open(&temporary, OpenMode::CreateOrTruncate)?;
        for offset in OFFSETS {
            // Whole blocks: no later write changes the file's length or its place.
            let mut block = vec![0; BLOCK_BYTES as usize];
            block[..SLOT_BYTES].copy_from_slice(&encode(store_uuid, promised, 0));
            file.write_at(&block, offset)?;
        }
        file.sync_data()?;
        disk.rename(&temporary, &directory.join(FILE_NAME))?;
        disk.sync_directory(directory)?;
        Ok(Self { file, store_uuid, writes: 0 })
    }

    /// Durable when this returns. After an error nothing may be relied upon.
    pub fn write(&mut self, promised: Epoch) -> io::Result<()> {
        self.writes += 1;
        let bytes = encode(self.store_uuid, promised, self.writes);
        let (first, second) = ((self.writes % 2) as usize, ((self.writes + 1) % 2) as usize);
        self.file.write_at(&bytes, OFFSETS[first])?;
        self.file.sync_data()?;
        self.file.write_at(&bytes, OFFSETS[second])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use env::LocalDisk;

    const UUID: [u8; 16] = [7; 16];

    fn read(directory: &Path) -> Result<Epoch, [String; 2]> {
        super::read(&LocalDisk::default(), directory, UUID).map_err(|error| match error {
            ReadError::Damaged(slots) => slots,
            ReadError::Io(error) => panic!("{error}"),
        })
    }

    fn put(path: &Path, bytes: &[u8]) {
        let file = LocalDisk::default().open(path, OpenMode::CreateOrTruncate).unwrap();
        file.write_at(bytes, 0).unwrap();
    }

    #[test]
    fn the_last_promise_is_found_and_one_rotten_slot_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        assert_eq!(read(directory), Ok(Epoch(0)), "a store that was just made");
        let disk = LocalDisk::default();
        let mut file = PromiseFile::make(&disk, directory, UUID, Epoch(3)).unwrap();
        assert_eq!(read(directory), Ok(Epoch(3)));
        for epoch in 4..8 {
            file.write(Epoch(epoch)).unwrap();
            assert_eq!(read(directory), Ok(Epoch(epoch)));
        }
        let path = directory.join(FILE_NAME);
        assert_eq!(disk.length(&path).unwrap(), 2 * BLOCK_BYTES, "no write has made it longer");
        let mut good = vec![0; 2 * BLOCK_BYTES as usize];
        let whole = disk.open(&path, OpenMode::Read).unwrap();
        env::disk::read_exact_at(&*whole, &mut good, 0).unwrap();
        for at in (0..SLOT_BYTES).chain(BLOCK_BYTES as usize..BLOCK_BYTES as usize + SLOT_BYTES) {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            put(&path, &bad);
            assert_eq!(read(directory), Ok(Epoch(7)), "byte {at}");
        }
    }

    #[test]
    fn a_promise_that_is_gone_is_not_taken_for_none() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        PromiseFile::make(&LocalDisk::default(), directory, UUID, Epoch(3)).unwrap();
        put(&directory.join(FILE_NAME), &[0; 100]);
        let slots = read(directory).unwrap_err();
        assert!(slots[0].contains("promise at 0: these bytes are no promise"), "{slots:?}");
        assert!(slots[1].contains("at 4096: it is cut short"), "{slots:?}");
        PromiseFile::make(&LocalDisk::default(), directory, [8; 16], Epoch(3)).unwrap();
        assert!(read(directory).unwrap_err()[0].contains("another store"));
    }
}
