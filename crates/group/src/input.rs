//! All that can wake a member.

use base::{EntryKind, Epoch, GroupView, LogPoint};
use bytes::Bytes;

/// One thing that happened.
#[derive(Debug)]
pub enum Input {
    /// The coordinator's view as just read, with its version. A member's first input.
    View { view: GroupView, version: u64 },
    /// The coordinator's answer to the [`crate::ViewChange`] last asked for: the new version, or why not.
    Changed(Result<u64, ChangeFailed>),
    /// What [`crate::Effects::release`] gave back: these writes are durable.
    Durable(Proof),
    /// The journal has failed; nothing of this member becomes durable any more.
    DiskFailed,
    /// Entries to append; only while serving.
    Propose(Vec<Proposal>),
    /// The operator, or the process on its way out, wants this member to lead no more.
    StepDown,
    /// [`crate::Member::deadline`] has passed.
    Tick,
}

/// One entry to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub kind: EntryKind,
    pub payload: Bytes,
}

/// Why a change of the view was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeFailed {
    /// Somebody else changed it first: read again.
    BadVersion,
    /// The answer got lost: the same change is repeated until there is one.
    Unknown,
}

/// Says that something this member asked for is durable. Made by [`crate::Effects::release`] only.
#[derive(Debug)]
pub struct Proof {
    pub(crate) promised: Option<Epoch>,
    pub(crate) appended: Option<LogPoint>,
}
