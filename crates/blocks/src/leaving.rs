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
        let needed = match state {
            AdminState::EnteringMaintenance => self.maintenance_replication().min(self.wanted(slot)),
            // A block with very many replicas keeps nobody: as many as new files have are enough, as in HDFS.
            _ => {
                let default = usize::from(self.config.default_replication).max(1);
                self.needed_beside(slot, count.maintained_surely).min(default)
            }
        };
        let sure = if self.has_proved_servers { count.proved } else { count.live };
        sure >= needed && !count.stale
    }

    pub(crate) fn maintenance_replication(&self) -> usize {
        usize::from(self.config.maintenance_replication)
    }

    /// Something has changed many blocks at once: whether they need servers that are to leave is known after one more lap.
    pub(crate) fn prolong_leaving(&mut self) {
        if !self.servers.iter().any(|(_, server)| server.leaving.is_some()) {
            return;
        }
        self.request_sweep();
        self.sweeper.request_redundancy();
        let lap = self.sweeper.one_lap_on();
        for leaving in self.servers.iter_mut().filter_map(|server| server.leaving.as_mut()) {
            leaving.until = lap;
        }
    }

    /// A server begins anew: what its storages hold is not sure until they have reported. If they do not soon, the blocks that they had are
    /// looked at, and servers that are to leave wait for that.
    pub(crate) fn unsettle(&mut self, index: u32) {
        let mut places = self.servers.get(index).storages.clone();
        places.retain(|place| self.storages.get(*place).blocks > 0);
        if places.is_empty() || !self.servers.iter().any(|(_, server)| server.leaving.is_some()) {
            return;
        }
        self.request_sweep();
        self.sweeper.request_redundancy();
        let lap = self.sweeper.one_lap_on();
        for place in places {
            self.storages.get_mut(place).unsettled_until = Some(lap);
        }
    }

    /// Looks again at blocks that need servers which are to leave, and lets servers go that no block needs.
    pub(crate) fn look_after_leaving(&mut self) {
        let is_leaving = |server: &crate::servers::Server| server.face.admin_state.is_leaving();
        let leaving: Vec<u32> =
            self.servers.iter().filter(|(_, server)| is_leaving(server)).map(|(index, _)| index).collect();
        if leaving.is_empty() {
            return;
        }
        self.look_for_proved_servers();
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
            self.prolong_leaving();
        }
    }

    fn look_at_noted(&mut self, index: u32, looks: usize) {
        let state = self.servers.get(index).face.admin_state;
        let looked = self.servers.get_mut(index).leaving.as_mut().map(|leaving| leaving.next(looks));
        for id in looked.unwrap_or_default() {
            if !self.needs(id, index, state)
                && let Some(leaving) = &mut self.servers.get_mut(index).leaving
            {
                leaving.noted.remove(&id);
            }
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
    fn is_unneeded(&mut self, index: u32) -> bool {
        let server = self.servers.get(index);
        let storages = || server.storages.iter().map(|place| self.storages.get(*place));
        if !server.face.alive && server.storages.is_empty() {
            // What it had is copied from elsewhere. As long as anything is missing somewhere, it might have been the last to have it.
            let is_whole = self.redundancy.queue.len() == 0 && self.redundancy.pending.len() == 0;
            return is_whole && self.are_all_sure();
        }
        let is_known = |storage: &Storage| !storage.stale && !storage.is_incomplete;
        if server.face.alive && !(server.has_named_storages && storages().all(is_known)) {
            return false;
        }
        if storages().all(|storage| storage.blocks == 0)
            || self.config.rules.break_rule(Broken::LeavingNotAwaited)
        {
            return true;
        }
        let Some(leaving) = &server.leaving else { return false };
        if !leaving.noted.is_empty() || !self.sweeper.has_come_to(leaving.until) {
            return false;
        }
        let has_more = leaving.beyond > 0;
        if has_more {
            self.request_sweep();
            self.sweeper.request_redundancy();
            let until = self.sweeper.one_lap_on();
            self.servers.get_mut(index).leaving = Some(Leaving::until(until));
        }
        !has_more
    }

    /// Whether all that storages have lost, or may have lost, has been looked at.
    fn are_storages_settled(&self) -> bool {
        self.storages.iter().all(|(_, storage)| match storage.life {
            Life::Free => true,
            Life::Retired(until) => storage.blocks == 0 || self.sweeper.has_come_to(until),
            // Replicas in maintenance are not made up for, so they count here as well.
            Life::Live if !storage.admin_state.is_in_service() && !storage.admin_state.is_maintenance() => {
                true
            }
            Life::Live if storage.is_away => true,
            Life::Live => {
                let awaits_broom = storage.full_report.as_ref().is_some_and(|report| report.is_whole())
                    || storage.lacking.is_some();
                let may_lack = storage.stale
                    && storage.unsettled_until.is_some_and(|lap| !self.sweeper.has_come_to(lap));
                !awaits_broom && !may_lack
            }
        })
    }

    /// Whether every replica in service is surely there.
    fn are_all_sure(&self) -> bool {
        let mut counting = self.storages.iter().map(|(_, storage)| storage).filter(|storage| {
            storage.is_present() && storage.admin_state.is_in_service() && storage.blocks > 0
        });
        counting.all(|storage| !storage.stale && (storage.trial == Trial::Passed || !self.has_proved_servers))
    }

    /// The servers of blocks that are being written of which only servers out of service surely have anything. Their writers, or
    /// recoveries, need them.
    fn servers_of_writers(&self) -> BTreeSet<u32> {
        let mut kept = BTreeSet::new();
        for id in self.constructions.ids() {
            let Some(slot) = self.arena.find(id) else { continue };
            let places = self.constructed_places(slot);
            if !places.iter().any(|place| self.is_surely_in_service(slot, *place)) {
                kept.extend(places.iter().map(|place| self.storages.get(*place).server));
            }
        }
        kept
    }

    /// Whether the storage is in service and has surely told that it has something of a block that is being written. What it had when the
    /// block was opened again it may have lost since, if it does not tell so any more.
    fn is_surely_in_service(&self, slot: u32, place: u32) -> bool {
        let storage = self.storages.get(place);
        let is_believed = storage.trial == Trial::Passed || !self.has_proved_servers;
        let construction = self.constructions.get(self.arena.record(slot).id());
        let writes = construction.is_some_and(|it| {
            let is_written = |replica: &UcReplica| replica.state != ReplicaState::Finalized;
            it.replicas.iter().any(|(held, replica)| *held == place && is_written(replica))
        });
        let has_told = writes || (self.arena.holds(slot, place) && storage.is_known_to_hold(slot));
        storage.admin_state.is_in_service() && !storage.stale && is_believed && has_told
    }

    /// The files that are being written through servers of which none is in service, so that these servers may not leave.
    pub fn files_that_keep_servers(&self) -> BTreeSet<InodeId> {
        let mut files = BTreeSet::new();
        for id in self.constructions.ids() {
            let Some(slot) = self.arena.find(id) else { continue };
            let states = self.constructed_places(slot);
            let mut states = states.iter().map(|place| self.storages.get(*place).admin_state).peekable();
            if states.peek().is_some() && states.all(|state| !state.is_in_service()) {
                files.insert(self.arena.record(slot).inode());
            }
        }
        files
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

    fn let_go(&mut self, index: u32) {
        let face = self.servers.face_mut(index);
        let Some(aim) = face.admin_state.aim() else { return };
        let address = face.registration.transfer_address();
        self.servers.set_admin_state(index, aim);
        for place in self.servers.get(index).storages.clone() {
            self.storages.get_mut(place).admin_state = aim;
        }
        self.servers.get_mut(index).leaving = None;
        self.events.left_service.push((address, aim));
    }

    fn tell_need(&mut self, index: u32) {
        let need = match &self.servers.get(index).leaving {
            Some(leaving) => leaving.noted.len() as u64 + leaving.beyond,
            None => 0,
        };
        if self.servers.get(index).face.blocks_in_need != need {
            self.servers.face_mut(index).blocks_in_need = need;
        }
    }
}
