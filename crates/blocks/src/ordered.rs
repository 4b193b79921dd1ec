//! Deletions on their way: queued, ordered, and not yet known to be done.
//!
//! A deletion is decided when there are enough other replicas, and goes out with a later heartbeat. By then another server may have been lost,
//! or have begun anew with nothing. So it is decided once more when it goes out; if it is no longer right, the replica counts again.
//!
//! An order that has gone out to a data server cannot be called back, and the answer that carried it may have been lost. Until it is known
//! which of the two is true, the replica counts for nothing, whatever a report says of it: the report may have been made before the order was
//! carried out. If it counted, another replica would go in its place, and then both are gone.
//!
//! Two things end the doubt. The data server has told of a deletion for each order that it was given. Or it registers anew: it has then
//! carried out all that it was ordered before, or will never hear of it, because it takes up the answers to its heartbeats one after the
//! other, as Hadoop's does. A data server that was told to register is given no orders before it has done so. What it reports in the new session
//! is how things are. A full report that lacks the replica ends nothing: Hadoop's data servers keep orders in a queue, for minutes where much is deleted,
//! and may have moved the replica to another storage, or receive it anew before its turn comes. Nor does it end the doubt that this server has
//! ceased to lead and leads again, because Hadoop's data servers do not know of that.
//!
//! Where such a doubt is in the way, because the replica is needed or the block has no other place to go, the data server is asked to register.
//!
//! HDFS remembers superfluous replicas likewise. It forgets a damaged one when its deletion is ordered, and counts it as good if a report
//! still names it; and it does not look again at what it has decided.

use crate::{
    broken::Broken,
    map::BlockMap,
    servers::Deletion,
    words::{BlockState, CorruptReason},
};
use base::{Block, BlockId, GenerationStamp};

impl BlockMap {
    /// Queues the deletion of a replica for the next heartbeat of its data server.
    pub(crate) fn order_deletion(&mut self, place: u32, id: BlockId, stamp: GenerationStamp) {
        if self.storages.is_live(place) {
            let server = self.storages.get(place).server;
            let deletion = Deletion { stamp, place: Some(place), orders: 0, ordered_at: self.latest };
            self.servers.get_mut(server).deletions.insert(id, deletion);
        }
    }

    /// Takes the deletions that the data server is told of now. Of blocks that no file has nothing need be remembered.
    pub(crate) fn take_deletions(&mut self, server: u32) -> Vec<Block> {
        let limit = self.config.invalidate_limit.min(self.servers.get(server).deletions.len());
        let mut taken = Vec::with_capacity(limit);
        for _ in 0..limit {
            let Some((id, deletion)) = self.servers.get_mut(server).deletions.pop_first() else { break };
            if let Some(slot) = self.arena.find(id) {
                if !deletion.place.is_some_and(|place| self.arena.holds(slot, place)) {
                    continue;
                }
                if !self.is_still_right(slot, &deletion) {
                    self.take_back(slot, server, &deletion);
                    continue;
                }
                self.note_ordered(server, id, deletion);
            }
            taken.push(Block { id, generation_stamp: deletion.stamp, length: 0 });
        }
        taken
    }

    fn note_ordered(&mut self, server: u32, id: BlockId, deletion: Deletion) {
        let now = self.latest;
        let ordered = &mut self.servers.get_mut(server).ordered;
        let before = ordered
            .get(&id)
            .filter(|before| before.stamp == deletion.stamp)
            .map_or(0, |before| before.orders);
        ordered.insert(id, Deletion { orders: before.saturating_add(1), ordered_at: now, ..deletion });
    }

    /// Whether a deletion that was decided earlier would be decided now.
    fn is_still_right(&self, slot: u32, deletion: &Deletion) -> bool {
        let record = self.arena.record(slot);
        let is_corrupt =
            deletion.place.is_some_and(|place| self.redundancy.corrupt.contains(record.id(), place));
        let may_go = record.state() == BlockState::Complete
            && !self.is_kept_for_its_stamp(record.stamp(), deletion.stamp)
            && self.may_do_without(slot, is_corrupt);
        may_go || self.config.rules.break_rule(Broken::OrdersNotReconsidered)
    }

    /// The deletion does not go out. If it never has, the replica counts again, unless it is damaged.
    fn take_back(&mut self, slot: u32, server: u32, deletion: &Deletion) {
        let id = self.arena.record(slot).id();
        if self.is_deletion_ordered(server, id, deletion.stamp) {
            self.ask_if_needed(slot, server);
        } else if let Some(place) = deletion.place {
            self.redundancy.excess.remove(id, place);
        }
        self.evaluate(slot);
    }

    /// If the replica that this data server was ordered to delete is needed, the data server is asked to begin anew, which ends the doubt.
    fn ask_if_needed(&mut self, slot: u32, server: u32) {
        let is_needed = match self.arena.record(slot).state() {
            BlockState::Complete => self.count(slot).live < self.wanted(slot),
            _ => self.constructed_places(slot).is_empty(),
        };
        if is_needed {
            self.note_contradiction(server);
        }
    }

    /// No place was found for a copy of the block. If data servers are left out because of orders of long ago, they are asked to begin anew.
    pub(crate) fn ask_where_in_doubt(&mut self, id: BlockId) {
        let (now, limit_ms) = (self.latest, self.config.stale_interval_ms);
        let is_in_doubt = |server: &u32| {
            let ordered = self.servers.get(*server).ordered.get(&id);
            ordered.is_some_and(|deletion| now.ms_since(deletion.ordered_at) >= limit_ms)
        };
        let in_doubt: Vec<u32> = self.servers.live().iter().copied().filter(is_in_doubt).collect();
        in_doubt.into_iter().for_each(|server| self.note_contradiction(server));
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
    /// others are surely there the order is given again, for it may be lost. If the replica is needed, its data server is asked to begin
    /// anew, which ends the doubt.
    pub(crate) fn take_ordered(&mut self, slot: u32, place: u32, block: Block, is_good: bool) {
        let id = block.id;
        if is_good && !self.arena.holds(slot, place) {
            self.add_place(slot, place);
            if !self.is_marked(id, place) {
                self.redundancy.excess.insert(id, place);
            }
            self.look_for_need(slot);
        }
        let server = self.storages.get(place).server;
        let Some(deletion) = self.servers.get_mut(server).ordered.get_mut(&id) else { return };
        deletion.place = Some(place);
        let deletion = *deletion;
        if self.arena.holds(slot, place) {
            self.note_seen(slot, place);
        }
        if !self.may_command() {
            return;
        }
        let reason = self.redundancy.corrupt.of(id).iter().find(|it| it.place == place).map(|it| it.reason);
        let is_made_anew =
            is_good && reason.is_some_and(|reason| reason != CorruptReason::CorruptionReported);
        if is_made_anew {
            self.note_contradiction(server);
        } else if self.is_still_right(slot, &deletion) {
            self.order_deletion(place, id, block.generation_stamp);
        } else {
            self.ask_if_needed(slot, server);
        }
    }

    /// Whether the replica is marked as superfluous or damaged, and so does not count.
    pub(crate) fn is_marked(&self, id: BlockId, place: u32) -> bool {
        self.redundancy.excess.contains(id, place) || self.redundancy.corrupt.contains(id, place)
    }

    /// A data server has a replica on another of its storages than before. What is to become of it stays.
    pub(crate) fn follow_deletion(&mut self, server: u32, id: BlockId, from: u32, to: u32) {
        let server = self.servers.get_mut(server);
        for deletions in [&mut server.deletions, &mut server.ordered] {
            if let Some(deletion) = deletions.get_mut(&id)
                && deletion.place == Some(from)
            {
                deletion.place = Some(to);
            }
        }
    }

    /// The data server has deleted a replica. It is the one that was to go if the stamp and the storage are the same: a data server that moves a
    /// replica to another storage may say that it deletes the old one.
    pub(crate) fn end_deletion(&mut self, place: u32, block: Block) {
        let is_this =
            |deletion: &Deletion| deletion.stamp == block.generation_stamp && deletion.place == Some(place);
        let server = self.servers.get_mut(self.storages.get(place).server);
        if server.deletions.get(&block.id).is_some_and(is_this) {
            server.deletions.remove(&block.id);
        }
        if let Some(deletion) = server.ordered.get_mut(&block.id).filter(|deletion| is_this(deletion)) {
            deletion.orders -= 1;
            if deletion.orders == 0 {
                server.ordered.remove(&block.id);
            }
        }
    }

    /// Replicas whose deletion was ordered do not count in another reign of this server either.
    pub(crate) fn mark_ordered(&mut self) {
        let mut marks = Vec::new();
        for (_, server) in self.servers.iter() {
            for (id, deletion) in &server.ordered {
                let Some((slot, place)) = self.arena.find(*id).zip(deletion.place) else { continue };
                let is_this =
                    self.arena.holds(slot, place) && self.arena.record(slot).stamp() == deletion.stamp;
                if is_this && !self.is_marked(*id, place) {
                    marks.push((*id, place));
                }
            }
        }
        marks.into_iter().for_each(|(id, place)| self.redundancy.excess.insert(id, place));
    }

    /// The storage has failed. What is queued for it has gone with it. What was ordered may be carried out on another storage.
    pub(crate) fn lose_place_of_deletions(&mut self, place: u32) {
        let index = self.storages.get(place).server;
        let server = self.servers.get_mut(index);
        server.deletions.retain(|_, deletion| deletion.place != Some(place));
        let mut in_doubt = false;
        for deletion in server.ordered.values_mut().filter(|it| it.place == Some(place)) {
            deletion.place = None;
            in_doubt = true;
        }
        if in_doubt {
            self.note_contradiction(index);
        }
    }

    /// The data server begins a session. What it was ordered in earlier ones is done, or will not be. Its replicas count
    /// again, also where the order was queued once more; its storages are stale, so none is deleted for their sake before it has
    /// reported in full.
    pub(crate) fn forget_ordered(&mut self, server: u32) {
        for (id, deletion) in std::mem::take(&mut self.servers.get_mut(server).ordered) {
            if let Some(place) = deletion.place.filter(|place| self.redundancy.excess.contains(id, *place)) {
                self.redundancy.excess.remove(id, place);
                self.servers.get_mut(server).deletions.remove(&id);
                self.evaluate_id(id);
            }
        }
    }
}
