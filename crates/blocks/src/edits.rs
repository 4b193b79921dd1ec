//! The calls by which the namespace tells which blocks there are, how they are written, and how many replicas each
//! shall have.

use crate::{
    construction::Construction,
    map::BlockMap,
    pending::{Sender, Writer},
    record::Record,
    words::{BlockState, CorruptReason, Location, ReplicaState, ReportedReplica, UcReplica},
};
use base::{Block, BlockId, GenerationStamp, InodeId, Moment};

impl BlockMap {
    /// Makes room for so many more blocks at once.
    pub fn reserve(&mut self, blocks: usize) {
        self.arena.reserve(blocks);
    }

    /// The newest id and generation stamp that the namespace has given out, to be told after its image and
    /// journal are read, and each time a stamp is given out without a block or an epoch raises both. Replicas
    /// with newer ids are never deleted; reports about them wait.
    pub fn set_last_allocated(&mut self, id: BlockId, stamp: GenerationStamp) {
        self.last_allocated.is_exact = true;
        self.note_allocated(id, stamp);
    }

    /// Rows that waited for the stamp are taken, if their block is known: a block that is about to be told of
    /// finds its rows still waiting.
    pub(crate) fn note_allocated(&mut self, id: BlockId, stamp: GenerationStamp) {
        let old = self.last_allocated.stamp;
        self.last_allocated.id = self.last_allocated.id.max(id);
        self.last_allocated.stamp = old.max(stamp);
        for id in self.postponed.with_stamps(old, self.last_allocated.stamp) {
            if self.arena.find(id).is_some() {
                self.take_postponed(id, self.latest);
            }
        }
    }

    /// A block of the namespace. `targets` are the places of its pipeline, if it is about to be written and
    /// they are known here. A block that is there already is told anew.
    pub fn add_block(
        &mut self,
        block: Block,
        inode: InodeId,
        replication: u16,
        state: BlockState,
        targets: &[Location],
        now: Moment,
    ) {
        if let Some(slot) = self.arena.find(block.id) {
            self.forget_block(slot);
        }
        self.note_allocated(block.id, block.generation_stamp);
        self.arena.insert(Record::new(block, inode, replication, state));
        if state == BlockState::Complete {
            self.counts.complete += 1;
            if let Some(slot) = self.arena.find(block.id).filter(|_| self.min_replication() == 0) {
                self.counts.safe += u64::from(self.is_safe(slot));
            }
        } else {
            let targets = self.places_of(targets);
            let construction = self.constructions.entry(block.id);
            construction.targets = targets;
            construction.is_of_client = true;
        }
        self.take_postponed(block.id, now);
    }

    /// The client has said the final length (and the stamp of the last pipeline). The block is complete as
    /// soon as the minimal number of replicas is reported, or when `complete` says so.
    pub fn commit(&mut self, block: Block, now: Moment) {
        let Some(slot) = self.arena.find(block.id) else { return };
        self.note_allocated(block.id, block.generation_stamp);
        self.set_block(slot, block);
        self.set_state(slot, BlockState::Committed);
        self.take_finalized(slot, block);
        self.take_postponed(block.id, now);
        if self.arena.record(slot).state() == BlockState::Committed
            && self.count(slot).usable() >= self.min_replication()
        {
            self.promote(slot, now);
        }
    }

    /// Replicas that were reported as finalized and fit the committed block become its places; others with its stamp
    /// count as damaged. After an append that kept the stamp, the earlier places do not count until they are reported
    /// anew, as they would not behind a newer stamp.
    fn take_finalized(&mut self, slot: u32, block: Block) {
        let mut places = self.good_places(slot);
        let construction = self.constructions.entry(block.id);
        let has_grown = construction.length_before.is_some_and(|before| before < block.length);
        if has_grown {
            construction.forget_before(block.generation_stamp);
        }
        let mut fitting = Vec::new();
        let mut damaged = Vec::new();
        for (place, replica) in &construction.replicas {
            if replica.state == ReplicaState::Finalized && replica.generation_stamp == block.generation_stamp
            {
                match replica.length == block.length {
                    true => fitting.push(*place),
                    false => damaged.push((*place, replica.length)),
                }
            }
        }
        if has_grown {
            places.retain(|place| !fitting.contains(place) && !damaged.iter().any(|(at, _)| at == place));
            for place in places {
                self.remove_place(slot, place);
            }
        }
        for (place, length) in damaged {
            if self.may_have_grown(block, length) {
                let row =
                    ReportedReplica { block: Block { length, ..block }, state: ReplicaState::Finalized };
                // What waits already is newer.
                if !self.postponed.has(block.id, place) {
                    self.postpone(place, &row);
                }
            } else {
                self.mark_corrupt(slot, place, block.generation_stamp, CorruptReason::SizeMismatch);
            }
        }
        for place in fitting {
            self.add_place(slot, place);
        }
    }

    pub fn complete(&mut self, id: BlockId, now: Moment) {
        if let Some(slot) = self.arena.find(id)
            && self.arena.record(slot).state() != BlockState::Complete
        {
            self.promote(slot, now);
        }
    }

    /// The block is complete. Replicas of its pipeline that have not been reported are expected to be any
    /// moment, so that nobody copies the block meanwhile.
    pub(crate) fn promote(&mut self, slot: u32, now: Moment) {
        let id = self.arena.record(slot).id();
        self.set_state(slot, BlockState::Complete);
        if let Some(construction) = self.constructions.remove(id) {
            let is_of_client = construction.is_of_client && !construction.is_recovered;
            if is_of_client {
                self.pass_pipeline(slot, &construction.targets);
            }
            let held: Vec<u32> =
                self.arena.places(slot).iter().map(|place| self.storages.get(place).server).collect();
            let targets =
                construction.targets.into_iter().filter(|place| self.storages.get(*place).is_present());
            let writers = targets.map(|place| Writer { server: self.storages.get(place).server, place });
            let awaited: Vec<Writer> = writers.filter(|writer| !held.contains(&writer.server)).collect();
            let deadline = now.plus_ms(self.config.pending_timeout_ms);
            match is_of_client {
                _ if !self.commanding => {}
                true => self.redundancy.pending.add_writers(id, awaited, deadline),
                false => {
                    let servers = awaited.iter().map(|writer| writer.server);
                    self.redundancy.pending.add(id, servers, Sender::Others, deadline);
                }
            }
        }
        self.evaluate(slot);
    }

    /// A block is written again (append, truncate, recovery). Without `targets` the pipeline is where its replicas are: also those of the client's last
    /// pipeline that were not reported yet.
    pub fn reopen(&mut self, block: Block, targets: &[Location]) {
        let Some(slot) = self.arena.find(block.id) else { return };
        self.note_allocated(block.id, block.generation_stamp);
        // Replicas whose deletion was not ordered yet are needed again. A deletion that was ordered cannot be held
        // back, so that replica counts as gone.
        self.rescue_excess(slot);
        for place in self.redundancy.excess.of(block.id).to_vec() {
            self.remove_place(slot, place);
        }
        let old = *self.arena.record(slot);
        let mut places = self.good_places(slot);
        places.retain(|place| self.storages.get(*place).is_present());
        self.prefer_readable(&mut places);
        let given = self.places_of(targets);
        let unreported = self.unreported_writers(slot);
        let construction = self.constructions.entry(block.id);
        construction.is_of_client = !given.is_empty();
        construction.targets = if given.is_empty() { [&places[..], &unreported].concat() } else { given };
        construction.length_before = Some(old.length());
        for place in places {
            let reported = ReportedReplica { block: old.block(), state: ReplicaState::Finalized };
            construction.note(place, &reported);
        }
        if let Some(sender) = self.redundancy.pending.remove(block.id) {
            self.note_late(block.id, sender);
        }
        self.give_up_sample(block.id);
        self.set_state(slot, BlockState::UnderConstruction);
        self.set_block(slot, block);
        self.evaluate(slot);
        self.take_postponed(block.id, self.latest);
        self.call_back(slot);
    }

    /// The storages of a client's last pipeline whose finished replicas are awaited.
    fn unreported_writers(&self, slot: u32) -> Vec<u32> {
        let writers = self.redundancy.pending.writers(self.arena.record(slot).id()).iter();
        let is_there = |writer: &&Writer| {
            let storage = self.storages.get(writer.place);
            storage.is_present() && storage.server == writer.server
        };
        writers.filter(is_there).map(|writer| writer.place).collect()
    }

    /// The writer goes on through another pipeline, under a newer stamp.
    pub fn set_pipeline(&mut self, block: Block, targets: &[Location]) {
        let Some(slot) = self.arena.find(block.id) else { return };
        if self.arena.record(slot).state() == BlockState::Complete {
            return self.reopen(block, targets);
        }
        self.note_allocated(block.id, block.generation_stamp);
        self.set_block(slot, block);
        let targets = self.places_of(targets);
        let construction = self.constructions.entry(block.id);
        construction.targets = targets;
        construction.is_of_client = true;
        construction.recovering_until = None;
        construction.replicas.retain(|(_, replica)| replica.generation_stamp >= block.generation_stamp);
        let finalized = |(_, replica): &&(u32, UcReplica)| {
            replica.state == ReplicaState::Finalized && replica.generation_stamp == block.generation_stamp
        };
        let finalized: Vec<u32> =
            construction.replicas.iter().filter(finalized).map(|(place, _)| *place).collect();
        for place in finalized {
            self.add_finalized(slot, place, self.latest);
        }
        self.take_postponed(block.id, self.latest);
        if self.arena.record(slot).state() != BlockState::Complete {
            self.call_back(slot);
        }
    }

    pub fn set_replication(&mut self, id: BlockId, replication: u16, now: Moment) {
        self.latest = now;
        if let Some(slot) = self.arena.find(id) {
            self.arena.record_mut(slot).set_replication(replication);
            self.evaluate(slot);
        }
    }

    /// The block belongs to another file now.
    pub fn set_inode(&mut self, id: BlockId, inode: InodeId) {
        if let Some(slot) = self.arena.find(id) {
            self.arena.record_mut(slot).set_inode(inode);
        }
    }

    /// The namespace has no such blocks any more; their replicas are deleted.
    pub fn remove(&mut self, ids: &[BlockId]) {
        for id in ids {
            if let Some(slot) = self.arena.find(*id) {
                self.remove_slot(slot);
            }
        }
    }

    fn remove_slot(&mut self, slot: u32) {
        let id = self.arena.record(slot).id();
        self.unknown.removed.insert(id);
        if self.may_command() {
            self.order_deletions(slot);
        }
        for place in self.arena.places(slot).iter().filter(|place| self.storages.is_live(*place)) {
            // Nobody will ask any more whether it is done.
            self.servers.get_mut(self.storages.get(place).server).ordered.remove(&id);
        }
        self.forget_block(slot);
    }

    /// A block is given up before its replicas are finished: the room that was promised for them is free again.
    fn withdraw_promises(&mut self, construction: &Construction) {
        let is_finished = |target: &u32| {
            let finished = |(held, replica): &(u32, UcReplica)| {
                held == target && replica.state == ReplicaState::Finalized
            };
            construction.replicas.iter().any(finished)
        };
        for target in construction.targets.iter().filter(|target| !is_finished(target)) {
            self.storages.get_mut(*target).promise_kept();
        }
    }

    fn forget_block(&mut self, slot: u32) {
        let id = self.arena.record(slot).id();
        if let Some(construction) = self.constructions.remove(id) {
            self.withdraw_promises(&construction);
        }
        for place in self.arena.places(slot).as_slice().to_vec() {
            self.remove_place(slot, place);
        }
        self.set_state(slot, BlockState::UnderConstruction);
        self.redundancy.queue.remove(id);
        self.redundancy.pending.remove(id);
        self.newcomers.forget_block(id);
        self.redundancy.corrupt.out_of_sight.forget_block(id);
        self.redundancy.undecided.remove(id);
        self.redundancy.hints.forget(id);
        self.satisfying.remove(id);
        self.arena.remove(slot);
    }

    fn order_deletions(&mut self, slot: u32) {
        let record = *self.arena.record(slot);
        let construction = self.constructions.get(record.id());
        let unfinished: Vec<(u32, GenerationStamp)> = construction
            .map(|it| it.replicas.iter().map(|(place, replica)| (*place, replica.generation_stamp)).collect())
            .unwrap_or_default();
        for place in self.arena.places(slot).as_slice().to_vec() {
            let corrupt = self.redundancy.corrupt.of(record.id());
            let stamp =
                corrupt.iter().find(|replica| replica.place == place).map_or(record.stamp(), |it| it.stamp);
            self.order_deletion(place, record.id(), stamp);
        }
        for (place, stamp) in unfinished {
            self.order_deletion(place, record.id(), stamp);
        }
    }

    fn set_state(&mut self, slot: u32, state: BlockState) {
        self.keeping_count(slot, |map| {
            let was = map.arena.record(slot).state();
            map.arena.record_mut(slot).set_state(state);
            map.counts.complete -= u64::from(was == BlockState::Complete);
            map.counts.complete += u64::from(state == BlockState::Complete);
        });
    }

    /// A newer stamp leaves all finalized replicas behind.
    fn set_block(&mut self, slot: u32, block: Block) {
        if self.arena.record(slot).stamp() != block.generation_stamp {
            for place in self.arena.places(slot).as_slice().to_vec() {
                self.remove_place(slot, place);
            }
        }
        self.arena.record_mut(slot).set_block(block);
    }

    /// The storages of these locations that are live here.
    pub(crate) fn places_of(&self, locations: &[Location]) -> Vec<u32> {
        locations.iter().filter_map(|at| self.place_of(at.server.uuid(), &at.storage)).collect()
    }

    pub(crate) fn place_of(&self, uuid: &str, storage: &str) -> Option<u32> {
        let server = self.servers.get(self.servers.find(uuid)?);
        server.storages.iter().copied().find(|place| &*self.storages.get(*place).report.id == storage)
    }
}
