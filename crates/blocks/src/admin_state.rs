//! Whether a data server is in service, or is being taken out of service: Hadoop's admin states.
//!
//! An operator orders a data server out of service for good (*decommission*) or for a while (*maintenance*). The server
//! goes on to serve what it has, but is given no new replicas, and its replicas no longer count as copies in service.
//! So blocks that need it are copied to other servers. Once no block needs it, it may be switched off:
//! - it is *decommissioned* when each of its blocks has as many replicas in service as are wanted;
//! - it is *in maintenance* when each of its blocks has a few replicas in service
//!   ([`crate::Config::maintenance_replication`]). Then it may be away for as long as the order holds: its replicas are
//!   remembered, and those that are missing elsewhere are not made up for.
//!
//! Which blocks still need a server is found by one lap of the broom over all records, and by each look at a block
//! after that: see [`crate::leaving`].

use crate::{leaving::Leaving, map::BlockMap};
use base::Moment;

/// What an operator has ordered for a data server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdminOrder {
    #[default]
    InService,
    Decommission,
    /// The map does not know when the maintenance ends: another order ends it.
    Maintenance,
}

/// How far a data server has come with what was ordered for it. The names are Hadoop's, but for the first, which Hadoop
/// calls `NORMAL`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdminState {
    #[default]
    InService,
    DecommissionInProgress,
    Decommissioned,
    EnteringMaintenance,
    InMaintenance,
}

impl AdminState {
    pub fn is_in_service(self) -> bool {
        self == Self::InService
    }

    /// Blocks may need the server yet.
    pub fn is_leaving(self) -> bool {
        matches!(self, Self::DecommissionInProgress | Self::EnteringMaintenance)
    }

    pub fn is_maintenance(self) -> bool {
        matches!(self, Self::EnteringMaintenance | Self::InMaintenance)
    }

    /// Whether clients are told of replicas on a server in this state. In maintenance it may be off at any moment.
    pub fn is_shown_to_readers(self) -> bool {
        self != Self::InMaintenance
    }

    /// Whether a server in this state needs no change to obey this order.
    pub fn obeys(self, order: AdminOrder) -> bool {
        match order {
            AdminOrder::InService => self.is_in_service(),
            AdminOrder::Decommission => matches!(self, Self::DecommissionInProgress | Self::Decommissioned),
            AdminOrder::Maintenance => self.is_maintenance(),
        }
    }

    /// The state in which the server may be switched off, if it is on its way there.
    pub(crate) fn aim(self) -> Option<Self> {
        match self {
            Self::DecommissionInProgress => Some(Self::Decommissioned),
            Self::EnteringMaintenance => Some(Self::InMaintenance),
            _ => None,
        }
    }
}

impl BlockMap {
    /// An operator has ordered this for the data server. An order that it obeys already changes nothing. Returns whether
    /// something has changed.
    pub fn order_admin_state(&mut self, uuid: &str, order: AdminOrder, now: Moment) -> bool {
        let Some(index) = self.servers.find(uuid) else { return false };
        let face = &self.servers.get(index).face;
        let (state, alive) = (face.admin_state, face.alive);
        if state.obeys(order) {
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
        true
    }

    /// Every block is looked at anew: some may have too few replicas in service now, others too many.
    pub(crate) fn set_admin_state(&mut self, index: u32, state: AdminState) {
        self.servers.set_admin_state(index, state);
        for place in self.servers.get(index).storages.clone() {
            self.storages.get_mut(place).admin_state = state;
        }
        self.request_sweep();
        self.sweeper.request_redundancy();
        self.begin_to_leave(index);
        // Blocks of other servers that leave may have been served by this one.
        self.prolong_leaving();
    }

    /// A server that has registered may have been away: whether blocks need it is found out anew.
    pub(crate) fn doubt_admin_state(&mut self, index: u32) {
        let state = match self.servers.get(index).face.admin_state {
            AdminState::Decommissioned => AdminState::DecommissionInProgress,
            AdminState::InMaintenance => AdminState::EnteringMaintenance,
            state => state,
        };
        if !state.is_in_service() {
            self.set_admin_state(index, state);
        }
    }

    /// This server begins to command, and knows nothing of what the one before it has found out. A server in maintenance that is away stays
    /// so.
    pub(crate) fn doubt_admin_states(&mut self) {
        for index in self.servers.live().to_vec() {
            self.doubt_admin_state(index);
        }
    }

    fn begin_to_leave(&mut self, index: u32) {
        let is_leaving = self.servers.get(index).face.admin_state.is_leaving();
        let until = self.sweeper.one_lap_on();
        self.servers.get_mut(index).leaving = is_leaving.then(|| Leaving::until(until));
        self.servers.face_mut(index).blocks_in_need = 0;
    }
}
