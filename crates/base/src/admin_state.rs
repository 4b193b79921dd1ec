//! Whether a data server is in service.

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

    pub fn is_for_good(self) -> bool {
        matches!(self, Self::DecommissionInProgress | Self::Decommissioned)
    }

    /// Whether clients are told of replicas on a server in this state. In maintenance it may be off at any moment.
    pub fn is_shown_to_readers(self) -> bool {
        self != Self::InMaintenance
    }

    /// The state in which the server may be switched off, if it is on its way there.
    pub fn aim(self) -> Option<Self> {
        match self {
            Self::DecommissionInProgress => Some(Self::Decommissioned),
            Self::EnteringMaintenance => Some(Self::InMaintenance),
            _ => None,
        }
    }

    /// The state on the way to this one, in which the server may still be needed; `None` unless it may be switched off in this one.
    pub fn way(self) -> Option<Self> {
        match self {
            Self::Decommissioned => Some(Self::DecommissionInProgress),
            Self::InMaintenance => Some(Self::EnteringMaintenance),
            _ => None,
        }
    }
}
