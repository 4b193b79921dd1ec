//! Words for the roles of a group's members, as commands and pages show them.

use crate::clover::admin::RoleProto;

impl RoleProto {
    /// The word for people and scripts.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Junior => "junior",
            Self::Standby => "standby",
            Self::Claiming => "claiming",
            Self::Starting => "starting",
            Self::Active => "active",
            Self::HandingOver => "handing over",
            Self::Stopped => "stopped",
            Self::Reading => "reads only",
            Self::Repairing => "damaged",
        }
    }
}
