//! From an inode's id to its handle.

use super::{arena::Arena, inode::Inode};
use crate::digest::hash_number;
use base::InodeId;
use hashbrown::HashTable;

/// Enough that one table of a namespace of 100 M inodes grows in about a millisecond; a power of two.
const SHARDS: usize = 4_096;

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

    /// The low bits of the hash choose the shard; hashbrown takes the position from the low bits of what it
    /// is given and its tag from the highest.
    fn place(&self, id: InodeId) -> (usize, u64) {
        let hash = hash_number(self.seed, id.0);
        (hash as usize % SHARDS, hash.rotate_right(12))
    }

    pub fn find(&self, inodes: &Arena<Inode>, id: InodeId) -> Option<u32> {
        let (shard, hash) = self.place(id);
        self.shards[shard].find(hash, |handle| inodes.get(*handle).id() == id).copied()
    }

    pub fn insert(&mut self, inodes: &Arena<Inode>, id: InodeId, handle: u32) {
        let (shard, hash) = self.place(id);
        let seed = self.seed;
        let rehash = |handle: &u32| hash_number(seed, inodes.get(*handle).id().0).rotate_right(12);
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
