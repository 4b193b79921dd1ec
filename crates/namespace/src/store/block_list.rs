//! The blocks of files: 24 bytes each, the blocks of one file in a ring whose last one the file knows.
//!
//! A ring costs four bytes a block and four a file, and finds the first and the last block at once; what lies
//! between is walked. Most files have one block.

use super::arena::{Arena, NONE, Slot};
use crate::digest::Digester;
use base::{BLOCK_BYTES_MAX, Block, BlockId, GenerationStamp, InodeId};

/// New lengths are below it.
pub(crate) const LENGTH_LIMIT: u64 = BLOCK_BYTES_MAX + 1;
/// The lengths that a record holds are below it. Earlier releases took any such length from a client's word.
pub(crate) const RECORD_LENGTH_LIMIT: u64 = 1 << 48;

const COMMITTED: u32 = 1 << 31;

/// ```text
/// id u64 | stamp, low u32 | committed u1, stamp, high u15, length, high u16 | length, low u32 | next u32
/// ```
#[derive(Clone)]
pub(crate) struct BlockSlot {
    words: [u32; 5],
    next: u32,
}

impl Default for BlockSlot {
    fn default() -> Self {
        Self { words: [0; 5], next: NONE }
    }
}

impl Slot for BlockSlot {
    fn next_free(&self) -> u32 {
        self.next
    }
    fn set_next_free(&mut self, next: u32) {
        self.next = next;
    }
}

const _: () = assert!(size_of::<BlockSlot>() == 24);

/// A block of a file, and whether its length is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub block: Block,
    pub committed: bool,
}

impl BlockSlot {
    fn set(&mut self, stored: Stored) {
        let Stored { block: Block { id, generation_stamp, length }, committed } = stored;
        assert!(
            generation_stamp.0 < GenerationStamp::LIMIT && length < RECORD_LENGTH_LIMIT,
            "{stored:?} exceeds its record"
        );
        let high = (generation_stamp.0 >> 32) as u32 & 0x7fff;
        self.words = [
            id.0 as u32,
            (id.0 >> 32) as u32,
            generation_stamp.0 as u32,
            u32::from(committed) << 31 | high << 16 | (length >> 32) as u32 & 0xffff,
            length as u32,
        ];
    }

    fn stored(&self) -> Stored {
        let [id_low, id_high, stamp_low, mixed, length_low] = self.words;
        let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        Stored {
            block: Block {
                id: BlockId(join(id_low, id_high)),
                generation_stamp: GenerationStamp(join(stamp_low, (mixed >> 16) & 0x7fff)),
                length: join(length_low, mixed & 0xffff),
            },
            committed: mixed & COMMITTED != 0,
        }
    }
}

/// The blocks of all files.
pub(crate) type Blocks = Arena<BlockSlot>;

impl Blocks {
    /// Puts a block behind `last` (`NONE` for the first one); answers the new last.
    pub fn append(&mut self, last: u32, stored: Stored) -> u32 {
        let handle = self.insert(BlockSlot::default());
        self.get_mut(handle).set(stored);
        if last == NONE {
            self.get_mut(handle).next = handle;
        } else {
            let first = self.get(last).next;
            self.get_mut(handle).next = first;
            self.get_mut(last).next = handle;
        }
        handle
    }

    pub fn stored(&self, handle: u32) -> Stored {
        self.get(handle).stored()
    }

    pub fn set_stored(&mut self, handle: u32, stored: Stored) {
        self.get_mut(handle).set(stored);
    }

    /// The block before the last one.
    pub fn penultimate(&self, last: u32) -> Option<u32> {
        if last == NONE || self.get(last).next == last {
            return None;
        }
        let mut at = self.get(last).next;
        while self.get(at).next != last {
            at = self.get(at).next;
        }
        Some(at)
    }

    /// Takes the last block away; answers the new last.
    pub fn remove_last(&mut self, last: u32) -> u32 {
        let Some(before) = self.penultimate(last) else {
            self.remove(last);
            return NONE;
        };
        self.get_mut(before).next = self.get(last).next;
        self.remove(last);
        before
    }

    /// Takes the blocks behind the first `kept` away, and shows each; answers the new last.
    pub fn cut(&mut self, last: u32, kept: u64, mut gone: impl FnMut(Stored)) -> u32 {
        if last == NONE {
            return NONE;
        }
        let first = self.get(last).next;
        let (mut at, mut new_last) = (first, NONE);
        for _ in 0..kept {
            new_last = at;
            if at == last {
                return last;
            }
            at = self.get(at).next;
        }
        loop {
            let next = self.get(at).next;
            gone(self.stored(at));
            self.remove(at);
            if at == last {
                break;
            }
            at = next;
        }
        if new_last != NONE {
            self.get_mut(new_last).next = first;
        }
        new_last
    }

    /// Puts the blocks of one file behind those of another; answers the last of all.
    pub fn join(&mut self, last: u32, behind: u32) -> u32 {
        if last == NONE || behind == NONE {
            return if last == NONE { behind } else { last };
        }
        let (first, joint) = (self.get(last).next, self.get(behind).next);
        self.get_mut(last).next = joint;
        self.get_mut(behind).next = first;
        behind
    }

    pub fn remove_all(&mut self, last: u32) {
        if last == NONE {
            return;
        }
        let mut at = self.get(last).next;
        loop {
            let next = self.get(at).next;
            self.remove(at);
            if at == last {
                return;
            }
            at = next;
        }
    }

    /// The blocks from the first to the last.
    pub fn iterate(&self, last: u32) -> BlockIter<'_> {
        BlockIter { blocks: self, last, at: if last == NONE { NONE } else { self.get(last).next } }
    }
}

pub(crate) struct BlockIter<'a> {
    blocks: &'a Blocks,
    last: u32,
    at: u32,
}

impl Iterator for BlockIter<'_> {
    type Item = Stored;

    fn next(&mut self) -> Option<Stored> {
        if self.at == NONE {
            return None;
        }
        let slot = self.blocks.get(self.at);
        self.at = if self.at == self.last { NONE } else { slot.next };
        Some(slot.stored())
    }
}

/// Digests a block with its file.
pub(crate) fn block_digest(file: InodeId, stored: Stored) -> u64 {
    let mut digester = Digester::new(b'b');
    digester.number(file.0);
    digester.number(stored.block.id.0);
    digester.number(stored.block.generation_stamp.0);
    digester.number(stored.block.length << 1 | u64::from(stored.committed));
    digester.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_blocks_grows_and_shrinks_at_its_end() {
        let stored = |n: u64| Stored {
            block: Block {
                id: BlockId(u64::MAX - n),
                generation_stamp: GenerationStamp(GenerationStamp::LIMIT - 1 - n),
                length: RECORD_LENGTH_LIMIT - 1 - n,
            },
            committed: n.is_multiple_of(2),
        };
        let mut blocks = Blocks::new();
        let mut last = NONE;
        for n in 0..5 {
            last = blocks.append(last, stored(n));
        }
        assert!(blocks.iterate(last).eq((0..5).map(stored)));
        assert_eq!(blocks.penultimate(last).map(|handle| blocks.stored(handle)), Some(stored(3)));
        for n in (0..5).rev() {
            last = blocks.remove_last(last);
            assert!(blocks.iterate(last).eq((0..n).map(stored)));
        }
        assert_eq!((last, blocks.live()), (NONE, 0));
    }

    fn numbered(blocks: &mut Blocks, ids: std::ops::Range<u64>) -> u32 {
        ids.fold(NONE, |last, id| {
            let block = Block { id: BlockId(id), ..Block::default() };
            blocks.append(last, Stored { block, committed: true })
        })
    }

    fn ids(blocks: &Blocks, last: u32) -> Vec<u64> {
        blocks.iterate(last).map(|stored| stored.block.id.0).collect()
    }

    #[test]
    fn a_ring_is_cut_anywhere() {
        for kept in 0..6 {
            let mut blocks = Blocks::new();
            let last = numbered(&mut blocks, 0..4);
            let mut gone = Vec::new();
            let last = blocks.cut(last, kept, |stored| gone.push(stored.block.id.0));
            assert_eq!(ids(&blocks, last), (0..kept.min(4)).collect::<Vec<_>>());
            assert_eq!(gone, (kept.min(4)..4).collect::<Vec<_>>());
            assert_eq!(u64::from(blocks.live()), kept.min(4));
            assert_eq!(blocks.cut(NONE, kept, |_| unreachable!()), NONE);
        }
    }

    #[test]
    fn two_rings_become_one() {
        let mut blocks = Blocks::new();
        let (one, two) = (numbered(&mut blocks, 0..3), numbered(&mut blocks, 3..5));
        let all = blocks.join(one, two);
        assert_eq!(ids(&blocks, all), [0, 1, 2, 3, 4]);
        assert_eq!((blocks.join(all, NONE), blocks.join(NONE, all)), (all, all));
    }
}
