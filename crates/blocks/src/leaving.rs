//! The blocks that still need a data server which is to leave service.
//!
//! When a server is ordered out of service, all blocks are looked at once, in a lap of the broom. Each block that needs
//! the server is noted with it. So is each block that comes to need it later, because every change of a block ends with
//! a look at it. Noted blocks are looked at again, some in each tick, until none is left. Then the server may go, if all
//! that changed many blocks at once has been looked at as well: a server that has died or left service, a report that
//! lacked something, a server that has begun anew and not reported yet.

use crate::{
    broken::Broken,
    map::BlockMap,
    need::Leaving,
    newcomers::Trial,
    redundancy::Count,
    storage::{Life, Storage},
    words::{BlockState, ReplicaState, UcReplica},
};
use base::{AdminState, BlockId, InodeId};
use std::collections::BTreeSet;

/// Noted blocks that are looked at in one tick, those of all servers together.
const LOOKS_PER_TICK: usize = 10_000;

impl BlockMap {
    /// A complete block was looked at: servers that are to leave and that it needs note it.
    pub(crate) fn note_need(&mut self, slot: u32, count: &Count) {
        if !count.is_on_leaving {
            return;
        }
        let id = self.arena.record(slot).id();
        for place in self.arena.places(slot).as_slice().to_vec() {
            let storage = self.storages.get(place);
            // The server of a lost storage may be gone from the table.
            if !storage.is_live() || !storage.admin_state.is_leaving() {
                continue;
            }
            let (server, state) = (storage.server, storage.admin_state);
            if !self.is_served_without(slot, count, state)
                && let Some(leaving) = &mut self.servers.get_mut(server).leaving
            {
                leaving.note(id);
            }
        }
    }

    /// A replica that does not count has turned up, perhaps on a server that is to leave. It may be the last one.
    pub(crate) fn look_for_need(&mut self, slot: u32) {
        if self.arena.record(slot).state() == BlockState::Complete && self.may_command() {
            let count = self.count(slot);
            self.note_need(slot, &count);
        }
    }

    /// Whether enough replicas of a complete block are surely in service, so that a server in this state may go.
    /// Replicas that may be made up, or gone, do not count.
    fn is_served_without(&self, slot: u32, count: &Count, state: AdminState) -> bool {
        self.has_enough_without(slot, count, state) && !count.stale && !count.moving
    }

    /// Whether the replicas in service that are not merely claimed are as many as the block needs, so that a server in this state may go.
    fn has_enough_without(&self, slot: u32, count: &Count, state: AdminState) -> bool {
        let needed = match state {
            AdminState::EnteringMaintenance => self.maintenance_replication().min(self.wanted(slot)),
            // A block with very many replicas keeps nobody: as many as new files have are enough, as in HDFS.
            _ => {
                let default = usize::from(self.config.default_replication).max(1);
                self.needed_beside(slot, count.maintained_surely).min(default)
            }
        };
        self.sure(count) >= needed
    }

    /// The replicas in service that are not merely claimed.
    fn sure(&self, count: &Count) -> usize {
        if self.has_proved_servers { count.believed } else { count.live - count.dubious }
    }

    pub(crate) fn maintenance_replication(&self) -> usize {
        usize::from(self.config.maintenance_replication)
    }

    /// Replicas that counted prove nothing any more: whether servers that are to leave, or that were let go, are needed is known after one more lap.
    pub(crate) fn look_again_for_need(&mut self) {
        if self.is_any_let_go() {
            self.sweeper.request_redundancy();
        }
        self.prolong_leaving();
    }

    fn is_any_leaving(&self) -> bool {
        self.servers.iter().any(|(_, server)| server.leaving.is_some())
    }

    /// Something has changed many blocks at once: whether they need servers that are to leave is known after one more lap.
    pub(crate) fn prolong_leaving(&mut self) {
        if !self.is_any_leaving() {
            return;
        }
        let lap = self.sweeper.request_redundancy();
        for leaving in self.servers.iter_mut().filter_map(|server| server.leaving.as_mut()) {
            leaving.until = lap;
        }
    }

    /// A server begins anew: what its storages hold is not sure until they have reported. If they do not soon, the blocks that they had are
    /// looked at, and servers that are to leave wait for that.
    pub(crate) fn unsettle(&mut self, index: u32) {
        let mut places = self.servers.get(index).storages.clone();
        places.retain(|place| self.storages.get(*place).blocks > 0);
        if places.is_empty() || !self.is_any_leaving() {
            return;
        }
        let lap = self.sweeper.request_redundancy();
        for place in places {
            self.storages.get_mut(place).unsettled_until = Some(lap);
        }
    }

    /// The files of blocks that need a server which is to leave, and whether such a block has a replica in service. `None` if more than `max` need it, or
    /// not all are noted: those that are known do not tell of the others.
    pub fn needed_from(&self, uuid: &str, max: usize) -> Option<Vec<(Option<InodeId>, bool)>> {
        let index = self.servers.find(uuid)?;
        let Some(leaving) = &self.servers.get(index).leaving else { return Some(Vec::new()) };
        if leaving.need() > max as u64 || leaving.beyond > 0 {
            return None;
        }
        let noted = leaving.noted.iter().filter_map(|id| Some((id, self.arena.find(id)?)));
        Some(noted.map(|(id, slot)| (self.inode_of(id), self.count(slot).live > 0)).collect())
    }

    /// Looks again at blocks that need servers which are to leave, and lets servers go that no block needs.
    pub(crate) fn look_after_leaving(&mut self) {
        self.look_for_proved_servers();
        let leaving = self.servers.iter().filter(|(_, server)| server.leaving.is_some());
        let leaving: Vec<u32> = leaving.map(|(index, _)| index).collect();
        if leaving.is_empty() {
            return;
        }
        let looks = (LOOKS_PER_TICK / leaving.len()).max(1);
        for index in &leaving {
            self.look_at_noted(*index, looks);
        }
        let clean: Vec<u32> = leaving.iter().copied().filter(|index| self.is_unneeded(*index)).collect();
        if !clean.is_empty() && self.are_storages_settled() {
            let kept = self.servers_of_writers();
            clean.into_iter().filter(|index| !kept.contains(index)).for_each(|index| self.let_go(index));
        }
        leaving.into_iter().for_each(|index| self.tell_need(index));
    }

    /// As long as no server has shown that it stores blocks, because nothing was written since the metadata server began, each is believed.
    fn look_for_proved_servers(&mut self) {
        let mut live = self.servers.live().iter();
        let has_proved = live.any(|server| self.servers.get(*server).trial == Trial::Passed);
        if has_proved != self.has_proved_servers {
            self.has_proved_servers = has_proved;
            self.look_again_for_need();
        }
    }

    fn look_at_noted(&mut self, index: u32, looks: usize) {
        let state = self.servers.get(index).face.admin_state;
        let Some(leaving) = &mut self.servers.get_mut(index).leaving else { return };
        let looked = leaving.noted.next(looks);
        let gone: Vec<BlockId> = looked.into_iter().filter(|id| !self.needs(*id, index, state)).collect();
        let Some(leaving) = &mut self.servers.get_mut(index).leaving else { return };
        gone.into_iter().for_each(|id| leaving.noted.remove(id));
        if leaving.noted.len() == 0 && leaving.beyond > 0 {
            // There is room again for the blocks that were counted and not noted: another lap finds them.
            *leaving = Leaving::until(self.sweeper.request_redundancy());
        }
    }

    fn needs(&self, id: BlockId, server: u32, state: AdminState) -> bool {
        let Some(slot) = self.arena.find(id) else { return false };
        let is_complete = self.arena.record(slot).state() == BlockState::Complete;
        let is_here = |place| self.storages.is_live(place) && self.storages.get(place).server == server;
        let is_held = || self.arena.places(slot).iter().any(is_here);
        // A block that is written again is looked at with the others that are being written.
        is_complete && is_held() && !self.is_served_without(slot, &self.count(slot), state)
    }

    /// Whether no complete block needs the server, as far as single blocks tell.
    fn is_unneeded(&self, index: u32) -> bool {
        let server = self.servers.get(index);
        let storages = || server.storages.iter().map(|place| self.storages.get(*place));
        if !server.face.alive && server.storages.is_empty() {
            // The blocks of the server are copied from elsewhere. As long as any block lacks replicas, the server may have held its last one.
            let queue = &self.redundancy.queue;
            let is_whole = queue.len() == queue.misplaced_count() && self.redundancy.pending.len() == 0;
            return is_whole && self.are_all_sure();
        }
        if server.face.alive && !self.is_surely_known(index) {
            return false;
        }
        if storages().all(|storage| storage.blocks == 0)
            || self.config.rules.break_rule(Broken::LeavingNotAwaited)
        {
            return true;
        }
        let leaving = server.leaving.as_ref();
        leaving.is_some_and(|leaving| leaving.need() == 0 && self.sweeper.has_come_to(leaving.until))
    }

    /// Whether the server has named its storages in this session, and all that is on them.
    pub(crate) fn is_surely_known(&self, index: u32) -> bool {
        let server = self.servers.get(index);
        let is_known = |storage: &Storage| !storage.stale && !storage.is_incomplete;
        server.has_named_storages && server.storages.iter().all(|place| is_known(self.storages.get(*place)))
    }

    /// Whether all that storages have lost, or may have lost, has been looked at.
    fn are_storages_settled(&self) -> bool {
        self.storages.iter().all(|(_, storage)| match storage.life {
            Life::Free => true,
            Life::Retired(until) => storage.blocks == 0 || self.sweeper.has_come_to(until),
            // Nothing rests on replicas that are to go for good. Those in maintenance are not made up for, so they count here.
            Life::Live if storage.admin_state.is_for_good() || storage.is_away => true,
            Life::Live => {
                let awaits_broom = storage.full_report.as_ref().is_some_and(|report| report.is_whole())
                    || storage.lacking.is_some();
                let may_lack = storage.stale
                    && storage.unsettled_until.is_some_and(|lap| !self.sweeper.has_come_to(lap));
                // A server that has been silent for a while may be lost. It is heard again, or counts as dead, and then its blocks are looked at.
                let may_be_away = storage.admin_state.is_in_service()
                    && storage.blocks > 0
                    && self.is_stale(&self.servers.get(storage.server).face, self.latest);
                !awaits_broom && !may_lack && !may_be_away
            }
        })
    }

    fn is_believed(&self, storage: &Storage) -> bool {
        storage.trial.is_believed() || !self.has_proved_servers
    }

    /// Whether every replica in service is surely there.
    fn are_all_sure(&self) -> bool {
        let mut counting = self.storages.iter().map(|(_, storage)| storage).filter(|storage| {
            storage.is_present() && storage.admin_state.is_in_service() && storage.blocks > 0
        });
        counting.all(|storage| !storage.stale && self.is_believed(storage))
    }

    /// The blocks that are being written of which only servers out of service surely have anything, and their places. The writers, or
    /// recoveries, need these servers.
    fn kept_for_writers(&self) -> impl Iterator<Item = (u32, Vec<u32>)> + '_ {
        let slots = self.constructions.ids().filter_map(|id| self.arena.find(id));
        let placed = slots.map(|slot| (slot, self.constructed_places(slot)));
        placed.filter(|(slot, places)| !places.iter().any(|place| self.is_surely_in_service(*slot, *place)))
    }

    fn servers_of_writers(&self) -> BTreeSet<u32> {
        let places = self.kept_for_writers().flat_map(|(_, places)| places);
        places.map(|place| self.storages.get(place).server).collect()
    }

    /// The files that keep servers from leaving, because they are being written there and surely nowhere else.
    pub fn files_that_keep_servers(&self) -> BTreeSet<InodeId> {
        let is_leaving = |place: &u32| self.storages.get(*place).admin_state.is_leaving();
        let kept = self.kept_for_writers().filter(|(_, places)| places.iter().any(is_leaving));
        kept.map(|(slot, _)| self.arena.record(slot).inode()).collect()
    }

    /// Whether the storage is in service and has surely told that it has something of a block that is being written. What it had when the
    /// block was opened again it may have lost since, if it does not tell so any more.
    fn is_surely_in_service(&self, slot: u32, place: u32) -> bool {
        let storage = self.storages.get(place);
        let construction = self.constructions.get(self.arena.record(slot).id());
        let writes = construction.is_some_and(|it| {
            let is_written = |replica: &UcReplica| replica.state != ReplicaState::Finalized;
            it.replicas.iter().any(|(held, replica)| *held == place && is_written(replica))
        });
        let has_told = writes || (self.arena.holds(slot, place) && storage.is_known_to_hold(slot));
        storage.admin_state.is_in_service() && !storage.stale && self.is_believed(storage) && has_told
    }

    /// A block is written on, perhaps through servers that were let go alone. Then they are needed again.
    pub(crate) fn call_back(&mut self, slot: u32) {
        let places = self.constructed_places(slot);
        if places.iter().any(|place| self.storages.get(*place).admin_state.is_in_service()) {
            return;
        }
        for place in places {
            let (server, state) = (self.storages.get(place).server, self.storages.get(place).admin_state);
            if !state.is_leaving() {
                self.doubt_admin_state(server);
            }
        }
    }

    /// A block is complete, and its last good replicas are on servers that were let go, or on others that may not have what they tell of. The servers
    /// that were let go are needed again. Returns whether any was called back.
    pub(crate) fn call_back_last(&mut self, slot: u32, count: &Count) -> bool {
        if self.sure(count) + count.leaving > 0 || count.decommissioned + count.in_maintenance == 0 {
            return false;
        }
        let mut is_any_called = false;
        for place in self.good_places(slot) {
            let storage = self.storages.get(place);
            let server = storage.server;
            let Some(way) = storage.admin_state.way() else { continue };
            let is_there = storage.is_present() && self.servers.get(server).face.alive;
            // What lets a server go must not call it back.
            if is_there && !self.has_enough_without(slot, count, way) {
                self.doubt_admin_state(server);
                is_any_called = true;
            }
        }
        is_any_called
    }

    fn is_any_let_go(&self) -> bool {
        self.servers.live().iter().any(|server| self.servers.get(*server).face.admin_state.way().is_some())
    }

    /// Blocks that are being written may have been left to servers that were let go. Those are needed again.
    pub(crate) fn call_back_for_writers(&mut self) {
        if !self.is_any_let_go() {
            return;
        }
        for server in self.servers_of_writers() {
            let face = &self.servers.get(server).face;
            if face.alive && !face.admin_state.is_leaving() {
                self.doubt_admin_state(server);
            }
        }
    }

    fn let_go(&mut self, index: u32) {
        let face = &self.servers.get(index).face;
        let Some(aim) = face.admin_state.aim() else { return };
        let address = face.registration.transfer_address();
        self.mark_admin_state(index, aim);
        self.servers.get_mut(index).leaving = None;
        self.events.left_service.push((address, aim));
    }

    fn tell_need(&mut self, index: u32) {
        let need = self.servers.get(index).leaving.as_ref().map_or(0, Leaving::need);
        if self.servers.get(index).face.blocks_in_need != need {
            self.servers.face_mut(index).blocks_in_need = need;
        }
    }
}
