//! The messages between members.
//!
//! Every message travels with its sender's store and boot ([`crate::Input::Message`]); the transport has
//! made sure that the sender is who it says. Messages may be lost, doubled and delayed; none is relied upon.

use crate::Proposal;
use base::{Entry, Epoch, LogPoint, Sn, TxId};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// The active's stream to each member: entries that follow `previous`, perhaps none.
    Append(Append),
    /// Everything up to `last`, verified against the active's log in this very epoch, is durable here.
    Appended {
        epoch: Epoch,
        last: Sn,
    },
    /// `previous` of an `Append` is not in this log. The active goes on from `committed`.
    Mismatch {
        epoch: Epoch,
        end: LogPoint,
        committed: LogPoint,
    },
    /// The active's log holds other entries than have committed here. Nothing of the receiver's is taken, and nothing of the
    /// sender's given up, unless an unclean election explains it.
    Contradiction {
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
    /// state machine could serve clients at once. `data_servers`: so many have reached it lately; 0 also where it does not
    /// say so.
    Grant {
        epoch: Epoch,
        round: u64,
        is_granted: bool,
        is_ready: bool,
        end: LogPoint,
        committed: LogPoint,
        data_servers: u32,
    },
    /// Asks for entries after `after`, to adopt a longer log in this epoch.
    Fetch {
        epoch: Epoch,
        after: LogPoint,
        bytes_max: u32,
    },
    /// The answer: entries that follow `previous`. Committed up to `committed`. The epoch is that of the question: what was
    /// asked in an earlier one may have been cut off since.
    Fetched {
        epoch: Epoch,
        previous: LogPoint,
        entries: Vec<Entry>,
        committed: Sn,
    },
    /// The answer when `after` is not in this log, or not any more. `committed` is a point that is.
    FetchFailed {
        epoch: Epoch,
        after: LogPoint,
        committed: LogPoint,
        is_gone: bool,
    },
    /// The active no longer has the entries that the receiver lacks, or shares none with it: an image is needed first.
    /// `unclean` is the last epoch in the active's log that was begun by an unclean election: what had committed in an older epoch
    /// and is not in the active's log was given up by an operator's order. 0: nothing ever was.
    NeedsImage {
        epoch: Epoch,
        unclean: Epoch,
    },
    /// Does the receiver hold a live grant?
    PreVote {
        epoch: Epoch,
    },
    PreVoted {
        epoch: Epoch,
        holds_grant: bool,
        known: Known,
    },
    /// Said to each other member when a connection to it is made: what this store has promised and holds.
    Hello {
        known: Known,
    },
    /// The active has ended its epoch with everything committed, and the receiver is to go on.
    HandOver {
        epoch: Epoch,
        end: LogPoint,
    },
    /// The digests of the sender's state machine at its last checkpoints, the oldest first.
    Digests {
        digests: Vec<StateDigest>,
    },
    /// A member asks the active to append something, a checkpoint for instance.
    Suggest {
        epoch: Epoch,
        proposal: Proposal,
    },
}

/// The proof of a member's store about the group's history. It may tell more than the coordinator knows, if that was
/// restored from a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Known {
    /// The highest epoch that the store has promised, durably. The coordinator knew that epoch before.
    pub promised: Epoch,
    /// The end of the log that is durable.
    pub end: LogPoint,
    /// The last entry that is known to have committed.
    pub committed: LogPoint,
}

/// A digest of a state machine right behind one entry of the log. It is the same on all members, for they apply the same entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateDigest {
    pub at: TxId,
    /// How it was made: only digests of one form can be compared.
    pub form: u32,
    pub digest: u64,
}

impl StateDigest {
    /// Every message about a difference begins with this, also the note beside a store that was put aside for one.
    pub const DIFFERENCE: &str = "the members have made different states of the same entries";

    /// Whether a store was put aside for a difference. The note beside the store has the reason in words only.
    pub fn is_difference(reason: &str) -> bool {
        reason.starts_with(Self::DIFFERENCE)
    }
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
    /// The most digests in one message.
    pub const DIGESTS_MAX: usize = 8;
}
