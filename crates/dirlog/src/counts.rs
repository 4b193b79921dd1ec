//! Why messages were not taken, counted.

use std::hash::{Hash, Hasher};

/// The reason why a message had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dropped {
    /// It comes from, or speaks of, a root group's active that another has followed.
    OldRoot,
    /// It belongs to a session that is over, or was never begun.
    OtherSession,
    /// A Hello, a Welcome or a renewal that a later one has overtaken, or that came twice.
    Overtaken,
    /// Entries before it are missing.
    Gap,
    /// It contradicts itself, or asks for more than may be asked.
    Malformed,
    /// An ask or a release whose operation is over.
    LateAsk,
    /// No such group is known.
    UnknownGroup,
    /// A queue is full; it will be sent again.
    Full,
    /// This machine does nothing before an operator has decided.
    Alarmed,
}

/// How often each reason was met. Counts decide nothing: two machines that differ in them only are the same.
#[derive(Clone, Debug, Default)]
pub struct Counts([u64; 9]);

impl Counts {
    pub(crate) fn note(&mut self, reason: Dropped) {
        self.0[reason as usize] += 1;
    }

    pub fn of(&self, reason: Dropped) -> u64 {
        self.0[reason as usize]
    }
}

impl Hash for Counts {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
