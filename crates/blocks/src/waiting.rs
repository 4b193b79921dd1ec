//! The blocks that wait for copying and the replicas that wait for deletion, listed for an operator.

use crate::{
    map::BlockMap,
    redundancy::Count,
    server::DataServer,
    servers::Deletion,
    words::{CorruptReason, Location},
};
use base::{Block, BlockId, InodeId, Moment};
use std::sync::Arc;

/// Names only: what is known of each is asked for later, some at a time. Eight bytes a block that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Blocks with too few replicas, the most endangered first.
    pub endangered: Vec<BlockId>,
    /// Blocks without any good replica.
    pub lost: Vec<BlockId>,
    /// Blocks of which nothing can be decided before a storage has reported in full.
    pub undecided: Vec<BlockId>,
    /// Blocks with replicas on their way: since when, and how many.
    pub arriving: Vec<(BlockId, Moment, usize)>,
    /// Blocks with a damaged replica.
    pub corrupt: Vec<BlockId>,
}

/// A block and its replicas, on live storages.
#[derive(Clone, Debug)]
pub struct Replicas {
    pub block: Block,
    pub inode: InodeId,
    pub live: usize,
    pub corrupt: usize,
    pub excess: usize,
    /// On servers that are decommissioned, or on the way there.
    pub decommissioned: usize,
    /// On servers that are in maintenance, or on the way there.
    pub maintained: usize,
    pub places: Vec<ReplicaPlace>,
}

#[derive(Clone, Debug)]
pub struct ReplicaPlace {
    pub location: Location,
    pub damage: Option<CorruptReason>,
    /// Its storage may not have deleted what it was told to delete by the server before this one.
    pub is_stale: bool,
}

impl BlockMap {
    pub fn waiting(&self) -> Waiting {
        let redundancy = &self.redundancy;
        let timeout_ms = self.config.pending_timeout_ms;
        let began = |end: Moment| Moment::from_ms(end.ms().saturating_sub(timeout_ms));
        let arriving = redundancy.pending.iter();
        Waiting {
            endangered: redundancy.queue.endangered().collect(),
            lost: redundancy.queue.lost().collect(),
            undecided: redundancy.undecided.iter().collect(),
            arriving: arriving.map(|(id, end, count)| (id, began(end), count)).collect(),
            corrupt: redundancy.corrupt.iter().map(|(id, _)| id).collect(),
        }
    }

    /// The blocks that each data server is still to be told to delete. Servers with none are left out.
    pub fn deletions(&self) -> Vec<(Arc<DataServer>, Vec<Block>)> {
        let servers = self.servers.iter().filter(|(_, server)| !server.deletions.is_empty());
        let blocks = servers.map(|(_, server)| {
            let block = |(id, deletion): (&BlockId, &Deletion)| Block {
                id: *id,
                generation_stamp: deletion.stamp,
                length: 0,
            };
            (server.face.clone(), server.deletions.iter().map(block).collect())
        });
        blocks.collect()
    }

    /// All that is known of a block's replicas, good and bad.
    pub fn replicas(&self, id: BlockId) -> Option<Replicas> {
        let slot = self.arena.find(id)?;
        let record = self.arena.record(slot);
        let Count { live, corrupt, excess, maintained, .. } = self.count(slot);
        let damaged = self.redundancy.corrupt.of(id);
        let places = self.arena.places(slot);
        let live_places = places.iter().filter(|place| self.storages.is_live(*place));
        let decommissioned = |place: &u32| self.storages.get(*place).admin_state.is_for_good();
        let decommissioned = self.good_places(slot).iter().filter(|place| decommissioned(place)).count();
        let places = live_places.map(|place| ReplicaPlace {
            location: self.location_at(place),
            damage: damaged.iter().find(|replica| replica.place == place).map(|replica| replica.reason),
            is_stale: self.storages.get(place).stale,
        });
        Some(Replicas {
            block: record.block(),
            inode: record.inode(),
            live,
            corrupt,
            excess,
            decommissioned,
            maintained,
            places: places.collect(),
        })
    }
}
