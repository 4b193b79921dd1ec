//! Which inodes were touched by edits that are applied but not yet committed.
//!
//! A reader that saw one of them must not answer before that edit's commit; all other readers answer at
//! once. The table is changed under the namespace's write lock and asked under its read lock, and is empty
//! whenever no write is under way.

use base::{InodeId, Sn};
use std::collections::{HashMap, VecDeque};

#[derive(Default)]
pub struct Uncommitted {
    /// The last uncommitted edit that touched the inode.
    last: HashMap<InodeId, Sn>,
    /// The same in the order of the edits, to forget them when they commit.
    order: VecDeque<(Sn, InodeId)>,
}

impl Uncommitted {
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    pub fn touch(&mut self, sn: Sn, inodes: impl IntoIterator<Item = InodeId>) {
        for inode in inodes {
            self.last.insert(inode, sn);
            self.order.push_back((sn, inode));
        }
    }

    /// Forgets what has committed. Called by the writer before each batch, so the table is never larger than
    /// the edits in flight.
    pub fn forget_committed(&mut self, committed: Sn) {
        while let Some(&(sn, inode)) = self.order.front() {
            if sn > committed {
                break;
            }
            self.order.pop_front();
            if self.last.get(&inode) == Some(&sn) {
                self.last.remove(&inode);
            }
        }
    }

    /// The commit that an answer about these inodes has to wait for, if any.
    pub fn wait_for(&self, inodes: impl IntoIterator<Item = InodeId>) -> Option<Sn> {
        if self.last.is_empty() {
            return None;
        }
        inodes.into_iter().filter_map(|inode| self.last.get(&inode).copied()).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_edit_in_flight_touched_has_to_wait() {
        let mut table = Uncommitted::default();
        let [a, b, c] = [InodeId(1), InodeId(2), InodeId(3)];
        table.touch(Sn(10), [a, b]);
        table.touch(Sn(11), [b]);
        assert_eq!(table.wait_for([a, c]), Some(Sn(10)));
        assert_eq!(table.wait_for([a, b]), Some(Sn(11)));
        assert_eq!(table.wait_for([c]), None);
        table.forget_committed(Sn(10));
        assert_eq!(table.wait_for([a]), None);
        assert_eq!(table.wait_for([b]), Some(Sn(11)));
        table.forget_committed(Sn(11));
        assert!(table.is_empty());
    }
}
