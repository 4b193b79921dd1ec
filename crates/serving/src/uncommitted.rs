//! The inodes that were touched by edits which are applied but not yet committed.
//!
//! A reader that saw some of it must not answer before that edit's commit; all other readers answer at
//! once. The table is changed under the namespace's write lock and asked under its read lock, and is empty
//! whenever no write is under way.

use base::Sn;
use hashbrown::HashTable;
use namespace::Mark;
use std::collections::VecDeque;

/// The marks of the edits in flight.
#[derive(Debug, Default)]
pub struct Uncommitted {
    /// The last uncommitted edit that left the mark.
    last: HashTable<(Mark, Sn)>,
    /// The marks in the order of the edits, to forget them when they commit.
    order: VecDeque<(Sn, Mark)>,
}

impl Uncommitted {
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// The edit `sn` has left these marks.
    pub fn touch(&mut self, sn: Sn, footprint: &[Mark]) {
        for mark in footprint {
            let is_it = |known: &(Mark, Sn)| known.0 == *mark;
            match self.last.find_mut(mark.hash(), is_it) {
                Some(known) => known.1 = sn,
                None => drop(self.last.insert_unique(mark.hash(), (*mark, sn), |known| known.0.hash())),
            }
            self.order.push_back((sn, *mark));
        }
    }

    /// Forgets what has committed. The writer calls this before each batch, so the table is never larger than the edits
    /// in flight.
    pub fn forget_committed(&mut self, committed: Sn) {
        while let Some(&(sn, mark)) = self.order.front() {
            if sn > committed {
                break;
            }
            self.order.pop_front();
            if let Ok(known) = self.last.find_entry(mark.hash(), |known| *known == (mark, sn)) {
                known.remove();
            }
        }
    }

    fn last_on(&self, mark: Mark) -> Option<Sn> {
        self.last.find(mark.hash(), |known| known.0 == mark).map(|known| known.1)
    }

    /// The commit that an answer which rests on these has to wait for, if any.
    pub fn wait_for(&self, seen: &[Mark]) -> Option<Sn> {
        if self.is_empty() {
            return None;
        }
        seen.iter().filter_map(|mark| self.last_on(*mark)).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Timestamp;
    use namespace::{Namespace, Reach};

    #[test]
    fn only_what_an_edit_in_flight_touched_has_to_wait() {
        let world = Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1));
        let [a, b, c] = ["/a", "/b", "/c"].map(|path| {
            let mut seen = Vec::new();
            assert!(world.seen_on(path, Reach::Itself, &mut seen));
            // The root's passage is common to all of them.
            seen.pop().expect("the entry that is not there")
        });
        let mut table = Uncommitted::default();
        table.touch(Sn(10), &[a, b]);
        table.touch(Sn(11), &[b]);
        assert_eq!(table.wait_for(&[a, c]), Some(Sn(10)));
        assert_eq!(table.wait_for(&[a, b]), Some(Sn(11)));
        assert_eq!(table.wait_for(&[c]), None);
        table.forget_committed(Sn(10));
        assert_eq!(table.wait_for(&[a]), None);
        assert_eq!(table.wait_for(&[b]), Some(Sn(11)));
        table.forget_committed(Sn(11));
        assert!(table.is_empty());
    }
}
