//! Data servers that are taken out of service ([`base::AdminState`]).
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

use base::AdminState;

/// An operator's order for a data server. Where several sources give orders the greatest holds: a server is out of service if one source
/// says so, and for good if one says that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdminOrder {
    #[default]
    InService,
    /// The map does not know when the maintenance ends: another order ends it.
    Maintenance,
    Decommission,
}

impl AdminOrder {
    /// The order that a server in this state obeys.
    pub fn obeyed_in(state: AdminState) -> Self {
        match state {
            AdminState::InService => Self::InService,
            AdminState::EnteringMaintenance | AdminState::InMaintenance => Self::Maintenance,
            AdminState::DecommissionInProgress | AdminState::Decommissioned => Self::Decommission,
        }
    }
}
