//! The standing of each replica of a block: whether it counts, and if it does not, for what reason.

use crate::{
    map::BlockMap,
    newcomers::Trial,
    words::{BlockState, CorruptReason, Location},
};
use base::{AdminState, Block, BlockId, InodeId, Moment};

/// The reason for which a replica counts, or does not. A replica with several reasons has the one that stands first here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Corrupt(CorruptReason),
    /// It is to be deleted: there are enough others.
    Excess,
    /// Its server has not shown that it stores what it claims to store.
    Doubted,
    /// It counts.
    Live,
    /// Its server is to leave service, or has left it.
    OutOfService(AdminState),
}

/// A replica as the commanding server sees it.
#[derive(Clone, Debug)]
pub struct StandingReplica {
    pub location: Location,
    pub standing: Standing,
    /// The contents of its storage are not surely known.
    pub is_storage_stale: bool,
    /// Its server has been silent for a while.
    pub is_server_stale: bool,
}

/// A block with all replicas that live storages are known to hold. For a block that is being written, these are the places of its pipeline.
#[derive(Clone, Debug)]
pub struct BlockStandings {
    pub block: Block,
    pub inode: InodeId,
    pub state: BlockState,
    /// The replicas that its file wants.
    pub replication: u16,
    /// The block waits to be copied.
    pub is_queued: bool,
    pub replicas: Vec<StandingReplica>,
}

impl BlockMap {
    /// The block and the standing of its replicas; `None` if there is no such block. `now` tells which servers have been silent.
    pub fn standings(&self, id: BlockId, now: Moment) -> Option<BlockStandings> {
        let slot = self.arena.find(id)?;
        let record = *self.arena.record(slot);
        let places = match record.state() {
            BlockState::Complete => {
                let is_held = |place: &u32| self.storages.get(*place).is_known_to_hold(slot);
                self.arena.places(slot).iter().filter(is_held).collect()
            }
            _ => self.constructed_places(slot),
        };
        let replica = |place: u32| {
            let storage = self.storages.get(place);
            let location = self.location_at(place);
            let state = match storage.admin_state {
                // It has gone before all its blocks were safe.
                AdminState::EnteringMaintenance if storage.is_away => AdminState::InMaintenance,
                state => state,
            };
            StandingReplica {
                standing: self.standing_at(id, place, state),
                is_storage_stale: storage.stale,
                is_server_stale: self.is_stale(&location.server, now),
                location,
            }
        };
        Some(BlockStandings {
            block: record.block(),
            inode: record.inode(),
            state: record.state(),
            replication: record.replication(),
            is_queued: record.is_queued(),
            replicas: places.into_iter().map(replica).collect(),
        })
    }

    /// The standing of a replica that its storage is known to hold. `state` is that of its server.
    pub(crate) fn standing_at(&self, id: BlockId, place: u32, state: AdminState) -> Standing {
        let corrupt = &self.redundancy.corrupt;
        let damage = match corrupt.is_empty() {
            true => None,
            false => corrupt.of(id).iter().find(|replica| replica.place == place),
        };
        if let Some(damage) = damage {
            Standing::Corrupt(damage.reason)
        } else if self.redundancy.excess.contains(id, place) {
            Standing::Excess
        } else if self.storages.get(place).trial == Trial::Doubted {
            Standing::Doubted
        } else if state.is_in_service() {
            Standing::Live
        } else {
            Standing::OutOfService(state)
        }
    }
}
