//! The last entry that is known to have committed, written often and never synced.
//!
//! It is a lower bound: whatever value a crash leaves is a true one, for its entry was durable before the value was
//! written. So nothing waits for it, and a start finds fewer entries of which it cannot know whether they have
//! committed.
//!
//! ```text
//! two slots, at 0 and 4096, written in turn
//!  0  magic "CLOVCOMM"   8  crc32c of bytes 12..56   12  version (1)   16  store uuid (16)
//! 32  generation of the store   40  the sn   48  how often it was written
//! ```

use crate::{
    MemberState,
    record::{BLOCK_BYTES, u32_at, u64_at},
};
use base::Sn;
use env::{Disk, File, OpenMode};
use std::{io, path::Path, sync::Arc};

pub(crate) const FILE_NAME: &str = "commit";
const MAGIC: [u8; 8] = *b"CLOVCOMM";
const VERSION: u32 = 1;
const SLOT_BYTES: usize = 56;

/// One slot's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub store_uuid: [u8; 16],
    pub generation: u64,
    pub sn: Sn,
    pub writes: u64,
}

impl Slot {
    pub fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[12..16].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.store_uuid);
        bytes[32..40].copy_from_slice(&self.generation.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.sn.0.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.writes.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` for anything else: a slot that cannot be read says nothing.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..SLOT_BYTES)?;
        let is_one = bytes[..8] == MAGIC
            && crc32c::crc32c(&bytes[12..]) == u32_at(bytes, 8)
            && u32_at(bytes, 12) == VERSION;
        is_one.then(|| Self {
            store_uuid: bytes[16..32].try_into().expect("sixteen bytes"),
            generation: u64_at(bytes, 32),
            sn: Sn(u64_at(bytes, 40)),
            writes: u64_at(bytes, 48),
        })
    }
}

/// The last committed entry that the file names for this store in this generation; 0 if it names none.
pub(crate) fn read(disk: &dyn Disk, directory: &Path, state: &MemberState) -> Sn {
    let Ok(file) = disk.open(&directory.join(FILE_NAME), OpenMode::Read) else { return Sn(0) };
    let slots = [0, BLOCK_BYTES].map(|offset| {
        let mut bytes = [0; SLOT_BYTES];
        let read = file.read_at(&mut bytes, offset).unwrap_or(0);
        Slot::decode(&bytes[..read])
    });
    let own = |slot: &Slot| slot.store_uuid == state.store_uuid && slot.generation == state.generation;
    slots.into_iter().flatten().filter(own).map(|slot| slot.sn).max().unwrap_or_default()
}

/// The file, opened with the first write.
#[derive(Default)]
pub(crate) struct Watermark {
    file: Option<Arc<dyn File>>,
    writes: u64,
    written: Sn,
}

impl Watermark {
    pub fn write(&mut self, disk: &dyn Disk, directory: &Path, slot: Slot) -> io::Result<()> {
        if slot.sn <= self.written {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(disk.open(&directory.join(FILE_NAME), OpenMode::CreateOrTruncate)?);
        }
        let file = self.file.as_ref().expect("just opened");
        let offset = (self.writes % 2) * BLOCK_BYTES;
        self.writes += 1;
        file.write_at(&Slot { writes: self.writes, ..slot }.encode(), offset)?;
        self.written = slot.sn;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_reads_back_and_a_flipped_bit_voids_it() {
        let slot = Slot { store_uuid: [7; 16], generation: 3, sn: Sn(1 << 40), writes: 9 };
        let good = slot.encode();
        assert_eq!(Slot::decode(&good), Some(slot));
        for at in 0..SLOT_BYTES {
            let mut bad = good;
            bad[at] ^= 1 << (at % 8);
            assert_eq!(Slot::decode(&bad), None, "byte {at}");
            assert_eq!(Slot::decode(&good[..at]), None, "cut to {at}");
        }
    }
}
