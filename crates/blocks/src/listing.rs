//! The blocks of one data server, for a balancer that looks for something to move.
//!
//! A storage does not list its blocks, so the records are looked through, a slice at a time, from a place that the asker
//! has drawn at random. Two balancers, or one that asks again, so see different blocks.

use crate::{
    map::BlockMap,
    server::StorageType,
    words::{BlockState, Location},
};
use base::{Block, InodeId};

/// The blocks that are looked for: complete ones of which the data server has a good replica that is not to be deleted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub server_uuid: &'a str,
    /// The replica on the data server is on a storage of this type; `None`: of any.
    pub storage_type: Option<StorageType>,
    /// Blocks with fewer bytes are left out.
    pub bytes_min: u64,
}

/// A block, its file, and the places of its good replicas.
#[derive(Clone, Debug)]
pub struct Listed {
    pub block: Block,
    pub inode: InodeId,
    pub locations: Vec<Location>,
}

/// Records looked through.
#[derive(Debug)]
pub struct Slice {
    pub found: Vec<Listed>,
    /// The first record that was not looked at; it is past the last one when the end is reached.
    pub next: u32,
}

impl BlockMap {
    /// One past the last record that a listing may have to look at.
    pub fn record_count(&self) -> u32 {
        self.arena.slots()
    }

    /// The replicas that are recorded on a data server's storages; `None` if the server is not known.
    pub fn replica_count_of(&self, server_uuid: &str) -> Option<u64> {
        let server = self.servers.get(self.servers.find(server_uuid)?);
        Some(server.storages.iter().map(|place| u64::from(self.storages.get(*place).blocks)).sum())
    }

    /// Looks through the records from `from` on: at most `records` of them, and none at or behind `until`. Storages
    /// whose contents are not surely known are left out, as in Hadoop.
    pub fn list_blocks(&self, wanted: &Wanted<'_>, from: u32, until: u32, records: u32) -> Slice {
        let end = until.min(self.arena.slots());
        let next = from.saturating_add(records).min(end).max(from);
        let places = self.listed_places(wanted);
        if places.is_empty() {
            return Slice { found: Vec::new(), next: end.max(from) };
        }
        let found = (from..next).filter_map(|slot| self.listed(slot, wanted, &places)).collect();
        Slice { found, next }
    }

    /// The storages of the data server whose replicas are listed.
    fn listed_places(&self, wanted: &Wanted<'_>) -> Vec<u32> {
        let Some(server) = self.servers.find(wanted.server_uuid) else { return Vec::new() };
        let is_listed = |place: &u32| {
            let storage = self.storages.get(*place);
            let is_of_type = wanted.storage_type.is_none_or(|kind| storage.report.storage_type == kind);
            storage.is_live() && !storage.stale && is_of_type
        };
        self.servers.get(server).storages.iter().copied().filter(is_listed).collect()
    }

    fn listed(&self, slot: u32, wanted: &Wanted<'_>, places: &[u32]) -> Option<Listed> {
        let record = self.arena.record(slot);
        if record.is_free()
            || record.state() != BlockState::Complete
            || record.length() < wanted.bytes_min
            || !places.iter().any(|place| self.arena.holds(slot, *place))
        {
            return None;
        }
        let good = self.good_places(slot);
        let is_there = good.iter().any(|place| places.contains(place));
        is_there.then(|| Listed {
            block: record.block(),
            inode: record.inode(),
            locations: good.iter().map(|place| self.location_at(*place)).collect(),
        })
    }
}
