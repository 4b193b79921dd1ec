//! Names of users, groups, clients and machines: each is kept once, as long as something uses it.

use super::arena::{Arena, NONE, Slot};
use crate::digest::SeededHash;
use hashbrown::HashTable;
use std::sync::Arc;

/// Bytes of the name of a user, group, client or machine. Far above what anybody uses; it bounds what an
/// image may hold.
pub(crate) const TEXT_BYTES_MAX: usize = 1_024;

#[derive(Clone)]
pub(crate) struct Text {
    text: Arc<str>,
    uses: u32,
    next_free: u32,
}

impl Default for Text {
    fn default() -> Self {
        // An empty `Arc<str>` would be an allocation for each slot of a page.
        static EMPTY: std::sync::LazyLock<Arc<str>> = std::sync::LazyLock::new(|| Arc::from(""));
        Self { text: EMPTY.clone(), uses: 0, next_free: NONE }
    }
}

impl Slot for Text {
    fn next_free(&self) -> u32 {
        self.next_free
    }
    fn set_next_free(&mut self, next: u32) {
        self.next_free = next;
    }
}

/// Strings by handle.
pub(crate) type Strings = Arena<Text>;

impl Strings {
    pub fn text(&self, handle: u32) -> &str {
        &self.get(handle).text
    }

    pub fn shared(&self, handle: u32) -> &Arc<str> {
        &self.get(handle).text
    }
}

/// Finds the handle of a string.
pub(crate) struct StringIndex {
    hash: SeededHash,
    handles: HashTable<u32>,
}

impl StringIndex {
    pub fn new(seed: u64) -> Self {
        Self { hash: SeededHash::new(seed), handles: HashTable::new() }
    }

    pub fn bytes(&self) -> usize {
        self.handles.allocation_size()
    }

    /// Counts one more use of `text`, and stores it if it is new.
    pub fn acquire(&mut self, strings: &mut Strings, text: &str) -> u32 {
        let hash = self.hash.bytes(text.as_bytes());
        if let Some(handle) = self.handles.find(hash, |handle| strings.text(*handle) == text) {
            strings.get_mut(*handle).uses += 1;
            return *handle;
        }
        let handle = strings.insert(Text { text: text.into(), uses: 1, next_free: NONE });
        self.handles.insert_unique(hash, handle, |handle| self.hash.bytes(strings.text(*handle).as_bytes()));
        handle
    }

    pub fn release(&mut self, strings: &mut Strings, handle: u32) {
        let slot = strings.get_mut(handle);
        slot.uses -= 1;
        if slot.uses > 0 {
            return;
        }
        let hash = self.hash.bytes(strings.text(handle).as_bytes());
        if let Ok(entry) = self.handles.find_entry(hash, |other| *other == handle) {
            entry.remove();
        }
        strings.remove(handle);
    }
}
