//! Reports about blocks and stamps that the namespace has not told of yet.
//!
//! A standby hears of a replica before it reads of the block, or of the block's newer stamp, in the journal. Such
//! rows wait here and are taken as soon as the namespace has come so far. Only the newest row about a replica waits:
//! a later row of its server, in any report, replaces it. There is a bound; beyond it rows are dropped, and the
//! storage is asked to report in full once there is room again.

use crate::words::ReportedReplica;
use base::{BlockId, GenerationStamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

pub struct Postponed {
    /// The rows, by block and by the index of the storage that holds the replica.
    rows: BTreeMap<(BlockId, u32), ReportedReplica>,
    /// An index of the rows by generation stamp. A row can be taken once the namespace has given out its stamp.
    by_stamp: BTreeSet<(GenerationStamp, BlockId, u32)>,
    by_place: BTreeSet<(u32, BlockId)>,
    /// The row at which the next look for overdue rows begins.
    cursor: (BlockId, u32),
    limit: usize,
}

impl Postponed {
    pub fn new(limit: usize) -> Self {
        Self {
            rows: BTreeMap::new(),
            by_stamp: BTreeSet::new(),
            by_place: BTreeSet::new(),
            cursor: Default::default(),
            limit,
        }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn has_room(&self) -> bool {
        self.rows.len() <= self.limit / 2
    }

    /// False if there is no room. A later row about the same replica replaces an earlier one.
    pub fn add(&mut self, place: u32, replica: ReportedReplica) -> bool {
        let id = replica.block.id;
        self.forget_replica(id, place);
        if self.rows.len() >= self.limit {
            return false;
        }
        self.rows.insert((id, place), replica);
        self.by_stamp.insert((replica.block.generation_stamp, id, place));
        self.by_place.insert((place, id));
        true
    }

    /// Whether a row about this replica waits.
    pub fn has(&self, id: BlockId, place: u32) -> bool {
        self.rows.contains_key(&(id, place))
    }

    /// All rows about the block.
    pub fn take(&mut self, id: BlockId) -> Vec<(u32, ReportedReplica)> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let rows: Vec<_> =
            self.rows.range((id, 0)..=(id, u32::MAX)).map(|((_, at), row)| (*at, *row)).collect();
        for (place, _) in &rows {
            self.forget_replica(id, *place);
        }
        rows
    }

    /// Blocks with a row whose stamp is above `old` and not above `new`.
    pub fn with_stamps(&self, old: GenerationStamp, new: GenerationStamp) -> Vec<BlockId> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let above = |stamp| (stamp, BlockId(u64::MAX), u32::MAX);
        let rows = self.by_stamp.range((Bound::Excluded(above(old)), Bound::Included(above(new))));
        rows.map(|(_, id, _)| *id).collect()
    }

    /// Blocks whose rows wait for nothing any more, found among the next `count` rows, in turn.
    pub fn overdue(&mut self, last: BlockId, stamp: GenerationStamp, count: usize) -> Vec<BlockId> {
        let rows = self.rows.range(self.cursor..).take(count);
        let mut end = None;
        let mut overdue = Vec::new();
        for (at, row) in rows {
            end = Some((at.0, at.1.saturating_add(1)));
            if at.0 <= last && row.block.generation_stamp <= stamp && overdue.last() != Some(&at.0) {
                overdue.push(at.0);
            }
        }
        self.cursor = end.unwrap_or_default();
        overdue
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of replicas of blocks, and with stamps, that are newer than these.
    pub fn bytes_beyond(&self, id: BlockId, stamp: GenerationStamp) -> u64 {
        let beyond = |row: &&ReportedReplica| row.block.id > id && row.block.generation_stamp > stamp;
        self.rows.values().filter(beyond).map(|row| row.block.length).fold(0, u64::saturating_add)
    }

    pub fn forget_replica(&mut self, id: BlockId, place: u32) {
        if let Some(row) = self.rows.remove(&(id, place)) {
            self.by_stamp.remove(&(row.block.generation_stamp, id, place));
            self.by_place.remove(&(place, id));
        }
    }

    /// The storage is lost, or says everything anew.
    pub fn forget_place(&mut self, place: u32) {
        let ids = self.by_place.range((place, BlockId(0))..=(place, BlockId(u64::MAX)));
        for id in ids.map(|(_, id)| *id).collect::<Vec<_>>() {
            self.forget_replica(id, place);
        }
    }

    /// The other tables name what the rows are, and nothing else. For the complete check.
    pub fn is_consistent(&self) -> bool {
        let named = |((id, place), row): (&(BlockId, u32), &ReportedReplica)| {
            row.block.id == *id
                && self.by_stamp.contains(&(row.block.generation_stamp, *id, *place))
                && self.by_place.contains(&(*place, *id))
        };
        self.rows.iter().all(named)
            && [self.by_stamp.len(), self.by_place.len()] == [self.rows.len(); 2]
            && self.rows.len() <= self.limit
    }
}
