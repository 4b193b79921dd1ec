//! The names of inodes. Short ones (`_SUCCESS`, `part-00000`, `dt=2026-01-01`) are repeated in directory after
//! directory: each is kept once. Long ones are mostly unique, and would only pay for an index.

use super::{arena::NONE, heap::Heap};
use crate::digest::SeededHash;
use hashbrown::HashTable;

/// Bytes of the longest name that is shared. Up to here a repeated name saves more than a unique one costs;
/// chosen by what such names look like.
const SHORT_MAX: usize = 15;

/// A shared name is preceded by four bytes: its length, and how many inodes have it.
const HEADER: usize = 4;
const USES_MAX: u32 = (1 << 24) - 1;

/// Finds shared names in the heap. Handles lead to the bytes, whether shared or not.
pub(crate) struct NameIndex {
    hash: SeededHash,
    handles: HashTable<u32>,
}

fn header(heap: &Heap, handle: u32) -> (usize, u32) {
    let header = heap.u32_at(handle - 1, 0);
    ((header & 0xff) as usize, header >> 8)
}

fn set_header(heap: &mut Heap, handle: u32, length: usize, uses: u32) {
    heap.get_mut(handle - 1, HEADER).copy_from_slice(&(uses << 8 | length as u32).to_le_bytes());
}

fn shared(heap: &Heap, handle: u32) -> &[u8] {
    heap.get(handle, header(heap, handle).0)
}

impl NameIndex {
    pub fn new(seed: u64) -> Self {
        Self { hash: SeededHash::new(seed), handles: HashTable::new() }
    }

    pub fn bytes(&self) -> usize {
        self.handles.allocation_size()
    }

    /// Counts one more use of a name, and stores it if it is new.
    pub fn acquire(&mut self, heap: &mut Heap, name: &[u8]) -> u32 {
        if name.is_empty() {
            return NONE;
        }
        if name.len() > SHORT_MAX {
            return heap.insert(name);
        }
        let hash = self.hash.bytes(name);
        if let Ok(entry) = self.handles.find_entry(hash, |handle| shared(heap, *handle) == name) {
            let handle = *entry.get();
            let (length, uses) = header(heap, handle);
            if uses < USES_MAX {
                set_header(heap, handle, length, uses + 1);
                return handle;
            }
            // It is as good as another name now: the next inodes share a new copy.
            entry.remove();
        }
        let handle = heap.allocate(HEADER + name.len()) + 1;
        set_header(heap, handle, name.len(), 1);
        heap.get_mut(handle, name.len()).copy_from_slice(name);
        self.handles.insert_unique(hash, handle, |handle| self.hash.bytes(shared(heap, *handle)));
        handle
    }

    pub fn release(&mut self, heap: &mut Heap, handle: u32, length: usize) {
        if length > SHORT_MAX || length == 0 {
            heap.release(handle, length);
            return;
        }
        let (_, uses) = header(heap, handle);
        if uses > 1 {
            set_header(heap, handle, length, uses - 1);
            return;
        }
        let hash = self.hash.bytes(heap.get(handle, length));
        if let Ok(entry) = self.handles.find_entry(hash, |other| *other == handle) {
            entry.remove();
        }
        heap.release(handle - 1, HEADER + length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_kept_once_as_long_as_it_is_used() {
        let (mut heap, mut index) = (Heap::new(), NameIndex::new(1));
        let first = index.acquire(&mut heap, b"part-00000");
        let other = index.acquire(&mut heap, b"part-00001");
        let long = index.acquire(&mut heap, b"a name that is not short");
        assert_eq!(index.acquire(&mut heap, b"part-00000"), first);
        assert_ne!(index.acquire(&mut heap, b"a name that is not short"), long);
        index.release(&mut heap, first, 10);
        assert_eq!(heap.get(first, 10), b"part-00000");
        index.release(&mut heap, first, 10);
        assert_eq!(heap.get(other, 10), b"part-00001");
        assert_eq!(index.handles.len(), 1);
        assert_eq!(index.acquire(&mut heap, b"part-00002"), first);
    }

    #[test]
    fn a_name_with_too_many_uses_is_copied() {
        let (mut heap, mut index) = (Heap::new(), NameIndex::new(1));
        let first = index.acquire(&mut heap, b"x");
        set_header(&mut heap, first, 1, USES_MAX);
        let second = index.acquire(&mut heap, b"x");
        assert_ne!(first, second);
        assert_eq!(index.acquire(&mut heap, b"x"), second);
        set_header(&mut heap, first, 1, 1);
        index.release(&mut heap, first, 1);
        assert_eq!(index.acquire(&mut heap, b"x"), second);
    }
}
