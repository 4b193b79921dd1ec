//! Short byte strings in pages that are shared until they change: names, and the nodes of child trees.

use super::arena::NONE;
use std::sync::Arc;

/// Handles count units of four bytes, so that 32 bits reach 16 GiB.
const UNIT: usize = 4;
const PAGE_BYTES: usize = 64 * 1024 - 16;
const PAGE_UNITS: usize = PAGE_BYTES / UNIT;
pub(crate) const PIECE_BYTES_MAX: usize = 512;
const CLASSES: usize = PIECE_BYTES_MAX / UNIT + 1;

/// Pieces of 1 to 512 bytes. The caller remembers the length of each piece. A freed piece is used again for one that
/// needs as many units.
#[derive(Clone)]
pub(crate) struct Heap {
    pages: Vec<Arc<[u8]>>,
    /// The first unit that was never handed out.
    used: u32,
    /// Free pieces by their size in units; each holds the handle of the next.
    free: Box<[u32; CLASSES]>,
}

impl Heap {
    pub fn new() -> Self {
        Self { pages: Vec::new(), used: 0, free: Box::new([NONE; CLASSES]) }
    }

    pub fn bytes(&self) -> usize {
        self.pages.len() * (PAGE_BYTES + 16) + self.pages.capacity() * size_of::<Arc<[u8]>>()
    }

    /// A piece of `length` bytes; what is in it is unspecified.
    pub fn allocate(&mut self, length: usize) -> u32 {
        assert!((1..=PIECE_BYTES_MAX).contains(&length), "a piece of {length} bytes");
        let units = length.div_ceil(UNIT);
        let free = self.free[units];
        if free != NONE {
            self.free[units] = self.u32_at(free, 0);
            return free;
        }
        let left = (self.pages.len() * PAGE_UNITS) as u64 - u64::from(self.used);
        if left < units as u64 {
            if left > 0 {
                self.release_units(self.used, left as usize);
            }
            assert!(self.pages.len() * PAGE_UNITS + PAGE_UNITS < NONE as usize, "a heap is full");
            self.used = (self.pages.len() * PAGE_UNITS) as u32;
            self.pages.push(std::iter::repeat_n(0, PAGE_BYTES).collect());
        }
        let handle = self.used;
        self.used += units as u32;
        handle
    }

    pub fn insert(&mut self, bytes: &[u8]) -> u32 {
        if bytes.is_empty() {
            return NONE;
        }
        let handle = self.allocate(bytes.len());
        self.get_mut(handle, bytes.len()).copy_from_slice(bytes);
        handle
    }

    pub fn release(&mut self, handle: u32, length: usize) {
        if length > 0 {
            self.release_units(handle, length.div_ceil(UNIT));
        }
    }

    fn release_units(&mut self, handle: u32, units: usize) {
        let next = self.free[units];
        self.get_mut(handle, UNIT).copy_from_slice(&next.to_le_bytes());
        self.free[units] = handle;
    }

    #[inline]
    pub fn get(&self, handle: u32, length: usize) -> &[u8] {
        if length == 0 {
            return &[];
        }
        let handle = handle as usize;
        let start = handle % PAGE_UNITS * UNIT;
        &self.pages[handle / PAGE_UNITS][start..start + length]
    }

    #[inline]
    pub fn get_mut(&mut self, handle: u32, length: usize) -> &mut [u8] {
        let handle = handle as usize;
        let start = handle % PAGE_UNITS * UNIT;
        &mut Arc::make_mut(&mut self.pages[handle / PAGE_UNITS])[start..start + length]
    }

    #[inline]
    pub fn u32_at(&self, handle: u32, offset: usize) -> u32 {
        let handle = handle as usize;
        let start = handle % PAGE_UNITS * UNIT + offset;
        let bytes = &self.pages[handle / PAGE_UNITS][start..start + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_their_bytes_and_are_used_again() {
        let mut heap = Heap::new();
        let text = |n: usize| format!("{n:0width$}", width = 1 + n % 300).into_bytes();
        let handles: Vec<u32> = (0..5_000).map(|n| heap.insert(&text(n))).collect();
        let before = heap.clone();
        for (n, handle) in handles.iter().enumerate().filter(|(n, _)| n % 2 == 0) {
            heap.release(*handle, text(n).len());
        }
        let size = heap.bytes();
        for n in (0..5_000).step_by(2) {
            heap.insert(&text(n));
        }
        assert_eq!(heap.bytes(), size);
        for (n, handle) in handles.iter().enumerate() {
            assert_eq!(before.get(*handle, text(n).len()), text(n));
            if n % 2 == 1 {
                assert_eq!(heap.get(*handle, text(n).len()), text(n));
            }
        }
    }
}
