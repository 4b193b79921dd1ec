//! All blocks: records in 64 KiB pages, found by id through a table of 32-bit slots.

use crate::record::{INLINE_PLACES, PlaceList, Record};
use base::BlockId;
use hashbrown::HashTable;

/// Records in a page of 64 KiB.
const PAGE: usize = 64 * 1024 / size_of::<Record>();
const NO_SLOT: u32 = u32::MAX;

pub struct Arena {
    pages: Vec<Box<[Record]>>,
    /// Slots ever used; free ones among them are chained from `free`.
    used: u32,
    free: u32,
    index: HashTable<u32>,
    /// Places of blocks that have more than a record holds. Empty lists are free, and listed in `spare`.
    spill: Vec<Vec<u32>>,
    spare: Vec<u32>,
}

/// The places of one block.
pub enum Places<'a> {
    Inline([u32; INLINE_PLACES], usize),
    Spilled(&'a [u32]),
}

impl Places<'_> {
    pub fn as_slice(&self) -> &[u32] {
        match self {
            Self::Inline(places, count) => &places[..*count],
            Self::Spilled(places) => places,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.as_slice().iter().copied()
    }
}

impl Arena {
    pub fn new() -> Self {
        Self {
            pages: Vec::new(),
            used: 0,
            free: NO_SLOT,
            index: HashTable::new(),
            spill: Vec::new(),
            spare: Vec::new(),
        }
    }

    pub fn reserve(&mut self, blocks: usize) {
        let pages = &self.pages;
        self.index.reserve(blocks, |slot| hash(record(pages, *slot).id()));
    }

    /// Blocks in the map.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// One past the highest slot that was ever used.
    pub fn slots(&self) -> u32 {
        self.used
    }

    pub fn record(&self, slot: u32) -> &Record {
        record(&self.pages, slot)
    }

    /// The id that the record in this slot has, whether the slot is in use or not. `None`: there is no such slot.
    pub fn id_in(&self, slot: u32) -> Option<BlockId> {
        Some(self.pages.get(slot as usize / PAGE)?.get(slot as usize % PAGE)?.id())
    }

    pub fn record_mut(&mut self, slot: u32) -> &mut Record {
        &mut self.pages[slot as usize / PAGE][slot as usize % PAGE]
    }

    pub fn find(&self, id: BlockId) -> Option<u32> {
        self.index.find(hash(id), |slot| self.record(*slot).id() == id).copied()
    }

    /// True if the record in `slot` is that of `id`: a guess is cheaper to check than an index to ask.
    pub fn is_at(&self, slot: u32, id: BlockId) -> bool {
        slot < self.used && {
            let record = self.record(slot);
            record.id() == id && !record.is_free()
        }
    }

    /// The caller has made sure that the id is not there.
    pub fn insert(&mut self, record: Record) -> u32 {
        let slot = self.take_slot();
        *self.record_mut(slot) = record;
        let pages = &self.pages;
        self.index.insert_unique(hash(record.id()), slot, |slot| hash(self::record(pages, *slot).id()));
        slot
    }

    fn take_slot(&mut self) -> u32 {
        if self.free != NO_SLOT {
            let slot = self.free;
            self.free = self.record(slot).next_free();
            return slot;
        }
        let slot = self.used;
        assert!(slot < NO_SLOT - 1, "a block map holds at most 2^32 - 2 blocks");
        if slot as usize / PAGE == self.pages.len() {
            self.pages.push(vec![Record::FREE; PAGE].into_boxed_slice());
        }
        self.used += 1;
        slot
    }

    pub fn remove(&mut self, slot: u32) {
        let id = self.record(slot).id();
        self.give_back_spill(slot);
        let pages = &self.pages;
        if let Ok(entry) = self.index.find_entry(hash(id), |held| record(pages, *held).id() == id) {
            entry.remove();
        }
        *self.record_mut(slot) = Record::free(self.free);
        self.free = slot;
    }

    pub fn places(&self, slot: u32) -> Places<'_> {
        match self.record(slot).place_list() {
            PlaceList::Inline { places, count } => Places::Inline(places, count),
            PlaceList::Spilled(list) => Places::Spilled(&self.spill[list as usize]),
        }
    }

    pub fn place_count(&self, slot: u32) -> usize {
        self.places(slot).as_slice().len()
    }

    pub fn holds(&self, slot: u32, place: u32) -> bool {
        self.record(slot).holds_inline(place) || self.places(slot).as_slice().contains(&place)
    }

    /// False if the block had that place already.
    pub fn add_place(&mut self, slot: u32, place: u32) -> bool {
        if self.holds(slot, place) {
            return false;
        }
        if let PlaceList::Spilled(list) = self.record(slot).place_list() {
            self.spill[list as usize].push(place);
        } else if !self.record_mut(slot).push_inline(place) {
            let mut places = self.places(slot).as_slice().to_vec();
            places.push(place);
            let list = self.take_spill(places);
            self.record_mut(slot).spill_to(list);
        }
        true
    }

    /// False if the block did not have that place.
    pub fn remove_place(&mut self, slot: u32, place: u32) -> bool {
        let PlaceList::Spilled(list) = self.record(slot).place_list() else {
            return self.record_mut(slot).remove_inline(place);
        };
        let places = &mut self.spill[list as usize];
        let Some(at) = places.iter().position(|held| *held == place) else { return false };
        places.remove(at);
        if places.len() <= INLINE_PLACES && places.iter().all(|place| u16::try_from(*place).is_ok()) {
            let places = places.clone();
            self.give_back_spill(slot);
            for place in places {
                self.record_mut(slot).push_inline(place);
            }
        }
        true
    }

    fn take_spill(&mut self, places: Vec<u32>) -> u32 {
        match self.spare.pop() {
            Some(list) => {
                self.spill[list as usize] = places;
                list
            }
            None => {
                self.spill.push(places);
                self.spill.len() as u32 - 1
            }
        }
    }

    fn give_back_spill(&mut self, slot: u32) {
        if let PlaceList::Spilled(list) = self.record(slot).place_list() {
            self.spill[list as usize] = Vec::new();
            self.spare.push(list);
        }
        self.record_mut(slot).clear_places();
    }

    pub fn bytes_allocated(&self) -> usize {
        let spilled: usize = self.spill.iter().map(|places| places.capacity() * size_of::<u32>()).sum();
        self.pages.len() * PAGE * size_of::<Record>()
            + self.pages.capacity() * size_of::<Box<[Record]>>()
            + self.index.allocation_size()
            + self.spill.capacity() * size_of::<Vec<u32>>()
            + self.spare.capacity() * size_of::<u32>()
            + spilled
    }
}

fn record(pages: &[Box<[Record]>], slot: u32) -> &Record {
    &pages[slot as usize / PAGE][slot as usize % PAGE]
}

/// Sixteen neighbouring ids share a group of the table, so that reports, whose ids come in runs, find
/// their slots in lines of memory just touched. Runs are scattered, lest two of them meet for long.
fn hash(id: BlockId) -> u64 {
    let run = id.0 >> 4;
    let scattered = run.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let scattered = (scattered ^ scattered >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    // The table takes its place from the low bits and its tag from the high seven.
    let tag = id.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) & 0xFE00_0000_0000_0000;
    (scattered << 4 | id.0 & 15) & 0x01FF_FFFF_FFFF_FFFF | tag
}
