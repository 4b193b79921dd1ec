//! The directory log as a tree knows it: how far the tree has come, which groups follow the log, and, in the root group, the entries that
//! some group may lack.
//!
//! The root group keeps these entries in its tree. So every member of it has them, also one that starts from an image, and a new
//! active has nothing to look for. They are dropped when every group has carried them out.

use crate::{digest::Digester, slots::Slots};
use base::{
    GroupId,
    directory_log::{Dix, Entry, Point},
};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

/// How many entries stand in one piece of memory, which clones of the tree share. They are dropped together.
const CHUNK: u64 = 256;

/// An entry takes fewer bytes in an image: it is an edit, which has its place in one record of the journal.
pub(crate) const ENTRY_BYTES_LIMIT: u64 = 1 << 26;

/// See the module's documentation. The default is that of a namespace with one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirectoryLog {
    /// The last entry that this tree contains.
    pub end: Point,
    /// The groups that hold a part of the namespace, without the root group.
    pub groups: BTreeSet<GroupId>,
    /// The home of each directory.
    pub slots: Slots,
    /// Empty in all groups but the root group.
    pub kept: Kept,
}

/// Entries in their order, up to the end of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    /// The place before the first entry.
    base: Point,
    /// The entries whose numbers less one, divided by [`CHUNK`], are equal stand together.
    chunks: VecDeque<Arc<Vec<Entry>>>,
    bytes: usize,
    /// Those among them that take a snapshot.
    snapshots: VecDeque<Dix>,
    /// Every entry up to this one is known to be visible.
    visible: Dix,
}

impl DirectoryLog {
    pub fn is_unused(&self) -> bool {
        self.end == Point::default() && self.groups.is_empty()
    }

    /// Appends the next entry, which the root group has planned. `takes_snapshot` as of [`Kept::push`].
    ///
    /// # Panics
    /// It is not the next entry: the log of this group and its tree went apart.
    pub fn push(&mut self, entry: Entry, takes_snapshot: bool) {
        let is_next = entry.dix == self.end.dix.next() && entry.previous_chain == self.end.chain;
        assert!(is_next, "entry {} of the directory log does not follow {}", entry.dix, self.end);
        self.end = entry.point();
        self.kept.push(entry, takes_snapshot);
    }

    pub fn digest(&self) -> u64 {
        let mut digester = Digester::new(b'g');
        let numbers = [
            self.end.dix.0,
            self.end.chain.0,
            self.kept.base.dix.0,
            self.kept.base.chain.0,
            self.kept.visible.0,
            self.groups.len() as u64,
        ];
        numbers.into_iter().for_each(|number| digester.number(number));
        self.groups.iter().for_each(|group| digester.number(group.0.into()));
        self.slots.digest(&mut digester);
        digester.finish()
    }
}

impl Kept {
    /// No entry yet: the first one to be pushed is the one behind `base`.
    pub fn behind(base: Point, visible: Dix) -> Self {
        Self { base, visible, ..Self::default() }
    }

    /// `takes_snapshot`: the entry takes a snapshot, or this release cannot read it ([`crate::edit::plain::takes_snapshot`]).
    pub fn push(&mut self, entry: Entry, takes_snapshot: bool) {
        self.bytes += entry.bytes();
        if takes_snapshot {
            self.snapshots.push_back(entry.dix);
        }
        let is_first_of_chunk = (entry.dix.0 - 1).is_multiple_of(CHUNK);
        match self.chunks.back_mut().filter(|_| !is_first_of_chunk) {
            Some(chunk) => Arc::make_mut(chunk).push(entry),
            None => self.chunks.push_back(Arc::new(vec![entry])),
        }
    }

    /// Notes that entries up to `visible` are visible, and that none up to `dropped` is needed any more.
    pub fn note(&mut self, visible: Dix, dropped: Dix) {
        self.visible = self.visible.max(visible);
        let dropped = dropped.min(self.visible);
        while let Some(last) = self.chunks.front().and_then(|chunk| chunk.last())
            && last.dix <= dropped
            && self.chunks.len() > 1
        {
            self.base = last.point();
            let gone = self.chunks.pop_front().expect("looked at above");
            self.bytes -= gone.iter().map(Entry::bytes).sum::<usize>();
        }
        while self.snapshots.pop_front_if(|dix| *dix <= self.base.dix).is_some() {}
    }

    /// Whether entries were dropped as every member drops them, which makes equal digests.
    pub fn is_cut_like_others(&self) -> bool {
        self.base.dix.0.is_multiple_of(CHUNK) && !self.chunks.is_empty()
    }

    pub fn base(&self) -> Point {
        self.base
    }

    pub fn visible(&self) -> Dix {
        self.visible
    }

    /// The bytes that they take in memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn len(&self) -> u64 {
        let last = self.chunks.back().and_then(|chunk| chunk.last());
        last.map_or(0, |last| last.dix.0 - self.base.dix.0)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// The entries behind this place, which must not lie before the base.
    pub fn after(&self, after: Dix) -> impl Iterator<Item = &Entry> {
        let chunk_of = |dix: Dix| dix.0.saturating_sub(1) / CHUNK;
        let skipped = chunk_of(after.next()).saturating_sub(chunk_of(self.base.dix.next())) as usize;
        let chunks = self.chunks.iter().skip(skipped);
        chunks.flat_map(|chunk| chunk.iter()).skip_while(move |entry| entry.dix <= after)
    }

    /// The entries behind this place that take a snapshot, the latest first.
    pub fn snapshots_after(&self, after: Dix) -> impl Iterator<Item = &Entry> {
        let latest = self.snapshots.iter().rev().take_while(move |dix| **dix > after);
        latest.filter_map(|dix| self.after(Dix(dix.0 - 1)).next())
    }

    /// The point at this place, which must not lie before the base. `None`: it does.
    pub fn point(&self, dix: Dix) -> Option<Point> {
        if dix <= self.base.dix {
            return Some(self.base).filter(|base| base.dix == dix);
        }
        let before = Dix(dix.0 - 1);
        self.after(before).next().map(Entry::point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Epoch;
    use bytes::Bytes;

    fn log(count: u64) -> DirectoryLog {
        let mut log = DirectoryLog::default();
        for number in 1..=count {
            let payload = Bytes::copy_from_slice(&number.to_le_bytes());
            log.push(Entry::after(log.end, Epoch(1), None, Arc::new([]), payload), false);
        }
        log
    }

    #[test]
    fn entries_are_found_by_their_place_and_dropped_when_nobody_needs_them() {
        let mut log = log(1_000);
        assert_eq!(log.kept.len(), 1_000);
        let place = |log: &DirectoryLog, after| log.kept.after(Dix(after)).next().map(|entry| entry.dix.0);
        for after in [0, 1, 255, 256, 257, 998] {
            assert_eq!(place(&log, after), Some(after + 1));
        }
        assert_eq!((place(&log, 999), place(&log, 1_000)), (Some(1_000), None));
        assert_eq!(log.kept.point(Dix(1_000)), Some(log.end));
        assert_eq!(log.kept.point(Dix(1_001)), None);

        let before = log.clone();
        log.kept.note(Dix(300), Dix(900));
        assert_eq!(log.kept.base().dix, Dix(256), "what may be in doubt stays, and a chunk goes as a whole");
        assert_eq!(log.kept.point(Dix(256)), before.kept.point(Dix(256)));
        assert_eq!(
            (log.kept.point(Dix(255)), place(&log, 256), place(&log, 999)),
            (None, Some(257), Some(1_000))
        );
        assert!(log.digest() != before.digest() && log.kept.bytes() < before.kept.bytes());
        log.kept.note(Dix(1_000), Dix(1_000));
        assert_eq!(log.kept.base().dix, Dix(768));
        assert_eq!(log.kept.len(), 232);
    }

    #[test]
    fn snapshots_are_found_among_the_entries_until_these_are_dropped() {
        let mut log = DirectoryLog::default();
        for number in 1..=600 {
            let entry = Entry::after(log.end, Epoch(1), None, Arc::new([]), Bytes::new());
            log.push(entry, matches!(number, 100 | 300 | 301));
        }
        let after = |log: &DirectoryLog, after| {
            log.kept.snapshots_after(Dix(after)).map(|entry| entry.dix.0).collect::<Vec<_>>()
        };
        assert_eq!(after(&log, 0), [301, 300, 100]);
        assert_eq!(after(&log, 99), [301, 300, 100]);
        assert_eq!(after(&log, 100), [301, 300]);
        assert_eq!(after(&log, 300), [301]);
        assert!(after(&log, 301).is_empty());
        log.kept.note(Dix(600), Dix(256));
        assert_eq!(after(&log, 256), [301, 300]);
        assert_eq!(log.kept.snapshots.len(), 2, "what is dropped is forgotten here as well");
    }
}
