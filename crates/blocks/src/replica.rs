//! A replica comes to be known, is judged, and goes.
//!
//! A record's places are its *finalized* replicas with the record's generation stamp, damaged ones
//! included. Replicas that are being written are with the block's [`crate::construction::Construction`].

use crate::{
    map::BlockMap,
    out_of_sight::OutOfSight,
    record::Record,
    unknown::Source,
    words::{BlockState, CorruptReason, ReplicaState, ReportedReplica},
};
use base::{Block, BlockId, GenerationStamp, Moment};
use std::{collections::BTreeMap, sync::Arc};

/// A replica that must not be read, and counts for nothing.
#[derive(Clone, Copy, Debug)]
pub struct CorruptReplica {
    pub place: u32,
    pub reason: CorruptReason,
    /// The replica's own stamp, which an order to delete it has to name.
    pub stamp: GenerationStamp,
    /// The finding is older than the last absence of the storage, and the disk may have been repaired since.
    pub is_recalled: bool,
}

#[derive(Default)]
pub struct Corrupt {
    blocks: BTreeMap<BlockId, Vec<CorruptReplica>>,
    pub out_of_sight: OutOfSight,
}

impl Corrupt {
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub fn of(&self, id: BlockId) -> &[CorruptReplica] {
        self.blocks.get(&id).map_or(&[], Vec::as_slice)
    }

    pub fn contains(&self, id: BlockId, place: u32) -> bool {
        !self.blocks.is_empty() && self.of(id).iter().any(|replica| replica.place == place)
    }

    pub fn insert(&mut self, id: BlockId, replica: CorruptReplica) {
        let replicas = self.blocks.entry(id).or_default();
        replicas.retain(|held| held.place != replica.place);
        replicas.push(replica);
    }

    pub fn remove(&mut self, id: BlockId, place: u32) {
        if let Some(replicas) = self.blocks.get_mut(&id) {
            replicas.retain(|held| held.place != place);
            if replicas.is_empty() {
                self.blocks.remove(&id);
            }
        }
    }

    /// A storage is lost, and its rotten replicas with it.
    pub fn lose_sight_of(&mut self, place: u32, server: &Arc<str>, storage: &Arc<str>) {
        for (id, replicas) in &self.blocks {
            let is_rotten =
                |it: &&CorruptReplica| it.place == place && it.reason == CorruptReason::CorruptionReported;
            if let Some(rotten) = replicas.iter().find(is_rotten) {
                self.out_of_sight.remember(*id, rotten.stamp, server, storage);
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (BlockId, &[CorruptReplica])> {
        self.blocks.iter().map(|(id, replicas)| (*id, replicas.as_slice()))
    }
}

/// The outcome for a row of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The replica is now, or was already, one of the block's.
    Taken,
    /// The namespace has no such block: see [`crate::unknown`].
    Unknown,
    Corrupt,
    /// The row changes nothing.
    Ignored,
    Postponed,
}

enum Judgement {
    Good,
    BeingWritten,
    Irrelevant,
    Corrupt(CorruptReason),
}

/// How a reported replica fits its block. The rules are HDFS's.
fn judge(record: &Record, replica: &ReportedReplica) -> Judgement {
    let complete = record.state() == BlockState::Complete;
    let under_construction = record.state() == BlockState::UnderConstruction;
    let (stamp, stored) = (replica.block.generation_stamp, record.stamp());
    match replica.state {
        ReplicaState::UnderRecovery | ReplicaState::Temporary => Judgement::Irrelevant,
        _ if !complete && stamp < stored => Judgement::Irrelevant,
        ReplicaState::Finalized if under_construction => Judgement::BeingWritten,
        ReplicaState::BeingWritten | ReplicaState::WaitingRecovery if !complete => Judgement::BeingWritten,
        _ if stamp != stored => Judgement::Corrupt(CorruptReason::GenerationStampMismatch),
        ReplicaState::Finalized if replica.block.length != record.length() => {
            Judgement::Corrupt(CorruptReason::SizeMismatch)
        }
        ReplicaState::Finalized => Judgement::Good,
        // The report was made before its writer had finished; the next one will say so.
        ReplicaState::BeingWritten => Judgement::Irrelevant,
        ReplicaState::WaitingRecovery => Judgement::Corrupt(CorruptReason::InvalidState),
    }
}

impl BlockMap {
    /// Takes a row of a report. A row about the same replica that still waits is older, and is forgotten.
    pub(crate) fn take_replica(&mut self, place: u32, replica: &ReportedReplica, now: Moment) -> Verdict {
        if !self.postponed.is_empty() {
            self.postponed.forget_replica(replica.block.id, place);
        }
        match self.arena.find(replica.block.id) {
            Some(slot) => self.take_known(slot, place, replica, now),
            None => self.judge_unknown(place, replica),
        }
    }

    pub(crate) fn take_known(
        &mut self,
        slot: u32,
        place: u32,
        replica: &ReportedReplica,
        now: Moment,
    ) -> Verdict {
        let record = *self.arena.record(slot);
        if self.is_being_deleted(place, replica.block) {
            let server = self.storages.get(place).server;
            let is_good = matches!(judge(&record, replica), Judgement::Good);
            if self.arena.holds(slot, place) || is_good && self.place_on(slot, server).is_some() {
                self.add_place(slot, place);
                if !self.is_marked(record.id(), place) {
                    self.redundancy.excess.insert(record.id(), place);
                }
                self.look_for_need(slot);
            }
            return Verdict::Ignored;
        }
        if replica.block.generation_stamp > self.last_allocated.stamp {
            return self.postpone(place, replica);
        }
        let judgement = judge(&record, replica);
        let server = self.storages.get(place).server;
        if self.is_deletion_ordered(server, record.id(), replica.block.generation_stamp) {
            self.take_ordered(slot, place, replica.block, matches!(judgement, Judgement::Good));
            return Verdict::Ignored;
        }
        if record.state() != BlockState::Complete {
            self.note_unfinished(place, record.id());
        }
        if record.state() != BlockState::Complete && !matches!(judgement, Judgement::Irrelevant) {
            self.constructions.entry(record.id()).note(place, replica);
        }
        match judgement {
            Judgement::Irrelevant => Verdict::Ignored,
            Judgement::Corrupt(CorruptReason::SizeMismatch)
                if self.may_have_grown(record.block(), replica.block.length) =>
            {
                self.postpone(place, replica)
            }
            Judgement::Corrupt(reason) => {
                self.mark_corrupt(slot, place, replica.block.generation_stamp, reason);
                Verdict::Corrupt
            }
            Judgement::Good => {
                if self.may_command() && self.redundancy.excess.contains(record.id(), place) {
                    // It should be gone: the order was lost on its way.
                    self.order_deletion(place, record.id(), record.stamp());
                }
                self.add_finalized(slot, place, now);
                Verdict::Taken
            }
            Judgement::BeingWritten => {
                if replica.block.generation_stamp == record.stamp()
                    && replica.state == ReplicaState::Finalized
                {
                    self.add_finalized(slot, place, now);
                } else if replica.block.generation_stamp > record.stamp() {
                    self.remove_place(slot, place);
                }
                Verdict::Taken
            }
        }
    }

    /// A server that only listens may not have read yet that the block was opened again. If its writer keeps the stamp, a replica that is
    /// longer than the block is the first that is heard of it. The row waits until the log tells, or this server commands.
    pub(crate) fn may_have_grown(&self, known: Block, length: u64) -> bool {
        !self.commanding && length > known.length
    }

    fn judge_unknown(&mut self, place: u32, replica: &ReportedReplica) -> Verdict {
        if replica.block.id > self.last_allocated.id {
            let in_future = replica.block.generation_stamp > self.last_allocated.stamp;
            if in_future && self.last_allocated.is_exact && self.commanding && self.is_starting() {
                self.counts.future_bytes = self.counts.future_bytes.saturating_add(replica.block.length);
            }
            return self.postpone(place, replica);
        }
        Verdict::Unknown
    }

    pub(crate) fn is_starting(&self) -> bool {
        self.safe_mode.stage() != crate::safe_mode::Stage::Off
    }

    pub(crate) fn postpone(&mut self, place: u32, replica: &ReportedReplica) -> Verdict {
        if !self.postponed.add(place, *replica) {
            self.counts.dropped_rows += 1;
            self.storages.get_mut(place).is_incomplete = true;
        }
        Verdict::Postponed
    }

    /// Takes what was reported about a block before the namespace told of it.
    pub(crate) fn take_postponed(&mut self, id: BlockId, now: Moment) {
        for (place, replica) in self.postponed.take(id) {
            if self.take_replica(place, &replica, now) == Verdict::Unknown {
                self.take_unknown(place, &replica, Source::Single);
            }
        }
    }

    /// A finalized replica that fits its block.
    pub(crate) fn add_finalized(&mut self, slot: u32, place: u32, now: Moment) {
        let id = self.arena.record(slot).id();
        let added = self.add_place(slot, place);
        // A replica that was outdated and has been made anew is good again; one with rotten bytes stays bad.
        let marked = self.redundancy.corrupt.of(id).iter().find(|replica| replica.place == place);
        if marked.is_some_and(|replica| replica.reason != CorruptReason::CorruptionReported) {
            self.unmark_corrupt(slot, place);
        }
        let server = self.storages.get(place).server;
        self.trust_source(slot, place);
        self.weigh_findings(slot);
        if self.redundancy.pending.arrived(id, server) {
            self.pass(server);
        }
        self.take_sample(slot, place);
        match self.arena.record(slot).state() {
            BlockState::Complete => self.evaluate(slot),
            _ if !added => {}
            state => {
                let reached = self.count(slot).usable() >= self.min_replication();
                if reached && self.commanding {
                    self.events.newly_safe.push(id);
                }
                if reached && state == BlockState::Committed {
                    self.promote(slot, now);
                }
            }
        }
    }

    pub(crate) fn mark_corrupt(
        &mut self,
        slot: u32,
        place: u32,
        stamp: GenerationStamp,
        reason: CorruptReason,
    ) {
        let id = self.arena.record(slot).id();
        self.keeping_count(slot, |map| {
            map.redundancy.corrupt.insert(id, CorruptReplica { place, reason, stamp, is_recalled: false })
        });
        self.add_place(slot, place);
        self.redundancy.excess.remove(id, place);
        self.evaluate(slot);
    }

    pub(crate) fn unmark_corrupt(&mut self, slot: u32, place: u32) {
        let id = self.arena.record(slot).id();
        self.keeping_count(slot, |map| map.redundancy.corrupt.remove(id, place));
    }

    /// Records a place; one on another storage of the same server gives way, for a server holds a block
    /// once. That it is to go, or that its bytes are rotten, goes along. False if it was there.
    pub(crate) fn add_place(&mut self, slot: u32, place: u32) -> bool {
        if self.arena.holds(slot, place) {
            self.note_seen(slot, place);
            return false;
        }
        match self.place_on(slot, self.storages.get(place).server) {
            Some(other) => self.move_place(slot, other, place),
            None => self.keeping_count(slot, |map| {
                map.arena.add_place(slot, place);
            }),
        }
        self.storages.get_mut(place).blocks += 1;
        self.note_claim(place, slot);
        self.note_seen(slot, place);
        true
    }

    /// The storage of this server that is recorded to have the block.
    pub(crate) fn place_on(&self, slot: u32, server: u32) -> Option<u32> {
        let is_there = |place: &u32| {
            let storage = self.storages.get(*place);
            storage.is_live() && storage.server == server
        };
        self.arena.places(slot).iter().find(is_there)
    }

    fn move_place(&mut self, slot: u32, from: u32, to: u32) {
        let id = self.arena.record(slot).id();
        let is_rotten =
            |it: &&CorruptReplica| it.place == from && it.reason == CorruptReason::CorruptionReported;
        let rotten = self.redundancy.corrupt.of(id).iter().find(is_rotten).copied();
        let is_superfluous = self.redundancy.excess.contains(id, from);
        self.satisfying.note_moved(id, from);
        self.follow_deletion(self.storages.get(to).server, id, from, to);
        let ((server, left), (_, reached)) = (self.names_of(from), self.names_of(to));
        self.redundancy.corrupt.out_of_sight.follow(id, &server, &left, &reached);
        self.remove_place(slot, from);
        self.keeping_count(slot, |map| {
            map.arena.add_place(slot, to);
            if let Some(rotten) = rotten {
                map.redundancy.corrupt.insert(id, CorruptReplica { place: to, ..rotten });
            }
        });
        if is_superfluous {
            self.redundancy.excess.insert(id, to);
        }
    }

    pub(crate) fn note_seen(&mut self, slot: u32, place: u32) {
        self.storages.get_mut(place).reports_mut().for_each(|report| _ = report.seen.insert(slot));
    }

    /// A report that is under way will not lack what was just heard of an unfinished block.
    fn note_unfinished(&mut self, place: u32, id: BlockId) {
        if let Some(report) = &mut self.storages.get_mut(place).full_report {
            report.unfinished.insert(id);
        }
    }

    /// False if it was not there.
    pub(crate) fn remove_place(&mut self, slot: u32, place: u32) -> bool {
        if !self.arena.holds(slot, place) {
            return false;
        }
        let id = self.arena.record(slot).id();
        self.keeping_count(slot, |map| {
            map.arena.remove_place(slot, place);
            map.redundancy.corrupt.remove(id, place);
        });
        self.redundancy.excess.remove(id, place);
        let storage = self.storages.get_mut(place);
        storage.blocks -= 1;
        storage.reports_mut().for_each(|report| report.seen.remove(slot));
        true
    }

    /// Changes something about a block and keeps the count of safe blocks right.
    pub(crate) fn keeping_count<T>(&mut self, slot: u32, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.is_safe(slot);
        let result = change(self);
        let after = self.is_safe(slot);
        self.counts.safe = self.counts.safe + u64::from(after) - u64::from(before);
        result
    }

    /// Complete, and enough undamaged replicas are recorded. Places on a storage just lost count until the
    /// sweep has passed.
    pub(crate) fn is_safe(&self, slot: u32) -> bool {
        let record = self.arena.record(slot);
        record.state() == BlockState::Complete && self.recorded(slot) >= self.min_replication()
    }

    fn recorded(&self, slot: u32) -> usize {
        let places = self.arena.place_count(slot);
        if self.redundancy.corrupt.is_empty() {
            return places;
        }
        let id = self.arena.record(slot).id();
        self.arena.places(slot).iter().filter(|place| !self.redundancy.corrupt.contains(id, *place)).count()
    }
}
