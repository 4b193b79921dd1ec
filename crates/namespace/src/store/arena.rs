//! Slots of one type in pages that are shared until they change.

use std::sync::Arc;

/// The handle that names nothing.
pub(crate) const NONE: u32 = u32::MAX;

/// Less than a round number, so that the allocator's size fits: two reference counts precede the slots of a page.
const PAGE_BYTES: usize = 64 * 1024 - 16;

/// A value that, while nobody uses it, remembers the next free slot.
pub(crate) trait Slot: Clone + Default {
    fn next_free(&self) -> u32;
    fn set_next_free(&mut self, next: u32);
}

/// Values by 32-bit handles. A clone shares all pages; the first change of a shared page copies it, so that
/// an image can be written by another thread while service goes on.
#[derive(Clone)]
pub(crate) struct Arena<T> {
    pages: Vec<Arc<[T]>>,
    /// Slots ever handed out; those below it are in use or in the free list.
    used: u32,
    free: u32,
    live: u32,
}

impl<T: Slot> Arena<T> {
    const PER_PAGE: usize = PAGE_BYTES / size_of::<T>();

    pub fn new() -> Self {
        Self { pages: Vec::new(), used: 0, free: NONE, live: 0 }
    }

    pub fn live(&self) -> u32 {
        self.live
    }

    pub fn bytes(&self) -> usize {
        self.pages.len() * (Self::PER_PAGE * size_of::<T>() + 16)
            + self.pages.capacity() * size_of::<Arc<[T]>>()
    }

    pub fn insert(&mut self, value: T) -> u32 {
        self.live += 1;
        if self.free != NONE {
            let handle = self.free;
            let slot = self.get_mut(handle);
            let next = slot.next_free();
            *slot = value;
            self.free = next;
            return handle;
        }
        let handle = self.used;
        assert!(handle < NONE - 1, "an arena is full");
        if handle as usize / Self::PER_PAGE == self.pages.len() {
            self.pages.push((0..Self::PER_PAGE).map(|_| T::default()).collect());
        }
        self.used += 1;
        *self.get_mut(handle) = value;
        handle
    }

    pub fn remove(&mut self, handle: u32) {
        let next = self.free;
        let slot = self.get_mut(handle);
        *slot = T::default();
        slot.set_next_free(next);
        self.free = handle;
        self.live -= 1;
    }

    /// All values with their handles. All values of an arena from which none was ever removed.
    pub fn all(&self) -> impl Iterator<Item = (u32, &T)> {
        assert_eq!(self.live, self.used, "free slots would be taken for values");
        (0..self.used).zip(self.pages.iter().flat_map(|page| page.iter()))
    }

    #[inline]
    pub fn get(&self, handle: u32) -> &T {
        let handle = handle as usize;
        &self.pages[handle / Self::PER_PAGE][handle % Self::PER_PAGE]
    }

    #[inline]
    pub fn get_mut(&mut self, handle: u32) -> &mut T {
        let handle = handle as usize;
        &mut Arc::make_mut(&mut self.pages[handle / Self::PER_PAGE])[handle % Self::PER_PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default, Debug, PartialEq)]
    struct Number(u32);

    impl Slot for Number {
        fn next_free(&self) -> u32 {
            self.0
        }
        fn set_next_free(&mut self, next: u32) {
            self.0 = next;
        }
    }

    #[test]
    fn a_clone_keeps_the_values_that_it_saw() {
        let mut arena = Arena::new();
        let handles: Vec<u32> = (0..50_000).map(|n| arena.insert(Number(n))).collect();
        let before = arena.clone();
        for handle in &handles[..25_000] {
            arena.remove(*handle);
        }
        arena.get_mut(handles[30_000]).0 = 7;
        let reused = arena.insert(Number(99));
        assert_eq!(reused, handles[24_999]);
        assert_eq!(arena.live(), 25_001);
        for (n, handle) in handles.iter().enumerate() {
            assert_eq!(before.get(*handle).0, n as u32);
        }
        assert_eq!(arena.get(handles[30_000]).0, 7);
        assert_eq!(arena.get(reused).0, 99);
    }
}
