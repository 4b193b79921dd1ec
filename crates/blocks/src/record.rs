//! A block in 32 bytes.
//!
//! ```text
//! byte  0..8   block id (of a free record: the next free one, or NO_SLOT)
//!       8..14  inode id
//!      14..19  generation stamp
//!      19..24  length
//!      24..26  bits 0-9 replication, 10-11 state (3: the record is free), 12-14 number of places
//!              (0 to 3 inline, 4: spilled), 15 queued for more replicas
//!      26..32  three places of 16 bits, or the 32-bit number of a spill list and 16 bits unused
//! ```
//!
//! A *place* is a storage's index. Blocks with more than three places, or with a place beyond 16 bits, spill.

use crate::words::BlockState;
use base::{BLOCK_BYTES_MAX, Block, BlockId, GenerationStamp, InodeId};

pub const INLINE_PLACES: usize = 3;
const SPILLED: u16 = 4;
const STATE_FREE: u16 = 3;
pub const MAX_REPLICATION: u16 = (1 << 10) - 1;
/// Stands for every length above [`BLOCK_BYTES_MAX`], which earlier releases let blocks have: in records, and in reports of
/// replicas. So such a block keeps the places of its replicas.
pub const LENGTH_BEYOND: u64 = (1 << 40) - 1;
const _: () = assert!(BLOCK_BYTES_MAX < LENGTH_BEYOND && GenerationStamp::LIMIT == 1 << 40);

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Record {
    id: u64,
    inode: [u8; 6],
    stamp: [u8; 5],
    length: [u8; 5],
    meta: u16,
    places: [u16; INLINE_PLACES],
}

const _: () = assert!(size_of::<Record>() == 32);

/// The form in which a record holds its places.
pub enum PlaceList {
    Inline { places: [u32; INLINE_PLACES], count: usize },
    Spilled(u32),
}

impl Record {
    pub const FREE: Record = Record {
        id: 0,
        inode: [0; 6],
        stamp: [0; 5],
        length: [0; 5],
        meta: STATE_FREE << 10,
        places: [0; 3],
    };

    pub fn new(block: Block, inode: InodeId, replication: u16, state: BlockState) -> Self {
        let mut record = Self { id: block.id.0, ..Self::FREE };
        record.set_inode(inode);
        record.meta = replication.min(MAX_REPLICATION);
        record.set_block(block);
        record.set_state(state);
        record
    }

    pub fn free(next: u32) -> Self {
        Self { id: u64::from(next), ..Self::FREE }
    }

    pub fn next_free(&self) -> u32 {
        self.id as u32
    }

    pub fn is_free(&self) -> bool {
        self.state_bits() == STATE_FREE
    }

    pub fn id(&self) -> BlockId {
        BlockId(self.id)
    }

    pub fn inode(&self) -> InodeId {
        InodeId(number(self.inode))
    }

    /// # Panics
    ///
    /// If the id has more than 48 bits.
    pub fn set_inode(&mut self, inode: InodeId) {
        assert!(inode.0 < InodeId::LIMIT, "inode id {inode} needs more than 48 bits");
        self.inode = low_bytes(inode.0);
    }

    pub fn block(&self) -> Block {
        Block { id: self.id(), generation_stamp: self.stamp(), length: self.length() }
    }

    pub fn stamp(&self) -> GenerationStamp {
        GenerationStamp(number(self.stamp))
    }

    pub fn length(&self) -> u64 {
        number(self.length)
    }

    /// Takes over stamp and length. A length above [`BLOCK_BYTES_MAX`] becomes [`LENGTH_BEYOND`].
    ///
    /// # Panics
    ///
    /// If the stamp has more than 40 bits.
    pub fn set_block(&mut self, block: Block) {
        let (stamp, length) = (block.generation_stamp, block.length);
        assert!(stamp.0 < GenerationStamp::LIMIT, "generation stamp {stamp} needs more than 40 bits");
        self.stamp = low_bytes(stamp.0);
        self.length = low_bytes(if length > BLOCK_BYTES_MAX { LENGTH_BEYOND } else { length });
    }

    pub fn replication(&self) -> u16 {
        self.meta & MAX_REPLICATION
    }

    pub fn set_replication(&mut self, replication: u16) {
        self.meta = (self.meta & !MAX_REPLICATION) | replication.min(MAX_REPLICATION);
    }

    pub fn state(&self) -> BlockState {
        match self.state_bits() {
            0 => BlockState::UnderConstruction,
            1 => BlockState::Committed,
            _ => BlockState::Complete,
        }
    }

    fn state_bits(&self) -> u16 {
        self.meta >> 10 & 3
    }

    pub fn set_state(&mut self, state: BlockState) {
        let bits = match state {
            BlockState::UnderConstruction => 0,
            BlockState::Committed => 1,
            BlockState::Complete => 2,
        };
        self.meta = (self.meta & !(3 << 10)) | bits << 10;
    }

    pub fn is_queued(&self) -> bool {
        self.meta >> 15 == 1
    }

    pub fn set_queued(&mut self, queued: bool) {
        self.meta = (self.meta & !(1 << 15)) | u16::from(queued) << 15;
    }

    fn place_bits(&self) -> u16 {
        self.meta >> 12 & 7
    }

    fn set_place_bits(&mut self, bits: u16) {
        self.meta = (self.meta & !(7 << 12)) | bits << 12;
    }

    pub fn place_list(&self) -> PlaceList {
        match self.place_bits() {
            SPILLED => PlaceList::Spilled(u32::from(self.places[0]) | u32::from(self.places[1]) << 16),
            count => PlaceList::Inline { places: self.places.map(u32::from), count: usize::from(count) },
        }
    }

    /// True if `place` is one of the inline places; spilled ones are not looked at.
    pub fn holds_inline(&self, place: u32) -> bool {
        let count = self.place_bits();
        count != SPILLED && self.places[..usize::from(count)].iter().any(|held| u32::from(*held) == place)
    }

    /// False if there is no room inline.
    pub fn push_inline(&mut self, place: u32) -> bool {
        let count = self.place_bits();
        match u16::try_from(place) {
            Ok(place) if usize::from(count) < INLINE_PLACES => {
                self.places[usize::from(count)] = place;
                self.set_place_bits(count + 1);
                true
            }
            _ => false,
        }
    }

    /// Keeps the order of the others. False if it was not there.
    pub fn remove_inline(&mut self, place: u32) -> bool {
        let count = usize::from(self.place_bits());
        let Some(at) = self.places[..count].iter().position(|held| u32::from(*held) == place) else {
            return false;
        };
        self.places.copy_within(at + 1..count, at);
        self.set_place_bits(count as u16 - 1);
        true
    }

    pub fn spill_to(&mut self, list: u32) {
        self.places = [list as u16, (list >> 16) as u16, 0];
        self.set_place_bits(SPILLED);
    }

    pub fn clear_places(&mut self) {
        self.set_place_bits(0);
    }
}

fn low_bytes<const N: usize>(value: u64) -> [u8; N] {
    std::array::from_fn(|at| (value >> (8 * at)) as u8)
}

fn number<const N: usize>(bytes: [u8; N]) -> u64 {
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(&bytes);
    u64::from_le_bytes(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_of(length: u64) -> Record {
        let block = Block {
            id: BlockId(1 << 61),
            generation_stamp: GenerationStamp(GenerationStamp::LIMIT - 1),
            length,
        };
        Record::new(block, InodeId::of_slot(4_095, (1 << 35) - 1), 3, BlockState::Complete)
    }

    #[test]
    fn a_record_keeps_the_greatest_ids_and_the_longest_block() {
        let record = record_of(BLOCK_BYTES_MAX);
        assert_eq!(record.id(), BlockId(1 << 61));
        assert_eq!(record.inode(), InodeId(InodeId::LIMIT - 1));
        assert_eq!(record.stamp(), GenerationStamp(GenerationStamp::LIMIT - 1));
        assert_eq!(record.length(), BLOCK_BYTES_MAX);
        assert_eq!((record.replication(), record.state()), (3, BlockState::Complete));
    }

    #[test]
    fn lengths_that_only_earlier_releases_let_blocks_have_are_one() {
        assert_eq!(record_of(1 << 40).length(), LENGTH_BEYOND);
        assert_eq!(record_of(1 << 47).length(), LENGTH_BEYOND);
        assert_eq!(record_of(1 << 47).inode(), InodeId(InodeId::LIMIT - 1), "nothing else is touched");
    }

    #[test]
    #[should_panic(expected = "needs more than 48 bits")]
    fn an_inode_id_is_never_cut_short() {
        record_of(1).set_inode(InodeId(InodeId::LIMIT));
    }
}
