//! The names of sessions, calls and operations.

use base::Epoch;
use std::fmt;

/// The time from one Hello of a group to the next.
///
/// The epoch is that of the root group's active that gave it. An epoch is never used twice, so a session never is: no number has to be
/// kept on a disk for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session {
    pub root_epoch: Epoch,
    pub number: u64,
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.root_epoch, self.number)
    }
}

/// One Hello. Those of one group are ordered: by the epoch of its active, then by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HelloId {
    /// The epoch in which the sender is its group's active.
    pub epoch: Epoch,
    pub number: u64,
}

/// A call at a home's active, as its driver names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// An ordered operation at the root group's active, as its driver names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);
