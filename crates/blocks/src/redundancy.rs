//! Keeps as many replicas of each block as are wanted. A block is examined when something about it changed, queued
//! when it has too few replicas, and trimmed when it has too many; copies are ordered from the queue at every tick.

use crate::{
    broken::Broken,
    map::{BlockMap, LastAllocated},
    newcomers::Trial,
    pending::Sender,
    placement::Wish,
    queue::Priority,
    racks::Spread,
    servers::Order,
    standing::Standing,
    storage::PROMISE_ROLL_MS,
    words::BlockState,
};
use base::{AdminState, BlockId, InodeId, Moment, StoragePolicy};

/// Blocks looked at again in a tick because nothing could be decided before.
const UNDECIDED_PER_TICK: usize = 1_000;
const POSTPONED_PER_TICK: usize = 10_000;
/// How often all blocks that are being written are looked at for the sake of servers that were let go.
const WRITERS_LOOK_MS: u64 = 5_000;

/// The replicas of a block that live storages are known to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Good replicas on living servers. Replicas of doubted servers are not counted.
    pub live: usize,
    /// The number of live replicas whose servers are no newcomers, and which are not dubious.
    pub proved: usize,
    /// The number of live replicas that are dubious: see [`crate::findings`].
    pub dubious: usize,
    /// The number of live replicas whose servers are no newcomers, or newcomers that nobody can put to the test now, and which are not dubious.
    pub believed: usize,
    pub corrupt: usize,
    pub excess: usize,
    /// Good replicas on living servers that are to leave service: they are read, and copied from, and do not count.
    pub leaving: usize,
    /// Good replicas on living servers that are decommissioned.
    pub decommissioned: usize,
    /// Good replicas on living servers that are in maintenance.
    pub in_maintenance: usize,
    /// Replicas on servers that are in maintenance, or on the way there: those that are away as well.
    pub maintained: usize,
    /// The number of these that are surely there, or were when their servers went away.
    pub maintained_surely: usize,
    /// A replica, whether it is good, damaged or superfluous, is on a server that is to leave service.
    pub is_on_leaving: bool,
    /// A replica in service is on a storage whose contents are not surely known.
    pub stale: bool,
    /// The racks of the live replicas, and of good ones in maintenance.
    pub spread: Spread,
    /// A replica in service may just be moving within its server.
    pub moving: bool,
    /// A replica in service is on a newcomer that may still show that it stores it.
    pub on_trial: bool,
}

impl Count {
    /// Good replicas on living servers, whether they are to stay or not.
    pub fn usable(&self) -> usize {
        self.live + self.leaving + self.decommissioned + self.in_maintenance
    }

    /// As many good replicas as are wanted are surely there, by what their servers have told. Whether those are heard still, [`BlockMap::may_spare`] asks.
    /// No real replica is deleted for the sake of one that may be made up, or gone.
    fn is_surely_enough(&self, wanted: usize) -> bool {
        self.proved >= wanted && !self.stale && !self.moving && !self.on_trial
    }

    /// Two good replicas are surely there: that is enough to make room for a third one by deleting a damaged one. A false alarm must not
    /// cost the last copies.
    fn may_make_room(&self) -> bool {
        self.proved >= 2 && !self.stale && !self.moving
    }
}

impl BlockMap {
    pub(crate) fn count(&self, slot: u32) -> Count {
        let id = self.arena.record(slot).id();
        let mut count = Count::default();
        for place in self.arena.places(slot).iter() {
            let storage = self.storages.get(place);
            if !storage.is_known_to_hold(slot) {
                continue;
            }
            let state = match self.config.rules.break_rule(Broken::LeavingCounts) {
                true => AdminState::InService,
                false => storage.admin_state,
            };
            // Only replicas in service are counted on, and only they are chosen to go.
            count.stale |= storage.stale && state.is_in_service();
            count.moving |= self.satisfying.may_have_moved(id, place) && state.is_in_service();
            count.on_trial |= storage.trial == Trial::Open && state.is_in_service();
            count.is_on_leaving |= storage.admin_state.is_leaving();
            match self.standing_at(id, place, state) {
                Standing::Corrupt(_) => count.corrupt += 1,
                Standing::Excess => count.excess += 1,
                Standing::Doubted => {}
                Standing::Live => {
                    count.live += 1;
                    count.spread.add(storage.rack);
                    let is_dubious = self.is_dubious(slot, place);
                    count.dubious += usize::from(is_dubious);
                    count.proved += usize::from(storage.trial == Trial::Passed && !is_dubious);
                    count.believed += usize::from(storage.trial.is_believed() && !is_dubious);
                }
                Standing::OutOfService(state) => {
                    if state.is_maintenance() {
                        count.maintained += 1;
                        count.spread.add(storage.rack);
                    }
                    let is_sure = storage.is_away || !storage.stale;
                    count.maintained_surely += usize::from(state.is_maintenance() && is_sure);
                    count.leaving += usize::from(state.is_leaving() && storage.is_present());
                    count.decommissioned += usize::from(state == AdminState::Decommissioned);
                    count.in_maintenance +=
                        usize::from(state == AdminState::InMaintenance && storage.is_present());
                }
            }
        }
        count
    }

    /// Replicas in service below which a block is copied. Replicas in maintenance will be back, so they are not made up for, as long as
    /// a few others are in service.
    pub(crate) fn needed_in_service(&self, slot: u32, count: &Count) -> usize {
        self.needed_beside(slot, count.maintained)
    }

    /// The number of replicas in service below which a block is copied, if this many others are in maintenance.
    pub(crate) fn needed_beside(&self, slot: u32, maintained: usize) -> usize {
        let wanted = self.wanted(slot);
        match maintained {
            0 => wanted,
            away => wanted.saturating_sub(away).max(self.maintenance_replication().min(wanted)),
        }
    }

    pub(crate) fn wanted(&self, slot: u32) -> usize {
        usize::from(self.arena.record(slot).replication()).max(1)
    }

    /// Something about the block changed: queues it, or takes it from the queue, or deletes what is too
    /// much. Does nothing while nothing may be commanded; all blocks are looked at when that ends.
    pub(crate) fn evaluate(&mut self, slot: u32) {
        self.evaluate_by(slot, None);
    }

    /// Like [`Self::evaluate`], where the policy of the block's file may be known.
    fn evaluate_by(&mut self, slot: u32, policy: Option<&StoragePolicy>) {
        if !self.may_command() {
            return;
        }
        let record = *self.arena.record(slot);
        if record.state() != BlockState::Complete {
            self.dequeue(slot);
            return;
        }
        let (id, wanted) = (record.id(), self.wanted(slot));
        self.weigh_findings(slot);
        let mut count = self.count(slot);
        if count.live < wanted && count.excess > 0 && self.rescue_excess(slot) {
            count = self.count(slot);
        }
        if self.call_back_last(slot, &count) {
            count = self.count(slot);
        }
        self.note_need(slot, &count);
        if self.missing(slot, &count) > 0 {
            let others = count.excess + count.leaving + count.decommissioned + count.maintained;
            return self.enqueue(slot, Priority::of(count.live, others, wanted));
        }
        match self.is_misplaced(slot, &count) || self.is_in_doubt(slot, &count) {
            true => self.enqueue(slot, Priority::Misplaced),
            false => self.dequeue(slot),
        }
        if count.live < wanted || (count.live == wanted && count.corrupt == 0) {
            self.redundancy.hints.forget(id);
            return;
        }
        let awaits_policy = policy.is_none()
            && count.live > wanted
            && self.is_on_several_media(&self.places_in_service(slot));
        if awaits_policy || self.awaits_proof(id) || !self.may_spare(slot, &count) {
            self.redundancy.undecided.insert(id);
            self.redundancy.hints.keep(id);
            return;
        }
        self.delete_corrupt(slot);
        let hint = self.redundancy.hints.take(id);
        self.trim(slot, wanted, hint, policy);
    }

    /// The number of copies that the block lacks, and that are not on their way.
    fn missing(&self, slot: u32, count: &Count) -> usize {
        let awaited = self.redundancy.pending.servers(self.arena.record(slot).id()).len();
        self.needed_in_service(slot, count).saturating_sub(count.live + awaited)
    }

    fn enqueue(&mut self, slot: u32, priority: Priority) {
        self.redundancy.queue.put(self.arena.record(slot).id(), priority);
        self.arena.record_mut(slot).set_queued(true);
    }

    fn dequeue(&mut self, slot: u32) {
        if self.arena.record(slot).is_queued() {
            self.redundancy.queue.remove(self.arena.record(slot).id());
            self.arena.record_mut(slot).set_queued(false);
        }
    }

    /// There are good replicas: the damaged ones go. Each stays marked until its data server has told of the deletion, or lacks it.
    fn delete_corrupt(&mut self, slot: u32) {
        let (id, stamp) = (self.arena.record(slot).id(), self.arena.record(slot).stamp());
        for replica in self.redundancy.corrupt.of(id).to_vec() {
            if self.is_kept_for_its_stamp(stamp, replica.stamp) {
                continue;
            }
            if self.storages.is_live(replica.place)
                && !self.is_deletion_ordered(self.storages.get(replica.place).server, id, replica.stamp)
            {
                self.order_deletion(replica.place, id, replica.stamp);
            }
        }
    }

    /// To be called every second or so: finds dead servers, ends safe mode's extension, gives up on copies
    /// that did not arrive, and orders new ones. `policy_of` tells the id of a file's storage policy.
    pub fn tick(&mut self, now: Moment, policy_of: &dyn Fn(InodeId) -> u8) {
        self.latest = now;
        self.find_dead_servers(now);
        self.mean_xceivers = self.servers.mean_xceivers();
        self.look_at_slow(now);
        self.mind_racks();
        self.check_safe_mode(now);
        for (id, sender) in self.redundancy.pending.overdue(now) {
            self.note_late(id, sender);
            self.evaluate_id(id);
        }
        if self.may_command() {
            for id in self.redundancy.undecided.next(UNDECIDED_PER_TICK) {
                self.redundancy.undecided.remove(id);
                if let Some(slot) = self.arena.find(id) {
                    let policy = policy_of(self.arena.record(slot).inode());
                    self.evaluate_by(slot, Some(StoragePolicy::in_force(policy)));
                }
            }
        }
        let LastAllocated { id, stamp, .. } = self.last_allocated;
        for id in self.postponed.overdue(id, stamp, POSTPONED_PER_TICK) {
            self.take_postponed(id, now);
        }
        if self.may_command() {
            self.look_after_leaving();
            if now.ms_since(self.looked_after_writers) >= WRITERS_LOOK_MS {
                self.looked_after_writers = now;
                self.call_back_for_writers();
            }
        }
        if self.may_command() && !self.is_in_grace() {
            self.try_newcomers(now);
            self.order_copies(now, policy_of);
            self.satisfy_policies(now, policy_of);
        }
        if now.ms_since(self.last_promise_roll) >= PROMISE_ROLL_MS {
            self.last_promise_roll = now;
            self.storages.iter_mut().for_each(|(_, storage)| storage.roll_promises());
        }
    }

    pub(crate) fn evaluate_id(&mut self, id: BlockId) {
        if let Some(slot) = self.arena.find(id) {
            self.evaluate(slot);
        }
    }

    fn order_copies(&mut self, now: Moment, policy_of: &dyn Fn(InodeId) -> u8) {
        let budget = self.servers.live().len() * self.config.transfers_per_live_server;
        for id in self.redundancy.queue.next(budget) {
            self.order_copy(id, now, policy_of);
        }
    }

    /// Leaves the block in the queue if no server can send or take it now.
    fn order_copy(&mut self, id: BlockId, now: Moment, policy_of: &dyn Fn(InodeId) -> u8) {
        let slot = self.arena.find(id).expect("a queued block is in the map");
        let Some(source) = self.source(slot) else { return };
        let pending = self.redundancy.pending.servers(id).to_vec();
        let count = self.count(slot);
        let missing = self.missing(slot, &count).max(usize::from(self.is_in_doubt(slot, &count)));
        // A block that lacks none and is not in doubt is in the queue because its replicas are all on one rack.
        let crowded_rack = match count.spread {
            Spread::On(rack) if missing == 0 => Some(rack),
            _ => None,
        };
        let held: Vec<u32> =
            self.arena.places(slot).iter().filter(|place| self.storages.is_live(*place)).collect();
        let mut excluded: Vec<u32> = held.iter().map(|place| self.storages.get(*place).server).collect();
        excluded.extend(&pending);
        excluded.extend(self.newcomers.awaits_sample(id));
        let wish = Wish {
            block: Some(id),
            count: missing + usize::from(crowded_rack.is_some()),
            avoided_rack: crowded_rack,
            block_size: self.arena.record(slot).length(),
            writer: None,
            excluded,
            favoured: Vec::new(),
            existing: self.places_in_service(slot),
            policy: StoragePolicy::in_force(policy_of(self.arena.record(slot).inode())),
            only: None,
            is_new_block: false,
        };
        let targets = self.choose(wish, now);
        if targets.is_empty() {
            self.ask_where_in_doubt(id);
            return self.make_room_by_deleting_corrupt(slot);
        }
        self.give_order(id, source, targets, now);
        self.evaluate(slot);
    }

    /// The source is to copy the block to these storages, and they are awaited.
    pub(crate) fn give_order(&mut self, id: BlockId, source: u32, targets: Vec<u32>, now: Moment) {
        let servers: Vec<u32> = targets.iter().map(|place| self.storages.get(*place).server).collect();
        let deadline = now.plus_ms(self.config.pending_timeout_ms);
        self.note_copy(id, source, &servers, deadline);
        self.redundancy.pending.add(id, servers, Sender::One(source), deadline);
        self.servers.get_mut(source).orders.push_back(Order { block: id, targets });
    }

    /// No server is left that could take a copy. If a damaged replica occupies one it goes, provided that two good ones remain.
    fn make_room_by_deleting_corrupt(&mut self, slot: u32) {
        let count = self.count(slot);
        if count.corrupt > 0 && self.may_make_room(slot, &count) {
            self.delete_corrupt(slot);
        }
    }

    /// Whether a replica of this complete block that does not count may be deleted, as things stand.
    pub(crate) fn may_do_without(&self, slot: u32, is_corrupt: bool) -> bool {
        let count = self.count(slot);
        self.may_spare(slot, &count) || is_corrupt && self.may_make_room(slot, &count)
    }

    /// Whether replicas beyond the number that is wanted may go.
    fn may_spare(&self, slot: u32, count: &Count) -> bool {
        count.is_surely_enough(self.wanted(slot)) && !self.may_be_away(slot)
    }

    /// Whether a damaged replica may go to make room for a good one.
    fn may_make_room(&self, slot: u32, count: &Count) -> bool {
        count.may_make_room() && !self.may_be_away(slot)
    }

    /// A replica that counts is on a server that has been silent for a while. It may be lost, so no other goes until the server is heard
    /// again, or counts as dead. HDFS lets the silent server's replica count all the while.
    fn may_be_away(&self, slot: u32) -> bool {
        self.places_in_service(slot).into_iter().any(|place| {
            let server = self.servers.get(self.storages.get(place).server);
            self.is_stale(&server.face, self.latest)
        })
    }

    /// The least busy server with a good replica, superfluous ones included, that may send another copy; a newcomer,
    /// or a server that may be switched off at any moment, only if there is no other.
    pub(crate) fn source(&mut self, slot: u32) -> Option<u32> {
        let id = self.arena.record(slot).id();
        let mut places: Vec<u32> = self.arena.places(slot).as_slice().to_vec();
        places.retain(|place| {
            let storage = self.storages.get(*place);
            storage.is_known_to_hold(slot)
                && storage.is_present()
                && !self.redundancy.corrupt.contains(id, *place)
        });
        self.random.shuffle(&mut places);
        let busy = |server: &u32| self.transfers_of(*server);
        let is_newcomer = |server: &u32| self.servers.get(*server).trial != Trial::Passed;
        let may_be_off = |server: &u32| {
            let state = self.servers.get(*server).face.admin_state;
            matches!(state, AdminState::Decommissioned | AdminState::InMaintenance)
        };
        let servers = places.iter().map(|place| self.storages.get(*place).server);
        servers
            .filter(|server| !self.is_busy(*server))
            .min_by_key(|server| (is_newcomer(server), may_be_off(server), busy(server)))
    }

    /// The number of copies that a server sends, or is about to be told to send.
    fn transfers_of(&self, server: u32) -> usize {
        let server = self.servers.get(server);
        server.orders.len() + server.face.transfers_in_progress as usize
    }

    /// Whether the server may not be told to send another copy.
    pub(crate) fn is_busy(&self, server: u32) -> bool {
        self.transfers_of(server) >= self.config.max_transfers_per_server
    }
}
