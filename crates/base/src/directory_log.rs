//! The directory log, which all groups of a namespace follow: its entries, and places in it.

mod entry;
mod mark;

pub use entry::Entry;
pub use mark::{Mark, MarkKind};

use crate::{Chain, Epoch};
use std::fmt;

/// The number of an entry in the directory log. The first is 1, and there are no gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dix(pub u64);

impl Dix {
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Dix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A place in the directory log with the proof of what leads up to it. The default is the empty log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    pub dix: Dix,
    pub chain: Chain,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.dix, self.chain)
    }
}

/// One round of asking homes for holds, for one ordered operation. Later rounds have greater names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId {
    pub root_epoch: Epoch,
    pub number: u64,
}

impl fmt::Display for AskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.root_epoch, self.number)
    }
}
