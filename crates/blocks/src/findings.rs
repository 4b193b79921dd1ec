//! What becomes of a replica that was rotten when its storage was lost, and comes back with it.
//!
//! As long as there is no other replica the old finding does not count: the disk may have been repaired meanwhile, and nothing else is left to read
//! or to copy. Such a replica is called dubious. A copy of it shows whether it was repaired, since all bytes are checked on the way. As soon as there
//! surely is another replica, the old finding counts again. No replica is deleted on account of a dubious one, and no server may leave on account of it.

use crate::{
    map::BlockMap,
    newcomers::Trial,
    redundancy::Count,
    replica::CorruptReplica,
    words::{BlockState, CorruptReason},
};
use base::{BlockId, GenerationStamp};
use std::sync::Arc;

impl BlockMap {
    /// Whether the replica at this place was rotten when its storage was lost, and nothing was heard of it since but that it is there.
    pub(crate) fn is_dubious(&self, slot: u32, place: u32) -> bool {
        let out_of_sight = &self.redundancy.corrupt.out_of_sight;
        !out_of_sight.is_empty() && {
            let record = self.arena.record(slot);
            let storage = self.storages.get(place);
            let server = self.servers.get(storage.server).face.uuid();
            out_of_sight.has(record.id(), record.stamp(), server, &storage.report.id)
        }
    }

    /// Whether all replicas are dubious. One copy more shows which of them were repaired.
    pub(crate) fn is_in_doubt(&self, slot: u32, count: &Count) -> bool {
        let is_copied = || !self.redundancy.pending.servers(self.arena.record(slot).id()).is_empty();
        count.dubious > 0 && count.dubious == count.usable() && !is_copied()
    }

    /// A replica has come to this place. If it is a copy of a dubious one, that one was repaired.
    pub(crate) fn trust_source(&mut self, slot: u32, place: u32) {
        if self.redundancy.corrupt.out_of_sight.is_empty() || self.storages.get(place).stale {
            return;
        }
        let (id, stamp) = (self.arena.record(slot).id(), self.arena.record(slot).stamp());
        let server = self.storages.get(place).server;
        let Some(source) = self.redundancy.pending.only_sender_to(id, server) else { return };
        let is_believed = self.servers.get(server).trial == Trial::Passed;
        if !is_believed || self.newcomers.may_be_of_others(id, source, self.latest) {
            return;
        }
        if let Some(from) = self.place_on(slot, source) {
            let (uuid, name) = self.names_of(from);
            self.redundancy.corrupt.out_of_sight.forget(id, stamp, &uuid, &name);
        }
    }

    /// To be called when something about the replicas of a block has changed: old findings count, or do not.
    pub(crate) fn weigh_findings(&mut self, slot: u32) {
        let record = *self.arena.record(slot);
        let (id, stamp) = (record.id(), record.stamp());
        let corrupt = &self.redundancy.corrupt;
        if corrupt.out_of_sight.is_empty() && corrupt.of(id).is_empty() {
            return;
        }
        let (dubious, others): (Vec<u32>, Vec<u32>) =
            self.good_places(slot).into_iter().partition(|place| self.is_dubious(slot, *place));
        let may_be_good = |place: &&u32| {
            let storage = self.storages.get(**place);
            storage.is_present() && storage.trial != Trial::Doubted
        };
        let is_surely_good = |place: &u32| {
            let storage = self.storages.get(*place);
            !storage.stale && storage.trial == Trial::Passed
        };
        let mut others = others.iter().filter(may_be_good).peekable();
        if others.peek().is_none() {
            self.doubt_findings(slot, id, stamp);
        } else if others.any(is_surely_good) {
            self.recall_findings(slot, id, stamp, dubious);
        } else if !dubious.is_empty() && record.state() == BlockState::Complete && self.may_command() {
            // It will be known soon whether the other one is there.
            self.redundancy.undecided.insert(id);
        }
    }

    fn recall_findings(&mut self, slot: u32, id: BlockId, stamp: GenerationStamp, dubious: Vec<u32>) {
        for place in dubious {
            let (uuid, name) = self.names_of(place);
            self.redundancy.corrupt.out_of_sight.forget(id, stamp, &uuid, &name);
            let reason = CorruptReason::CorruptionReported;
            let rotten = CorruptReplica { place, reason, stamp, is_recalled: true };
            self.keeping_count(slot, |map| map.redundancy.corrupt.insert(id, rotten));
        }
    }

    /// The replica is lost on account of which old findings were recalled. An order to delete that was told cannot be taken back.
    fn doubt_findings(&mut self, slot: u32, id: BlockId, stamp: GenerationStamp) {
        let is_left = |replica: &&CorruptReplica| {
            let storage = self.storages.get(replica.place);
            replica.is_recalled
                && replica.stamp == stamp
                && storage.is_known_to_hold(slot)
                && !self.is_deletion_ordered(storage.server, id, stamp)
        };
        let left = self.redundancy.corrupt.of(id).iter().filter(is_left);
        for place in left.map(|replica| replica.place).collect::<Vec<_>>() {
            let (uuid, name) = self.names_of(place);
            self.servers.get_mut(self.storages.get(place).server).deletions.remove(&id);
            self.unmark_corrupt(slot, place);
            self.redundancy.corrupt.out_of_sight.remember(id, stamp, &uuid, &name);
        }
    }

    /// The uuid of the server, and the name of the storage.
    pub(crate) fn names_of(&self, place: u32) -> (Arc<str>, Arc<str>) {
        let storage = self.storages.get(place);
        (self.servers.get(storage.server).face.uuid().clone(), storage.report.id.clone())
    }
}
