//! Applying an edit, on every member.

use crate::{
    Applied, Edit, Namespace,
    operation::{Applying, Operation},
    retry::{Record, journal_time},
};
use base::TxId;

impl Namespace {
    /// Carries out an edit that [`crate::ops`] planned, on this member or another. The edit must have been
    /// planned on this very state.
    pub fn apply(&mut self, at: TxId, edit: &Edit) -> Applied {
        let time = edit.time;
        for charge in edit.dues.iter().flat_map(|dues| &dues.charges) {
            self.charge(charge.directory, charge.amounts);
        }
        let mut applied = Applied::default();
        if let Some(dues) = &edit.dues {
            for (inode, key) in &dues.preserve {
                self.preserve(*inode, *key);
            }
            self.preserving.clone_from(&dues.preserve);
            self.keeping.clone_from(&dues.kept);
        }
        let mut applying = Applying { at, time, changes: &mut applied.block_changes };
        applied.reply = edit.body.apply(self, &mut applying);
        debug_assert!(
            edit.answer().is_none_or(|answer| answer == applied.reply),
            "{edit:?} said {:?}",
            applied.reply
        );
        self.preserving.clear();
        self.keeping.clear();
        if !self.orders.is_empty() {
            self.post_orders(at);
        }
        let counters = &mut self.tree.counters;
        counters.applied = at;
        counters.time = journal_time(counters.time, time);
        let time = counters.time;
        if let Some(origin) = &edit.origin {
            let record = match edit.noted_copy() {
                Some(copy) => Record::noted(origin, copy, time),
                None => Record::new(origin, applied.reply, time),
            };
            self.retry.insert(&mut self.tree.retry, record);
        }
        self.retry.evict(&mut self.tree.retry, time);
        applied
    }
}
