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
