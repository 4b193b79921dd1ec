//! Deletions that were ordered and are not known to be done.
//!
//! An order that has gone out to a data server cannot be called back, and the answer that carried it may have been lost. Until it is known
//! which of the two is true, the replica counts for nothing, whatever a report says of it: the report may have been made before the order was
//! carried out. If it counted, another replica would go in its place, and then both are gone.
//!
//! Three things end the doubt. The data server says that it has deleted the replica. A full report of the storage lacks it. Or the data
//! server registers anew: it has then carried out all that it was ordered before, or will never hear of it, because it takes up the answers
//! to its heartbeats one after the other, as Hadoop's does. What it reports in the new session is how things are.
//!
//! HDFS remembers superfluous replicas likewise. It forgets a damaged one when its deletion is ordered, and counts it as good if a report
//! still names it.

use crate::{broken::Broken, full_report::Report, map::BlockMap, servers::Deletion, words::CorruptReason};
use base::{Block, BlockId, GenerationStamp};

impl BlockMap {
    /// Queues the deletion of a replica for the next heartbeat of its data server.
    pub(crate) fn order_deletion(&mut self, place: u32, id: BlockId, stamp: GenerationStamp) {
        if self.storages.is_live(place) {
            let server = self.storages.get(place).server;
            self.servers.get_mut(server).deletions.insert(id, Deletion { stamp, place, named_by: 0 });
        }
    }

    /// Takes the deletions that the data server is told of now. Of blocks that no file has nothing need be remembered.
    pub(crate) fn take_deletions(&mut self, server: u32) -> Vec<Block> {
        let limit = self.config.invalidate_limit;
        let mut taken = Vec::with_capacity(limit.min(self.servers.get(server).deletions.len()));
        while taken.len() < limit
            && let Some((id, deletion)) = self.servers.get_mut(server).deletions.pop_first()
        {
            if self.arena.find(id).is_some() {
                self.servers.get_mut(server).ordered.insert(id, deletion);
            }
            taken.push(Block { id, generation_stamp: deletion.stamp, length: 0 });
        }
        taken
    }

    /// The deletion is queued, and its data server has not been told of it.
    pub(crate) fn is_being_deleted(&self, place: u32, block: Block) -> bool {
        let deletions = &self.servers.get(self.storages.get(place).server).deletions;
        deletions.get(&block.id).is_some_and(|deletion| deletion.stamp == block.generation_stamp)
    }

    /// The data server was told to delete this replica, and may or may not have done so.
    pub(crate) fn is_deletion_ordered(&self, server: u32, id: BlockId, stamp: GenerationStamp) -> bool {
        let ordered = &self.servers.get(server).ordered;
        ordered.get(&id).is_some_and(|deletion| deletion.stamp == stamp)
            && !self.config.rules.break_rule(Broken::OrdersForgotten)
    }

    /// A report names a replica whose deletion was ordered. It is kept as one that does not count, so that it can be copied from. If enough
    /// others are there the order is given again, for it may be lost. If the replica is needed, its data server is asked to begin
    /// anew, which ends the doubt.
    pub(crate) fn take_ordered(&mut self, slot: u32, place: u32, block: Block, is_good: bool) {
        let id = block.id;
        if is_good && !self.arena.holds(slot, place) {
            self.add_place(slot, place);
            self.redundancy.excess.insert(id, place);
        }
        let server = self.storages.get(place).server;
        let report = self.storages.get(place).full_report.as_ref().map_or(0, |report| report.serial());
        if let Some(deletion) = self.servers.get_mut(server).ordered.get_mut(&id) {
            (deletion.place, deletion.named_by) = (place, report);
        }
        if self.arena.holds(slot, place) {
            self.note_seen(slot, place);
        }
        if !self.may_command() {
            return;
        }
        let reason = self.redundancy.corrupt.of(id).iter().find(|it| it.place == place).map(|it| it.reason);
        if reason.is_some_and(|reason| !is_good || reason == CorruptReason::CorruptionReported) {
            // Its mark says that it does not count. Whether it is to go is decided anew.
            self.servers.get_mut(server).ordered.remove(&id);
            return self.evaluate(slot);
        }
        if reason.is_none() && self.count(slot).live >= self.wanted(slot) {
            self.order_deletion(place, id, block.generation_stamp);
        } else {
            self.note_contradiction(place);
        }
    }

    /// A full report of this storage is whole. What it lacks is gone.
    pub(crate) fn settle_ordered(&mut self, place: u32, report: &Report) {
        let server = self.storages.get(place).server;
        if self.servers.get(server).ordered.is_empty() {
            return;
        }
        let mut ordered = std::mem::take(&mut self.servers.get_mut(server).ordered);
        ordered.retain(|id, deletion| {
            let is_named = |slot: u32| deletion.named_by == report.serial() || report.seen.contains(slot);
            let stands = |slot: u32| {
                deletion.place != place || is_named(slot) && self.arena.record(slot).stamp() == deletion.stamp
            };
            self.arena.find(*id).is_some_and(stands)
        });
        self.servers.get_mut(server).ordered = ordered;
    }

    /// The data server begins a session. What it was ordered in earlier ones is done, or will not be. Its replicas count
    /// again, also where the order was queued once more; its storages are stale, so none is deleted for their sake before it has
    /// reported in full.
    pub(crate) fn forget_ordered(&mut self, server: u32) {
        for (id, deletion) in std::mem::take(&mut self.servers.get_mut(server).ordered) {
            if self.redundancy.excess.contains(id, deletion.place) {
                self.redundancy.excess.remove(id, deletion.place);
                self.servers.get_mut(server).deletions.remove(&id);
                self.evaluate_id(id);
            }
        }
    }
}
