//! Reports about blocks that the namespace has not told of yet.
//!
//! A standby hears of a replica before it reads of the block in the journal. Such rows wait here, by block,
//! and are taken when the block is told of. There is a bound; beyond it rows are dropped, and the next full
//! report brings them again.

use crate::words::ReportedReplica;
use base::BlockId;
use std::collections::BTreeMap;

pub struct Postponed {
    rows: BTreeMap<BlockId, Vec<(u32, ReportedReplica)>>,
    count: usize,
    limit: usize,
}

impl Postponed {
    pub fn new(limit: usize) -> Self {
        Self { rows: BTreeMap::new(), count: 0, limit }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// False if there is no room. A later row about the same replica replaces an earlier one.
    pub fn add(&mut self, place: u32, replica: ReportedReplica) -> bool {
        let rows = self.rows.entry(replica.block.id).or_default();
        if let Some((_, known)) = rows.iter_mut().find(|(held, _)| *held == place) {
            *known = replica;
            return true;
        }
        if self.count == self.limit {
            if rows.is_empty() {
                self.rows.remove(&replica.block.id);
            }
            return false;
        }
        rows.push((place, replica));
        self.count += 1;
        true
    }

    pub fn take(&mut self, id: BlockId) -> Vec<(u32, ReportedReplica)> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let rows = self.rows.remove(&id).unwrap_or_default();
        self.count -= rows.len();
        rows
    }

    /// Ids up to this one, at most `count` of them.
    pub fn up_to(&self, last: BlockId, count: usize) -> Vec<BlockId> {
        self.rows.range(..=last).map(|(id, _)| *id).take(count).collect()
    }

    pub fn forget_replica(&mut self, id: BlockId, place: u32) {
        self.forget(place, &[id]);
    }

    pub fn forget_place(&mut self, place: u32) {
        let ids: Vec<_> = self.rows.keys().copied().collect();
        self.forget(place, &ids);
    }

    fn forget(&mut self, place: u32, ids: &[BlockId]) {
        for id in ids {
            if let Some(rows) = self.rows.get_mut(id) {
                let before = rows.len();
                rows.retain(|(held, _)| *held != place);
                self.count -= before - rows.len();
                if rows.is_empty() {
                    self.rows.remove(id);
                }
            }
        }
    }
}
