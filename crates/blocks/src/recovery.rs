//! A block whose writer is gone: one of its servers is told to have all of them agree on a length.
//!
//! The order waits for that server's next heartbeat. If it leads to nothing, the metadata service asks
//! again, with a newer stamp, and another server is told.

use crate::{
    map::BlockMap,
    words::{BlockState, Recovery},
};
use base::{BlockId, GenerationStamp};
use std::cmp::Reverse;

/// Waits for a heartbeat of the server that shall carry it out.
pub struct RecoveryOrder {
    pub block: BlockId,
    pub stamp: GenerationStamp,
}

impl BlockMap {
    /// Has the unfinished block recovered under a stamp given out for it. False if no live server has it.
    pub fn recover(&mut self, id: BlockId, stamp: GenerationStamp) -> bool {
        let Some(slot) = self.arena.find(id) else { return false };
        self.note_allocated(id, stamp);
        if self.arena.record(slot).state() == BlockState::Complete {
            return false;
        }
        let places = self.constructed_places(slot);
        let servers: Vec<u32> = places.iter().map(|place| self.storages.get(*place).server).collect();
        let construction = self.constructions.entry(id);
        if servers.iter().all(|server| construction.asked.contains(server)) {
            construction.asked.clear();
        }
        let unasked = servers.iter().copied().filter(|server| !construction.asked.contains(server));
        let heard = |server: &u32| Reverse(self.servers.get(*server).face.last_heartbeat);
        let Some(leader) = unasked.min_by_key(heard) else { return false };
        construction.asked.push(leader);
        for server in self.servers.iter_mut() {
            server.recoveries.retain(|order| order.block != id);
        }
        self.servers.get_mut(leader).recoveries.push(RecoveryOrder { block: id, stamp });
        true
    }

    pub(crate) fn take_recoveries(&mut self, server: u32) -> Vec<Recovery> {
        let orders = std::mem::take(&mut self.servers.get_mut(server).recoveries);
        orders.into_iter().filter_map(|order| self.recovery(&order)).collect()
    }

    /// The order as a command, if the block is still unfinished.
    fn recovery(&self, order: &RecoveryOrder) -> Option<Recovery> {
        let slot = self.arena.find(order.block)?;
        let record = self.arena.record(slot);
        let places = self.constructed_places(slot);
        let unfinished = record.state() != BlockState::Complete && record.stamp() < order.stamp;
        (unfinished && !places.is_empty()).then(|| Recovery {
            block: record.block(),
            stamp: order.stamp,
            places: places.into_iter().map(|place| self.location_at(place)).collect(),
        })
    }
}
