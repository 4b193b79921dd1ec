//! From an inode's id to its handle.

use super::{arena::Arena, inode::Inode};
use crate::digest::hash_number;
use base::InodeId;
use hashbrown::HashTable;

/// Enough that one table of a namespace of 100 M inodes grows in about a millisecond; a power of two.
const SHARDS: usize = 4_096;

/// Where the bits that choose the shard begin: behind those of any position, before those of the tag.
const SHARD_SHIFT: u32 = 40;

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
    /// comparisons, from the highest seven. What chooses the shard must be none of these: it is the same for
    /// all inodes of the shard, and each comparison is a cache miss.
    fn place(&self, id: InodeId) -> (usize, u64) {
        let hash = hash_number(self.seed, id.0);
        ((hash >> SHARD_SHIFT) as usize % SHARDS, hash)
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

    /// To be called while the inode is still there.
    pub fn remove(&mut self, id: InodeId, handle: u32) {
        let (shard, hash) = self.place(id);
        if let Ok(entry) = self.shards[shard].find_entry(hash, |other| *other == handle) {
            entry.remove();
        }
    }
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
}
