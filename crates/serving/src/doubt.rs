//! The marks of entries that are not certain yet. They are in doubt.
//!
//! A reader that saw one of them must not answer before its entry is certain; all other readers answer at
//! once. The table is changed under the namespace's write lock and asked under its read lock, and is empty
//! whenever no write is under way.

use crate::until::{LOGS, Log, Until};
use base::Sn;
use hashbrown::HashTable;
use namespace::Mark;
use std::collections::VecDeque;

/// The marks of the entries in doubt, of `N` logs.
#[derive(Debug)]
pub struct Doubt<const N: usize = LOGS> {
    /// Of each log the last entry in doubt that left the mark.
    last: HashTable<(Mark, Until<N>)>,
    /// The marks of each log in the order of its entries, to forget them when they become certain.
    order: [VecDeque<(Sn, Mark)>; N],
}

impl<const N: usize> Default for Doubt<N> {
    fn default() -> Self {
        Self { last: HashTable::new(), order: std::array::from_fn(|_| VecDeque::new()) }
    }
}

impl<const N: usize> Doubt<N> {
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// Whether nothing of this log is in doubt.
    pub fn is_clear_of(&self, log: Log) -> bool {
        self.order[log.place()].is_empty()
    }

    /// The entry `sn` of a log has left these marks. The entries of one log come in their order.
    pub fn touch(&mut self, log: Log, sn: Sn, footprint: &[Mark]) {
        for mark in footprint {
            match self.last.find_mut(mark.hash(), |known| known.0 == *mark) {
                Some(known) => known.1.set(log, sn),
                None => {
                    let new = (*mark, Until::entry(log, sn));
                    self.last.insert_unique(mark.hash(), new, |known| known.0.hash());
                }
            }
            self.order[log.place()].push_back((sn, *mark));
        }
    }

    /// Forgets what is certain by now. The writer calls this before each batch, so the table is never larger than the
    /// entries in doubt.
    pub fn forget(&mut self, log: Log, certain: Sn) {
        let order = &mut self.order[log.place()];
        while let Some(&(sn, mark)) = order.front() {
            if sn > certain {
                break;
            }
            order.pop_front();
            let is_it = |known: &(Mark, Until<N>)| known.0 == mark && known.1.of(log) == sn;
            if let Ok(mut known) = self.last.find_entry(mark.hash(), is_it) {
                known.get_mut().1.set(log, Sn(0));
                if known.get().1 == Until::NOW {
                    known.remove();
                }
            }
        }
    }

    /// What has to be certain before an answer that rests on these may go out.
    pub fn until(&self, seen: &[Mark]) -> Until<N> {
        if self.is_empty() {
            return Until::NOW;
        }
        let left_by = |mark: &Mark| self.last.find(mark.hash(), |known| known.0 == *mark);
        seen.iter().filter_map(left_by).fold(Until::NOW, |until, known| until.and(known.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Timestamp;
    use namespace::{Namespace, Reach};

    fn marks<const N: usize>(paths: [&str; N]) -> [Mark; N] {
        let world = Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1));
        paths.map(|path| {
            let mut seen = Vec::new();
            assert!(world.seen_on(path, Reach::Itself, &mut seen));
            // The root's passage is common to all of them.
            seen.pop().expect("the entry that is not there")
        })
    }

    #[test]
    fn only_what_an_edit_in_flight_touched_has_to_wait() {
        let [a, b, c] = marks(["/a", "/b", "/c"]);
        let mut doubt = Doubt::<1>::default();
        doubt.touch(Log::OWN, Sn(10), &[a, b]);
        doubt.touch(Log::OWN, Sn(11), &[b]);
        assert_eq!(doubt.until(&[a, c]), Until::own(Sn(10)));
        assert_eq!(doubt.until(&[a, b]), Until::own(Sn(11)));
        assert_eq!(doubt.until(&[c]), Until::NOW);
        doubt.forget(Log::OWN, Sn(10));
        assert_eq!(doubt.until(&[a]), Until::NOW);
        assert_eq!(doubt.until(&[b]), Until::own(Sn(11)));
        doubt.forget(Log::OWN, Sn(11));
        assert!(doubt.is_empty());
    }

    /// As with a log of directories beside the own one: it numbers its entries for itself, and they become certain by a
    /// rule of its own.
    #[test]
    fn doubts_of_two_logs_end_independently() {
        const OTHER: Log = Log::at(1);
        let [a, b, c] = marks(["/a", "/b", "/c"]);
        let mut doubt = Doubt::<2>::default();
        doubt.touch(OTHER, Sn(3), &[a, b]);
        doubt.touch(Log::OWN, Sn(100), &[b, c]);
        doubt.touch(OTHER, Sn(4), &[c]);
        assert_eq!(doubt.until(&[a]), Until::entry(OTHER, Sn(3)));
        assert_eq!(doubt.until(&[b]), Until::own(Sn(100)).and(Until::entry(OTHER, Sn(3))));
        // The own log is far ahead, and that says nothing about the other.
        doubt.forget(Log::OWN, Sn(100));
        assert_eq!(doubt.until(&[a, b]), Until::entry(OTHER, Sn(3)));
        assert_eq!(doubt.until(&[c]), Until::entry(OTHER, Sn(4)));
        // Nor does the other about the own log.
        doubt.touch(Log::OWN, Sn(101), &[a]);
        doubt.forget(OTHER, Sn(4));
        assert_eq!(doubt.until(&[a, b, c]), Until::own(Sn(101)));
        doubt.forget(Log::OWN, Sn(101));
        assert!(doubt.is_empty());
    }
}
