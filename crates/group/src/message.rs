//! What members say to each other.
//!
//! Every message travels with its sender's store and boot ([`crate::Input::Message`]); the transport has
//! made sure that the sender is who it says. Messages may be lost, doubled and delayed; none is relied upon.

use crate::Proposal;
use base::{Entry, Epoch, LogPoint, Sn};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// The active's stream to each member: entries that follow `previous`, perhaps none.
    Append(Append),
    /// Everything up to `last`, verified against the active's log in this very epoch, is durable here.
    Appended {
        epoch: Epoch,
        last: Sn,
    },
    /// `previous` of an `Append` is not in this log. Whoever leads goes on from `committed`.
    Mismatch {
        epoch: Epoch,
        end: LogPoint,
        committed: LogPoint,
    },
    /// The answer to anything of an epoch lower than the one promised.
    Fenced {
        promised: Epoch,
    },
    /// A new active asks for the promise of its epoch.
    NewEpoch {
        epoch: Epoch,
    },
    /// The promise is durable; this is how far the log goes.
    Promised {
        epoch: Epoch,
        end: LogPoint,
        committed: LogPoint,
        is_suspect: bool,
    },
    /// "I am active." Asks for a grant of the lease; `round` names this very beacon.
    Beacon {
        epoch: Epoch,
        round: u64,
        committed: Sn,
        lease_ms: u64,
    },
    /// The answer to a beacon. `is_granted`: the sender makes no claim for `lease_ms` from now on. `is_ready`: its
    /// state machine could serve clients at once.
    Grant {
        epoch: Epoch,
        round: u64,
        is_granted: bool,
        is_ready: bool,
        end: LogPoint,
        committed: LogPoint,
    },
    /// Asks for entries after `after`, to adopt a longer log or to be renewed.
    Fetch {
        after: LogPoint,
        bytes_max: u32,
    },
    /// The answer: entries that follow `previous`. Committed up to `committed`.
    Fetched {
        previous: LogPoint,
        entries: Vec<Entry>,
        committed: Sn,
    },
    /// The answer when `after` is not in this log, or not any more. `committed` is a point that is.
    FetchFailed {
        after: LogPoint,
        committed: LogPoint,
        is_gone: bool,
    },
    /// The active no longer has the entries that the receiver lacks: an image is needed first.
    NeedsImage {
        epoch: Epoch,
    },
    /// Does the receiver hold a live grant?
    PreVote {
        epoch: Epoch,
    },
    PreVoted {
        epoch: Epoch,
        holds_grant: bool,
        end: LogPoint,
    },
    /// The active has ended its epoch with everything committed, and the receiver is to go on.
    HandOver {
        epoch: Epoch,
        end: LogPoint,
    },
    /// A member asks the active to append something, a checkpoint for instance.
    Suggest {
        epoch: Epoch,
        proposal: Proposal,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Append {
    pub epoch: Epoch,
    pub previous: LogPoint,
    pub entries: Vec<Entry>,
    /// Everything up to here has committed.
    pub committed: Sn,
}

impl Message {
    /// The most bytes of payloads in one message.
    pub const ENTRIES_BYTES_MAX: usize = 4 << 20;
}
