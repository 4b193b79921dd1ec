//! The end of the log in memory: all entries that are not known to have committed, and some that have.

use base::{Entry, EntryKind, LogPoint, Sn};
use std::collections::VecDeque;

/// Entries after `base`, without gaps. Everything up to `base` has committed and is on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tail {
    base: LogPoint,
    entries: VecDeque<(Entry, LogPoint)>,
    bytes: usize,
}

/// The memory that an entry takes beside its payload, in bytes.
const ENTRY_BYTES: usize = 96;

impl Tail {
    pub fn new(base: LogPoint, entries: Vec<Entry>) -> Self {
        let mut tail = Self { base, entries: VecDeque::with_capacity(entries.len()), bytes: 0 };
        entries.into_iter().for_each(|entry| {
            tail.push(entry);
        });
        tail
    }

    pub fn base(&self) -> LogPoint {
        self.base
    }

    pub fn end(&self) -> LogPoint {
        self.entries.back().map_or(self.base, |(_, point)| *point)
    }

    /// The entry with this number; `None` before the base or behind the end.
    pub fn point_at(&self, sn: Sn) -> Option<LogPoint> {
        if sn == self.base.id.sn {
            return Some(self.base);
        }
        let index = sn.0.checked_sub(self.base.id.sn.0 + 1)?;
        self.entries.get(usize::try_from(index).ok()?).map(|(_, point)| *point)
    }

    pub fn holds(&self, point: LogPoint) -> bool {
        self.point_at(point.id.sn) == Some(point)
    }

    /// The entry must follow the end.
    pub fn push(&mut self, entry: Entry) -> LogPoint {
        let end = self.end();
        assert!(
            entry.id.sn.0 == end.id.sn.0 + 1
                && entry.previous_chain == end.chain
                && entry.id.epoch >= end.id.epoch,
            "entry {} does not follow {end}",
            entry.id
        );
        let point = entry.point();
        self.bytes += entry.payload.len() + ENTRY_BYTES;
        self.entries.push_back((entry, point));
        point
    }

    /// Removes everything after `sn`, which is not before the base.
    pub fn cut(&mut self, sn: Sn) {
        assert!(sn >= self.base.id.sn, "what has committed is not cut off");
        while self.end().id.sn > sn {
            let (entry, _) = self.entries.pop_back().expect("it is behind the base");
            self.bytes -= entry.payload.len() + ENTRY_BYTES;
        }
    }

    /// Entries from `first` on, at most so many bytes of them but at least one, and the point before them.
    /// `first` is behind the base.
    pub fn read(&self, first: Sn, bytes_max: usize) -> (LogPoint, Vec<Entry>) {
        let previous = self.point_at(Sn(first.0 - 1)).expect("within the tail");
        let index = (first.0 - self.base.id.sn.0 - 1) as usize;
        let mut bytes = 0;
        let entries = self
            .entries
            .range(index.min(self.entries.len())..)
            .take_while(|(entry, _)| {
                let is_first = bytes == 0;
                bytes += entry.payload.len() + ENTRY_BYTES;
                is_first || bytes <= bytes_max
            })
            .map(|(entry, _)| entry.clone())
            .collect();
        (previous, entries)
    }

    /// The entries after `after` up to `up_to`, both within the tail.
    pub fn between(&self, after: Sn, up_to: Sn) -> Vec<Entry> {
        let index = |sn: Sn| (sn.0 - self.base.id.sn.0) as usize;
        self.entries.range(index(after)..index(up_to)).map(|(entry, _)| entry.clone()).collect()
    }

    /// The last entry after `after`, which is within the tail, that is more than the beginning of an epoch; `after` itself where
    /// there is none.
    pub fn last_beside_starts(&self, after: Sn) -> LogPoint {
        let entries = self.entries.iter().rev().take_while(|(entry, _)| entry.id.sn > after);
        let mut others = entries.filter(|(entry, _)| entry.kind != EntryKind::EpochStart);
        others.next().map_or_else(|| self.point_at(after).unwrap_or(self.base), |(_, point)| *point)
    }

    /// The first entry of the last epoch of which more than the first is here. An active appends nothing else before its first entry
    /// has committed: so that one has.
    pub fn proved(&self) -> Option<Sn> {
        let is_start = |entry: &Entry| entry.kind == EntryKind::EpochStart;
        let (last, _) = self.entries.iter().rev().find(|(entry, _)| !is_start(entry))?;
        let of_it = |entry: &Entry| is_start(entry) && entry.id.epoch == last.id.epoch;
        self.entries.iter().rev().find(|(entry, _)| of_it(entry)).map(|(entry, _)| entry.id.sn)
    }

    /// Lets go of the oldest entries up to `sn`, as long as more than `bytes` are held.
    pub fn forget(&mut self, sn: Sn, bytes: usize) {
        while self.bytes > bytes && self.entries.front().is_some_and(|(entry, _)| entry.id.sn <= sn) {
            let (entry, point) = self.entries.pop_front().expect("there is a front");
            self.bytes -= entry.payload.len() + ENTRY_BYTES;
            self.base = point;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Epoch;
    use bytes::Bytes;

    fn tail(count: u64) -> Tail {
        let mut tail = Tail::new(LogPoint::default(), Vec::new());
        for _ in 0..count {
            let entry = Entry::after(tail.end(), Epoch(1), EntryKind::Operation, Bytes::from_static(b"edit"));
            tail.push(entry);
        }
        tail
    }

    #[test]
    fn what_is_behind_the_base_is_unknown() {
        let mut tail = tail(5);
        let third = tail.point_at(Sn(3)).unwrap();
        tail.forget(Sn(3), 0);
        assert_eq!((tail.base(), tail.point_at(Sn(2))), (third, None));
        assert_eq!(tail.end().id.sn, Sn(5));
        assert!(tail.holds(third) && tail.point_at(Sn(6)).is_none());
        let (previous, entries) = tail.read(Sn(4), 1);
        assert_eq!((previous, entries.len()), (third, 1));
        assert_eq!(tail.read(Sn(6), 1).1, []);
        assert_eq!(tail.between(Sn(3), Sn(5)).len(), 2);
    }

    #[test]
    fn a_cut_tail_takes_other_entries() {
        let mut tail = tail(5);
        let old = tail.end();
        tail.cut(Sn(4));
        let other = Entry::after(tail.end(), Epoch(2), EntryKind::Operation, Bytes::from_static(b"other"));
        tail.push(other);
        assert!(!tail.holds(old) && tail.end().id.epoch == Epoch(2));
    }
}
