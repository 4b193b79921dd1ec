//! An ordered map in chunks that a clone shares until they change: for what few inodes have.
//!
//! It serves the side tables of a tree, which an image is written from while service goes on. A clone costs a
//! reference count a chunk, a change copies a chunk at most.

use std::{
    borrow::Borrow,
    fmt::{self, Debug},
    ops::{Bound, RangeBounds},
    sync::Arc,
};

/// By eye: a chunk of small entries fits a few cache lines' worth of binary search and a cheap copy.
const CHUNK_ENTRIES_MAX: usize = 64;

#[derive(Clone)]
pub(crate) struct SharedMap<K, V> {
    /// None of them is empty; keys ascend within and across them.
    chunks: Vec<Arc<Vec<(K, V)>>>,
    len: usize,
}

/// A chunk and an index in it, which exists unless this is the end: one more than the last chunk, 0.
type Position = (usize, usize);

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Allocated bytes, without what the values own themselves.
    pub fn bytes(&self) -> usize {
        let entries: usize = self.chunks.iter().map(|chunk| chunk.capacity()).sum();
        entries * size_of::<(K, V)>() + self.chunks.len() * 40 + self.chunks.capacity() * 8
    }

    /// The position of the first key that does not come before.
    fn position(&self, is_before: impl Fn(&K) -> bool) -> Position {
        let chunk = self.chunks.partition_point(|chunk| chunk.last().is_some_and(|(key, _)| is_before(key)));
        match self.chunks.get(chunk) {
            Some(entries) => (chunk, entries.partition_point(|(key, _)| is_before(key))),
            None => (chunk, 0),
        }
    }

    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Option<Position>
    where
        K: Borrow<Q>,
    {
        let (chunk, at) = self.position(|other| other.borrow() < key);
        let found = self.chunks.get(chunk)?.get(at)?;
        (found.0.borrow() == key).then_some((chunk, at))
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.find(key).map(|(chunk, at)| &self.chunks[chunk][at].1)
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_some()
    }

    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (chunk, at) = self.find(key)?;
        Some(&mut Arc::make_mut(&mut self.chunks[chunk])[at].1)
    }

    /// Answers the value that the key had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (mut chunk, mut at) = self.position(|other| *other < key);
        if chunk == self.chunks.len() {
            if chunk == 0 {
                self.chunks.push(Arc::default());
            } else {
                chunk -= 1;
                at = self.chunks[chunk].len();
            }
        }
        let entries = Arc::make_mut(&mut self.chunks[chunk]);
        if let Some(entry) = entries.get_mut(at).filter(|entry| entry.0 == key) {
            return Some(std::mem::replace(&mut entry.1, value));
        }
        entries.insert(at, (key, value));
        if entries.len() > CHUNK_ENTRIES_MAX {
            // Keys that only ascend, the usual case, leave full chunks behind.
            let is_last = at + 1 == entries.len();
            let rest = entries.split_off(if is_last { at } else { CHUNK_ENTRIES_MAX / 2 });
            self.chunks.insert(chunk + 1, Arc::new(rest));
        }
        self.len += 1;
        None
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (chunk, at) = self.find(key)?;
        let entries = Arc::make_mut(&mut self.chunks[chunk]);
        let (_, value) = entries.remove(at);
        if entries.is_empty() {
            self.chunks.remove(chunk);
        }
        self.len -= 1;
        Some(value)
    }

    pub fn iter(&self) -> Range<'_, K, V> {
        Range { chunks: &self.chunks, front: (0, 0), back: (self.chunks.len(), 0) }
    }

    /// The entries in a range of keys, in order, from both ends.
    pub fn range(&self, range: impl RangeBounds<K>) -> Range<'_, K, V> {
        let front = match range.start_bound() {
            Bound::Unbounded => (0, 0),
            Bound::Included(key) => self.position(|other| other < key),
            Bound::Excluded(key) => self.position(|other| other <= key),
        };
        let back = match range.end_bound() {
            Bound::Unbounded => (self.chunks.len(), 0),
            Bound::Included(key) => self.position(|other| other <= key),
            Bound::Excluded(key) => self.position(|other| other < key),
        };
        Range { chunks: &self.chunks, front, back }
    }
}

impl<K: Debug + Ord + Clone, V: Debug + Clone> Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

pub(crate) struct Range<'a, K, V> {
    chunks: &'a [Arc<Vec<(K, V)>>],
    front: Position,
    back: Position,
}

impl<'a, K, V> Iterator for Range<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        if self.front >= self.back {
            return None;
        }
        let (chunk, at) = self.front;
        let entries = &self.chunks[chunk];
        self.front = if at + 1 < entries.len() { (chunk, at + 1) } else { (chunk + 1, 0) };
        Some((&entries[at].0, &entries[at].1))
    }
}

impl<K, V> DoubleEndedIterator for Range<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.front >= self.back {
            return None;
        }
        let (chunk, at) = self.back;
        self.back = if at > 0 { (chunk, at - 1) } else { (chunk - 1, self.chunks[chunk - 1].len() - 1) };
        let entry = &self.chunks[self.back.0][self.back.1];
        Some((&entry.0, &entry.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::hash_number;
    use std::collections::BTreeMap;

    #[test]
    fn it_does_what_an_ordinary_map_does_and_a_clone_stays_as_it_was() {
        let (mut map, mut model) = (SharedMap::default(), BTreeMap::new());
        let mut before = None;
        for step in 0..20_000u64 {
            let number = hash_number(1, step);
            let key = number % 1_000;
            if number >> 32 & 3 == 0 {
                assert_eq!(map.remove(&key), model.remove(&key));
            } else {
                assert_eq!(map.insert(key, step), model.insert(key, step));
            }
            assert_eq!(map.len(), model.len());
            if step == 10_000 {
                before = Some((map.clone(), model.clone()));
            }
        }
        let low = 300;
        for (map, model) in before.iter().map(|(map, model)| (map, model)).chain([(&map, &model)]) {
            assert!(map.iter().eq(model.iter()));
            assert!(map.iter().rev().eq(model.iter().rev()));
            assert!(map.range(low..500).eq(model.range(low..500)));
            assert!(map.range(..=low).rev().eq(model.range(..=low).rev()));
            for key in 0..1_000 {
                assert_eq!(map.get(&key), model.get(&key));
            }
        }
        for key in 0..1_000 {
            map.remove(&key);
        }
        assert!(map.is_empty() && map.iter().next().is_none() && map.chunks.is_empty());
    }

    #[test]
    fn keys_that_ascend_fill_their_chunks() {
        let mut map = SharedMap::default();
        (0..6_400).for_each(|key| {
            map.insert(key, ());
        });
        assert_eq!(map.chunks.len(), 100);
    }
}
