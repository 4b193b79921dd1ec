//! Finds an inode's handle by its id.

use super::{arena::Arena, inode::Inode};
use crate::{
    digest::hash_number,
    together::{Piece, Together},
};
use base::InodeId;
use hashbrown::HashTable;

/// Enough that one table of a namespace of 100 M inodes grows in about a millisecond; a power of two.
const SHARDS: usize = 4_096;

/// The lowest of the bits that choose the shard: behind those of any position, before those of the tag.
const SHARD_SHIFT: u32 = 40;

/// Pieces in which a whole index is made. Each looks at all inodes, and holds the ids of its own meanwhile.
const PIECES: usize = 4;

/// Hash tables of handles; the ids are in the inodes.
pub(crate) struct InodeIndex {
    seed: u64,
    shards: Box<[HashTable<u32>]>,
}

impl InodeIndex {
    pub fn new(seed: u64) -> Self {
        Self { seed, shards: (0..SHARDS).map(|_| HashTable::new()).collect() }
    }

    pub fn bytes(&self) -> usize {
        let tables: usize = self.shards.iter().map(HashTable::allocation_size).sum();
        tables + SHARDS * size_of::<HashTable<u32>>()
    }

    /// hashbrown takes the position in a table from the low bits of the hash and the tag, which spares most
    /// comparisons, from the highest seven. The shard must be chosen by none of these bits: they would be equal for
    /// all inodes of the shard, and each comparison is a cache miss.
    fn place(&self, id: InodeId) -> (usize, u64) {
        place(self.seed, id)
    }

    pub fn find(&self, inodes: &Arena<Inode>, id: InodeId) -> Option<u32> {
        let (shard, hash) = self.place(id);
        self.shards[shard].find(hash, |handle| inodes.get(*handle).id() == id).copied()
    }

    pub fn insert(&mut self, inodes: &Arena<Inode>, id: InodeId, handle: u32) {
        let (shard, hash) = self.place(id);
        let seed = self.seed;
        let rehash = |handle: &u32| hash_number(seed, inodes.get(*handle).id().0);
        self.shards[shard].insert_unique(hash, handle, rehash);
    }

    /// Enters all inodes of a tree that was just read, none of which was ever removed, into an index that is empty.
    /// Answers an id that is there twice. Each table is made in its final size and while it fits into a core's cache,
    /// where entering one inode after the other waits for memory again and again.
    pub fn fill(&mut self, inodes: &Arena<Inode>, together: Together<'_>) -> Result<(), InodeId> {
        let mut twice = [None; PIECES];
        let seed = self.seed;
        let pieces = self.shards.chunks_mut(SHARDS / PIECES).zip(&mut twice).enumerate();
        let pieces = pieces.map(|(number, (tables, twice))| -> Piece<'_> {
            Box::new(move || *twice = fill_piece(seed, inodes, number * tables.len(), tables))
        });
        together(pieces.collect());
        twice.into_iter().flatten().next().map_or(Ok(()), Err)
    }

    /// To be called while the inode is still there.
    pub fn remove(&mut self, id: InodeId, handle: u32) {
        let (shard, hash) = self.place(id);
        if let Ok(entry) = self.shards[shard].find_entry(hash, |other| *other == handle) {
            entry.remove();
        }
    }
}

fn place(seed: u64, id: InodeId) -> (usize, u64) {
    let hash = hash_number(seed, id.0);
    ((hash >> SHARD_SHIFT) as usize % SHARDS, hash)
}

/// The tables of the shards from `first` on; an id that is there twice.
fn fill_piece(
    seed: u64,
    inodes: &Arena<Inode>,
    first: usize,
    tables: &mut [HashTable<u32>],
) -> Option<InodeId> {
    let expected = inodes.live() as usize / SHARDS;
    let mut entries: Vec<Vec<(u64, u32)>> =
        tables.iter().map(|_| Vec::with_capacity(expected + expected / 8)).collect();
    for (handle, inode) in inodes.all() {
        let (shard, hash) = place(seed, inode.id());
        if let Some(entries) = shard.checked_sub(first).and_then(|shard| entries.get_mut(shard)) {
            entries.push((hash, handle));
        }
    }
    let mut twice = None;
    for (table, entries) in tables.iter_mut().zip(entries) {
        let rehash = |handle: &u32| place(seed, inodes.get(*handle).id()).1;
        table.reserve(entries.len(), rehash);
        for (hash, handle) in entries {
            let id = || inodes.get(handle).id();
            if table.find(hash, |other| inodes.get(*other).id() == id()).is_some() {
                twice = Some(id());
            }
            table.insert_unique(hash, handle, rehash);
        }
    }
    twice
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Timestamp;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn the_inodes_of_one_shard_differ_in_tag_and_position() {
        let index = InodeIndex::new(7);
        let mut tags: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        let mut positions = tags.clone();
        for id in 16_385..16_385 + 64 * SHARDS as u64 {
            let (shard, hash) = index.place(InodeId(id));
            tags.entry(shard).or_default().insert(hash >> 57);
            positions.entry(shard).or_default().insert(hash % 128);
        }
        for different in [tags, positions] {
            assert_eq!(different.len(), SHARDS);
            // 64 drawn from 128 leave 50 different ones.
            let mean = different.values().map(BTreeSet::len).sum::<usize>() / SHARDS;
            assert!((48..54).contains(&mean), "{mean} different ones among 64");
        }
    }

    #[test]
    fn an_inode_is_found_until_it_is_removed() {
        let (mut index, mut inodes) = (InodeIndex::new(1), Arena::new());
        let put = |index: &mut InodeIndex, inodes: &mut Arena<Inode>, id: u64| {
            let time = Timestamp::from_ms(1);
            let handle = inodes.insert(Inode::file(InodeId(id), 0, time, time));
            index.insert(inodes, InodeId(id), handle);
            handle
        };
        let handles: Vec<u32> = (1..50_000).map(|id| put(&mut index, &mut inodes, id)).collect();
        for (id, handle) in (1..).zip(&handles) {
            assert_eq!(index.find(&inodes, InodeId(id)), Some(*handle));
        }
        index.remove(InodeId(77), handles[76]);
        assert_eq!(index.find(&inodes, InodeId(77)), None);
        assert_eq!(index.find(&inodes, InodeId(50_000)), None);
    }

    #[test]
    fn an_index_made_at_once_is_like_one_made_step_by_step() {
        let mut inodes = Arena::new();
        let put = |inodes: &mut Arena<Inode>, id: u64| {
            let time = Timestamp::from_ms(1);
            inodes.insert(Inode::file(InodeId(id), 0, time, time))
        };
        let handles: Vec<u32> = (1..40_000).map(|id| put(&mut inodes, id * 3)).collect();
        let mut index = InodeIndex::new(5);
        assert_eq!(index.fill(&inodes, crate::ONE_BY_ONE), Ok(()));
        for (number, handle) in (1..).zip(&handles) {
            assert_eq!(index.find(&inodes, InodeId(number * 3)), Some(*handle));
            assert_eq!(index.find(&inodes, InodeId(number * 3 + 1)), None);
        }
        put(&mut inodes, 600);
        assert_eq!(InodeIndex::new(5).fill(&inodes, crate::ONE_BY_ONE), Err(InodeId(600)));
    }
}
