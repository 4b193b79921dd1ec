//! The entries applied of late, handed to the index of older calls by the thread that applied them.
//!
//! That thread has the edit in its hand, while the index would have to read it back from the journal. The feed is a
//! convenience only: where it has a gap, the index reads the journal, so anything may be left out here at any time.

use base::Sn;
use namespace::older_calls::Noted;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering},
};

/// Three megabytes: what a busy server applies in half a second. With more the index is read from the journal.
const NOTED_MAX: usize = 1 << 16;

/// Entries without a gap, the last of which is the latest that was applied.
#[derive(Default)]
pub struct Feed {
    is_open: AtomicBool,
    noted: Mutex<VecDeque<Noted>>,
}

/// The feed's answer about the entries behind the index's end.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// The next entries; there may be none.
    Next(Vec<Noted>),
    /// The entries up to this one have to be read from the journal first.
    ReadUpTo(Sn),
}

impl Feed {
    /// Opens the feed: from now on it is given the entries that are applied.
    pub fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    /// There is no index any more.
    pub fn close(&self) {
        self.is_open.store(false, Ordering::Release);
        *self.noted.lock() = VecDeque::new();
    }

    /// Whether what is applied is wanted.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Takes entries that follow each other, in the order in which they were applied, and leaves `noted` empty.
    pub fn push(&self, noted: &mut Vec<Noted>) {
        let Some(first) = noted.first() else { return };
        let mut held = self.noted.lock();
        let goes_on = held.back().is_none_or(|last| last.at().0 + 1 == first.at().0);
        if !goes_on || held.len() + noted.len() > NOTED_MAX {
            held.clear();
        }
        held.extend(noted.drain(..));
    }

    /// Takes at most `count` entries behind `after`, none of them behind `up_to`.
    pub fn take(&self, after: Sn, up_to: Sn, count: usize) -> Taken {
        let mut held = self.noted.lock();
        while held.front().is_some_and(|first| first.at() <= after) {
            held.pop_front();
        }
        let Some(first) = held.front().map(Noted::at) else { return Taken::ReadUpTo(up_to) };
        if first.0 > after.0 + 1 {
            return Taken::ReadUpTo(up_to.min(Sn(first.0 - 1)));
        }
        let ready = (up_to.0.saturating_sub(after.0)).min(held.len() as u64).min(count as u64) as usize;
        Taken::Next(held.drain(..ready).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(of: std::ops::RangeInclusive<u64>) -> Vec<Noted> {
        of.map(|at| Noted::no_edit(Sn(at))).collect()
    }

    fn fed(parts: &[std::ops::RangeInclusive<u64>]) -> Feed {
        let feed = Feed::default();
        feed.open();
        parts.iter().for_each(|part| feed.push(&mut entries(part.clone())));
        feed
    }

    #[test]
    fn what_has_committed_is_handed_over_in_order_and_once() {
        let feed = fed(&[5..=7, 8..=9]);
        assert_eq!(feed.take(Sn(4), Sn(8), 3), Taken::Next(entries(5..=7)));
        assert_eq!(feed.take(Sn(7), Sn(8), 3), Taken::Next(entries(8..=8)));
        assert_eq!(feed.take(Sn(8), Sn(8), 3), Taken::Next(vec![]), "9 has not committed");
        assert_eq!(feed.take(Sn(8), Sn(9), 3), Taken::Next(entries(9..=9)));
    }

    #[test]
    fn the_journal_is_read_where_the_feed_has_a_gap() {
        let feed = fed(&[5..=7]);
        assert_eq!(feed.take(Sn(2), Sn(7), 9), Taken::ReadUpTo(Sn(4)));
        assert_eq!(feed.take(Sn(2), Sn(3), 9), Taken::ReadUpTo(Sn(3)), "no further than what has committed");
        assert_eq!(feed.take(Sn(4), Sn(7), 9), Taken::Next(entries(5..=7)));
        assert_eq!(feed.take(Sn(7), Sn(9), 9), Taken::ReadUpTo(Sn(9)), "nothing is held");
    }

    #[test]
    fn entries_that_the_index_has_read_from_the_journal_are_dropped() {
        let feed = fed(&[5..=9]);
        assert_eq!(feed.take(Sn(7), Sn(9), 9), Taken::Next(entries(8..=9)));
    }

    #[test]
    fn only_the_latest_entries_without_a_gap_are_held() {
        let feed = fed(&[5..=7, 9..=10]);
        assert_eq!(feed.take(Sn(4), Sn(10), 9), Taken::ReadUpTo(Sn(8)));
        let many = NOTED_MAX as u64;
        let feed = fed(&[1..=many, many + 1..=many + 1]);
        assert_eq!(feed.take(Sn(0), Sn(many + 1), 9), Taken::ReadUpTo(Sn(many)), "the memory is bounded");
    }

    #[test]
    fn a_feed_that_was_closed_holds_nothing() {
        let feed = fed(&[5..=7]);
        feed.close();
        assert!(!feed.is_open());
        feed.open();
        assert_eq!(feed.take(Sn(4), Sn(7), 9), Taken::ReadUpTo(Sn(7)));
    }
}
