//! The blocks that still need a data server which is to leave service.
//!
//! When a server is ordered out of service, all blocks are looked at once, in a lap of the broom. Each block that needs
//! the server is noted with it, and so is each block that comes to need it later, because every change of a block ends
//! with a look at it. Noted blocks are looked at again, some in each tick, until none is left. Then one more lap has to
//! find nothing before the server may go. If the first lap finds nothing, that is enough.

use crate::{admin_state::AdminState, broken::Broken, map::BlockMap, redundancy::Count, words::BlockState};
use base::{BlockId, InodeId};
use std::collections::BTreeSet;

/// Noted blocks of one server that are looked at in one tick.
const LOOKS_PER_TICK: usize = 10_000;
/// Blocks that are noted for one server. If more need it, another lap finds them once these have gone.
const NOTED_MAX: usize = 1_000_000;

/// What is known of a server that is to leave.
pub struct Leaving {
    /// Blocks that need the server, as far as is known.
    noted: BTreeSet<BlockId>,
    /// The number of blocks that were found since the lap began and not noted, for want of room.
    beyond: u64,
    /// Since the lap began no block was found that needs the server.
    is_clean: bool,
    /// Where the next look begins.
    cursor: BlockId,
}

impl Leaving {
    /// A lap of the broom is about to begin.
    pub fn for_a_lap() -> Self {
        Self { noted: BTreeSet::new(), beyond: 0, is_clean: true, cursor: BlockId(0) }
    }

    fn note(&mut self, id: BlockId) {
        self.is_clean = false;
        if self.noted.len() < NOTED_MAX {
            self.noted.insert(id);
        } else {
            self.beyond += u64::from(!self.noted.contains(&id));
        }
    }

    fn next(&mut self, count: usize) -> Vec<BlockId> {
        let (before, behind) = (self.noted.range(..self.cursor), self.noted.range(self.cursor..));
        let next: Vec<BlockId> = behind.chain(before).copied().take(count).collect();
        self.cursor = next.last().map_or(BlockId(0), |last| BlockId(last.0.saturating_add(1)));
        next
    }
}

impl BlockMap {
    /// A complete block was looked at: servers that are to leave and that it needs note it.
    pub(crate) fn note_need(&mut self, slot: u32, count: &Count) {
        if !count.is_on_leaving || self.is_served_without(slot, count, None) {
            return;
        }
        let id = self.arena.record(slot).id();
        for place in self.arena.places(slot).as_slice().to_vec() {
            let (server, state) = (self.storages.get(place).server, self.storages.get(place).admin_state);
            if state.is_leaving() && !self.is_served_without(slot, count, Some(state)) {
                self.note_block(server, id);
            }
        }
    }

    fn note_block(&mut self, server: u32, id: BlockId) {
        if let Some(leaving) = &mut self.servers.get_mut(server).leaving {
            leaving.note(id);
        }
    }

    /// Whether enough replicas of a complete block are surely in service, so that a server in this state may go; `None`: in any state.
    /// Replicas that may be made up, or gone, do not count.
    fn is_served_without(&self, slot: u32, count: &Count, state: Option<AdminState>) -> bool {
        let wanted = self.wanted(slot);
        let needed = match state {
            Some(AdminState::EnteringMaintenance) => self.maintenance_replication().min(wanted),
            // A block with very many replicas keeps nobody: as many as new files have are enough, as in HDFS.
            _ => wanted.min(usize::from(self.config.default_replication).max(1)),
        };
        count.proved >= needed && !count.stale
    }

    pub(crate) fn maintenance_replication(&self) -> usize {
        usize::from(self.config.maintenance_replication)
    }

    /// Looks again at blocks that need servers which are to leave, and lets servers go that no block needs.
    pub(crate) fn look_after_leaving(&mut self) {
        let is_leaving = |server: &crate::servers::Server| server.face.admin_state.is_leaving();
        let leaving: Vec<u32> =
            self.servers.iter().filter(|(_, server)| is_leaving(server)).map(|(index, _)| index).collect();
        for index in leaving {
            self.look_at_noted(index);
            if self.may_go(index) {
                self.let_go(index);
            }
            self.tell_need(index);
        }
    }

    /// The storages of a server are not surely known for a while. Blocks that were served by it need servers that are to leave, perhaps.
    pub(crate) fn look_again_for_those_leaving(&mut self) {
        if self.servers.iter().any(|(_, server)| server.leaving.is_some()) {
            self.request_sweep();
            self.sweeper.request_redundancy();
        }
    }

    fn look_at_noted(&mut self, index: u32) {
        let state = self.servers.get(index).face.admin_state;
        let looked = self.servers.get_mut(index).leaving.as_mut().map(|leaving| leaving.next(LOOKS_PER_TICK));
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
        let is_held =
            || self.arena.places(slot).iter().any(|place| self.storages.get(place).server == server);
        // A block that is written again is looked at with the others that are being written.
        is_complete && is_held() && !self.is_served_without(slot, &self.count(slot), Some(state))
    }

    /// Whether no block needs the server any more.
    fn may_go(&mut self, index: u32) -> bool {
        let server = self.servers.get(index);
        if !server.face.alive {
            // What it had is copied from elsewhere. As long as anything is missing somewhere, it might have been the last to have it.
            let is_whole = self.redundancy.queue.len() == 0 && self.redundancy.pending.len() == 0;
            return is_whole && self.sweeper.is_idle();
        }
        let is_known = |place: &u32| {
            let storage = self.storages.get(*place);
            !storage.stale && !storage.is_incomplete
        };
        let is_reported = server.has_named_storages && server.storages.iter().all(is_known);
        let Some(leaving) = &server.leaving else { return false };
        if self.config.rules.break_rule(Broken::LeavingNotAwaited) {
            return is_reported && self.sweeper.is_idle();
        }
        // While the broom is under way, replicas may have been lost, or may have left service, of blocks that it has still to look at.
        if !is_reported || !leaving.noted.is_empty() || !self.sweeper.is_idle() {
            return false;
        }
        if !leaving.is_clean {
            self.request_sweep();
            self.sweeper.request_redundancy();
            self.servers.get_mut(index).leaving = Some(Leaving::for_a_lap());
            return false;
        }
        !self.is_written_through(index)
    }

    /// Whether some block is being written of which only servers out of service have anything. Its writer, or a recovery, needs them.
    fn is_written_through(&self, index: u32) -> bool {
        self.constructions.ids().any(|id| {
            let Some(slot) = self.arena.find(id) else { return false };
            let places = self.constructed_places(slot);
            let is_here = |place: &u32| self.storages.get(*place).server == index;
            let is_in_service = |place: &u32| self.storages.get(*place).admin_state.is_in_service();
            places.iter().any(is_here) && !places.iter().any(is_in_service)
        })
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
