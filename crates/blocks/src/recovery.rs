//! A block whose writer is gone: one of its servers is told to have all of them agree on a length.
//!
//! The order waits for that server's next heartbeat. If it leads to nothing for a while, the metadata
//! service asks again, with a newer stamp, and another server is told. Meanwhile it is not asked again: a
//! newer stamp would undo a recovery under way.

use crate::{
    map::BlockMap,
    words::{BlockState, Location, Recovery, ReplicaState, ReportedReplica},
};
use base::{Block, BlockId, GenerationStamp, Moment};
use std::cmp::Reverse;

/// An order waits so many heartbeat intervals for the heartbeat that fetches it.
const FETCH_HEARTBEATS: u64 = 5;
/// A server has so many heartbeat intervals for a recovery, as in HDFS.
const RECOVERY_HEARTBEATS: u64 = 30;

/// Waits for a heartbeat of the server that shall carry it out.
pub struct RecoveryOrder {
    pub block: BlockId,
    pub stamp: GenerationStamp,
    pub truncation: Option<u64>,
    /// The block whose first bytes it gets; `None`: it has bytes itself.
    pub source: Option<BlockId>,
}

impl BlockMap {
    /// Whether a recovery of the unfinished block should begin: some live server has it, and no recovery is
    /// under way. If so one counts as under way from here on; [`BlockMap::recover`] is to follow.
    ///
    /// With a `source` it is the servers of that block that count.
    pub fn begin_recovery(&mut self, id: BlockId, source: Option<BlockId>, now: Moment) -> bool {
        self.latest = now;
        let Some(slot) = self.arena.find(id) else { return false };
        let is_complete = self.arena.record(slot).state() == BlockState::Complete;
        if is_complete || self.recovered_places(slot, source).is_empty() {
            return false;
        }
        let until = now.plus_ms(FETCH_HEARTBEATS * self.config.heartbeat_interval_ms);
        let construction = self.constructions.entry(id);
        if construction.recovering_until.is_some_and(|until| now < until) {
            return false;
        }
        construction.recovering_until = Some(until);
        true
    }

    /// The servers that take part in the recovery of a block.
    fn recovered_places(&self, slot: u32, source: Option<BlockId>) -> Vec<u32> {
        match source {
            None => self.constructed_places(slot),
            Some(source) => {
                self.arena.find(source).map_or(Vec::new(), |source| self.constructed_places(source))
            }
        }
    }

    /// Has the unfinished block recovered under a stamp given out for it, with a `truncation` to that length, and from
    /// the first bytes of `source`, if there is one. False if no live server has it.
    pub fn recover(
        &mut self,
        id: BlockId,
        stamp: GenerationStamp,
        truncation: Option<u64>,
        source: Option<BlockId>,
    ) -> bool {
        let Some(slot) = self.arena.find(id) else { return false };
        self.note_allocated(id, stamp);
        if self.arena.record(slot).state() == BlockState::Complete {
            return false;
        }
        let places = self.recovered_places(slot, source);
        let servers: Vec<u32> = places.iter().map(|place| self.storages.get(*place).server).collect();
        let construction = self.constructions.entry(id);
        if servers.iter().all(|server| construction.asked.contains(server)) {
            construction.asked.clear();
        }
        let unasked = servers.iter().copied().filter(|server| !construction.asked.contains(server));
        // The leader says which length the block has, and which servers have it. A newcomer may have made up that it has any.
        let standing = |server: &u32| {
            let server = self.servers.get(*server);
            (!server.trial.has_passed(), Reverse(server.face.last_heartbeat))
        };
        let Some(leader) = unasked.min_by_key(standing) else {
            construction.recovering_until = None;
            return false;
        };
        construction.asked.push(leader);
        construction.is_recovered = true;
        for server in self.servers.iter_mut() {
            server.recoveries.retain(|order| order.block != id);
        }
        self.servers.get_mut(leader).recoveries.push(RecoveryOrder { block: id, stamp, truncation, source });
        true
    }

    /// Whether a server at this address may say how a recovery of the block has ended: one of those that were told to
    /// recover it, or, where that is forgotten since a takeover, any live one; a newcomer only as long as all are newcomers. A server that is
    /// refused is told to recover the block anew.
    pub fn may_end_recovery(&self, id: BlockId, ip: &str) -> bool {
        let asked = self.constructions.get(id).map_or(&[][..], |it| &it.asked);
        let has_passed = |index: &u32| self.servers.get(*index).trial.has_passed();
        let may = |index: &u32| match asked.is_empty() {
            true => has_passed(index) || !self.servers.live().iter().any(has_passed),
            false => asked.contains(index),
        };
        self.servers.on_host(ip).iter().any(|index| {
            let face = &self.servers.get(*index).face;
            face.alive && &*face.registration.ip == ip && may(index)
        })
    }

    /// The outcome of a recovery is about to be told. It is the word of the server that has led it: no client has written through the servers
    /// that it names.
    pub fn end_recovery(&mut self, id: BlockId) {
        if let Some(slot) = self.arena.find(id)
            && self.arena.record(slot).state() != BlockState::Complete
        {
            self.constructions.entry(id).is_recovered = true;
        }
    }

    pub(crate) fn take_recoveries(&mut self, server: u32) -> Vec<Recovery> {
        let orders = std::mem::take(&mut self.servers.get_mut(server).recoveries);
        let until = self.latest.plus_ms(RECOVERY_HEARTBEATS * self.config.heartbeat_interval_ms);
        let recoveries: Vec<Recovery> =
            orders.into_iter().filter_map(|order| self.recovery(&order)).collect();
        for recovery in &recoveries {
            let id = recovery.truncation.unwrap_or(recovery.block).id;
            self.constructions.entry(id).recovering_until = Some(until);
        }
        recoveries
    }

    /// The finished replicas that a recovery has left, known before their servers report them.
    pub fn recovered(&mut self, block: Block, places: &[Location], now: Moment) {
        for place in self.places_of(places) {
            let replica = ReportedReplica { block, state: ReplicaState::Finalized };
            self.take_replica(place, &replica, now);
        }
    }

    /// Whether any server was chosen for the unfinished block, or had some of it, as far as is known here. For
    /// a while after a takeover yes: the server before may have chosen some, and they may not have said so yet.
    pub fn was_placed(&self, id: BlockId) -> bool {
        if self.is_in_grace() {
            return true;
        }
        let placed = self
            .constructions
            .get(id)
            .is_some_and(|it| it.lost_place || !it.targets.is_empty() || !it.replicas.is_empty());
        placed || self.arena.find(id).is_some_and(|slot| self.arena.place_count(slot) > 0)
    }

    /// The order as a command, if the block is still unfinished.
    fn recovery(&self, order: &RecoveryOrder) -> Option<Recovery> {
        let slot = self.arena.find(order.block)?;
        let record = self.arena.record(slot);
        let places = self.recovered_places(slot, order.source);
        let read = self.arena.find(order.source.unwrap_or(order.block))?;
        let unfinished = record.state() != BlockState::Complete && record.stamp() < order.stamp;
        (unfinished && !places.is_empty()).then(|| Recovery {
            block: self.arena.record(read).block(),
            stamp: order.stamp,
            truncation: order.truncation.map(|length| Block {
                id: order.block,
                generation_stamp: order.stamp,
                length,
            }),
            places: places.into_iter().map(|place| self.location_at(place)).collect(),
        })
    }
}
