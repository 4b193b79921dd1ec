//! Orders that take data servers out of service and back ([`crate::admin_order`]).

use crate::{admin_order::AdminOrder, map::BlockMap, need::Leaving};
use base::{AdminState, Moment};

impl BlockMap {
    /// An operator has ordered this for the data server. An order that it obeys already changes nothing. Returns whether
    /// something has changed.
    pub fn order_admin_state(&mut self, uuid: &str, order: AdminOrder, now: Moment) -> bool {
        let Some(index) = self.servers.find(uuid) else { return false };
        let face = &self.servers.get(index).face;
        let (state, alive) = (face.admin_state, face.alive);
        if order == AdminOrder::obeyed_in(state) {
            return false;
        }
        self.latest = now;
        if !alive {
            // Only in maintenance are the replicas of a dead server remembered.
            self.forget_replicas(index);
        }
        // HDFS waits for nothing at a dead server either: what it had is copied from elsewhere anyway.
        let next = match (order, alive) {
            (AdminOrder::InService, _) => AdminState::InService,
            (AdminOrder::Decommission, true) => AdminState::DecommissionInProgress,
            (AdminOrder::Decommission, false) => AdminState::Decommissioned,
            (AdminOrder::Maintenance, true) => AdminState::EnteringMaintenance,
            (AdminOrder::Maintenance, false) => AdminState::InMaintenance,
        };
        self.set_admin_state(index, next);
        if alive && order < AdminOrder::obeyed_in(state) {
            self.doubt_contents(index);
        }
        true
    }

    /// A weaker order holds now. The operator may have been told that this server may be switched off, and may have given its disks away. The map takes it to be there
    /// until it has been silent for long. So its replicas cost no others before it has registered and told what it holds. HDFS counts them at once.
    fn doubt_contents(&mut self, index: u32) {
        for place in self.servers.get(index).storages.clone() {
            self.storages.get_mut(place).become_stale();
            self.distrust_report(place);
        }
        self.note_contradiction(index);
    }

    /// Every block is looked at anew: some may have too few replicas in service now, others too many.
    pub(crate) fn set_admin_state(&mut self, index: u32, state: AdminState) {
        self.mark_admin_state(index, state);
        let lap = self.sweeper.request_redundancy();
        self.servers.get_mut(index).leaving = state.is_leaving().then(|| Leaving::until(lap));
        self.servers.face_mut(index).blocks_in_need = 0;
        // Blocks of other servers that leave may have been served by this one.
        self.prolong_leaving();
    }

    /// The server and its storages have this state from here on.
    pub(crate) fn mark_admin_state(&mut self, index: u32, state: AdminState) {
        if self.servers.get(index).face.admin_state != state {
            self.servers.face_mut(index).admin_state_since = self.latest;
        }
        self.servers.set_admin_state(index, state);
        for place in self.servers.get(index).storages.clone() {
            self.storages.get_mut(place).admin_state = state;
        }
    }

    /// A server that has registered may have been away: whether blocks need it is found out anew.
    pub(crate) fn doubt_admin_state(&mut self, index: u32) {
        let state = self.servers.get(index).face.admin_state;
        let state = state.way().unwrap_or(state);
        if !state.is_in_service() {
            self.set_admin_state(index, state);
        }
    }

    /// This metadata server begins to command. It does not know which data servers the one before it has found to be unneeded. Data servers in
    /// maintenance that are away stay as they are.
    pub(crate) fn doubt_admin_states(&mut self) {
        for index in self.servers.live().to_vec() {
            self.doubt_admin_state(index);
        }
    }
}
