//! The words in which a member tells the rest of its server about the group.

use base::{Entry, Epoch, MemberId, Sn};
use group::Role;

/// This member's present role and epoch, for code that acts on a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The role as published: all entries that committed before it changed have been applied.
    pub role: Role,
    /// The highest epoch seen.
    pub epoch: Epoch,
    /// The member that leads, as far as is known here.
    pub active: Option<MemberId>,
}

impl Standing {
    pub fn is_serving(&self) -> bool {
        matches!(self.role, Role::Serving { .. })
    }
}

/// The group's decisions on their way to the namespace.
#[derive(Debug, Default)]
pub struct Followed {
    /// Entries that have committed and are not applied yet.
    pub apply: Vec<Entry>,
    /// Entries to be applied behind them, although they may not have committed.
    pub ahead: Vec<Entry>,
    pub committed: Option<Sn>,
    /// The new role of this member, if it has changed.
    pub role: Option<Role>,
}

/// Called once with the answer to an order, on any thread.
pub type OrderDone = Box<dyn FnOnce(Result<String, String>) + Send>;
