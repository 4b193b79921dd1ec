//! A block in 32 bytes.
//!
//! ```text
//! byte  0..8   block id (of a free record: the next free one, or NO_SLOT)
//!       8..13  inode id
//!      13..18  generation stamp
//!      18..24  length
//!      24..26  bits 0-9 replication, 10-11 state (3: the record is free), 12-14 number of places
//!              (0 to 3 inline, 4: spilled), 15 queued for more replicas
//!      26..32  three places of 16 bits, or the 32-bit number of a spill list and 16 bits unused
//! ```
//!
//! A *place* is a storage's index. Blocks with more than three places, or with a place beyond 16 bits, spill.

use crate::words::BlockState;
use base::{Block, BlockId, GenerationStamp, InodeId};

pub const INLINE_PLACES: usize = 3;
const SPILLED: u16 = 4;
const STATE_FREE: u16 = 3;
pub const MAX_REPLICATION: u16 = (1 << 10) - 1;
/// Inode ids and generation stamps have 40 bits: 34 years at a thousand new ones a second.
const MAX_40: u64 = (1 << 40) - 1;
const MAX_48: u64 = (1 << 48) - 1;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Record {
    id: u64,
    inode: [u8; 5],
    stamp: [u8; 5],
    length: [u8; 6],
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
        inode: [0; 5],
        stamp: [0; 5],
        length: [0; 6],
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
        InodeId(from_5(self.inode))
    }

    pub fn set_inode(&mut self, inode: InodeId) {
        self.inode = to_5(inode.0.min(MAX_40));
    }

    pub fn block(&self) -> Block {
        Block { id: self.id(), generation_stamp: self.stamp(), length: self.length() }
    }

    pub fn stamp(&self) -> GenerationStamp {
        GenerationStamp(from_5(self.stamp))
    }

    pub fn length(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.length);
        u64::from_le_bytes(bytes)
    }

    /// Takes over stamp and length. A value that has no room is cut to the largest that fits; the namespace refuses
    /// such values before they get here.
    pub fn set_block(&mut self, block: Block) {
        self.stamp = to_5(block.generation_stamp.0.min(MAX_40));
        self.length.copy_from_slice(&block.length.min(MAX_48).to_le_bytes()[..6]);
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

fn to_5(value: u64) -> [u8; 5] {
    let bytes = value.to_le_bytes();
    [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]]
}

fn from_5(bytes: [u8; 5]) -> u64 {
    u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], 0, 0, 0])
}
