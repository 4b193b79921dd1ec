//! All that can wake a member.

use crate::{Message, Proposal, StateDigest};
use base::{Entry, Epoch, GroupView, Level, LogPoint, MemberId, MemberStore, Sn};

/// An event that concerns a member.
#[derive(Debug)]
pub enum Input {
    /// The coordinator's view as just read, with its version. A member's first input.
    View { view: GroupView, version: u64 },
    /// The coordinator's answer to a [`crate::ViewChange`]: the new version, or why not. Answers may come late, twice and
    /// in any order, so each names the change that it answers.
    Changed { asked: ChangeName, answer: Result<u64, ChangeFailed> },
    /// The proof from [`crate::Effects::release`]: these writes are durable.
    Durable(Proof),
    /// The journal has failed; nothing of this member becomes durable any more.
    DiskFailed,
    /// Entries to append; only while serving. The state machine has applied them already.
    Propose(Vec<Proposal>),
    /// A message of another member; which life of which store it comes from.
    Message { from: MemberStore, boot: u64, message: Message },
    /// A connection to this member was made: what was under way before may be lost.
    PeerConnected(MemberId),
    /// This member's address refuses, or its connection was reset: its process has ended, probably.
    PeerGone(MemberId),
    /// The process of this life has ended, and its host has said so: the host closed the connection over which the process
    /// spoke, and since then either both addresses of the member refuse, or a later life of the same store answers. A
    /// connection that broke in another way is no such word, nor is silence.
    PeerEnded { store: MemberStore, boot: u64 },
    /// The active's ephemeral lock is gone from the coordinator. A hint.
    LockGone,
    /// The answer to a [`crate::ReadLog`].
    LogRead { asked: crate::ReadLog, result: Result<(LogPoint, Vec<Entry>), LogReadFailed> },
    /// An operator wants something; the answer carries the ticket.
    Operator { ticket: u64, order: Order },
    /// After [`crate::Role::HandingOver`]: no turn of the state machine's writer is open, and none will begin.
    Quiet,
    /// An entry for the active to append: a checkpoint, for instance. The suggestion may be lost.
    Suggest(Proposal),
    /// Whether the state machine could serve clients at once, were this member active. Where it could not, others are
    /// preferred: a wish, on which nothing rests. A member that says nothing counts as ready.
    Ready(bool),
    /// The state machine has applied an entry that raises the group's level, and that entry has committed.
    Level(Level),
    /// The digest of the state machine at a checkpoint, which has committed.
    Digest(StateDigest),
    /// The number of data servers that have reached this member lately. An active that none reaches gives way to a
    /// member in sync that some do reach.
    DataServers(u32),
    /// The process is on its way out: let another lead first, if there is one.
    StepDown,
    /// [`crate::Member::deadline`] has passed.
    Tick,
}

/// Names a change of the view. All copies of one change have one name, and no two changes of a group have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeName {
    /// The version of the view that the change is based on.
    pub expected_version: u64,
    /// The id that the changed view carries.
    pub change_id: u64,
}

/// Why a change of the view was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeFailed {
    /// Somebody else changed it first: read again.
    BadVersion,
    /// This copy of the change was not made, and none to come will be: a member that it requires has begun
    /// another life, or the coordinator refuses it.
    NotMade,
    /// The answer got lost: the same change is repeated until there is one.
    Unknown,
}

/// Why entries could not be read from the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogReadFailed {
    /// Purged, or so far back that an image is shorter.
    Gone,
    /// The read failed, and another try may help.
    Failed,
}

/// The orders of an operator to a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The active ends its epoch and this member goes on; any in-sync one where none is named.
    HandOver { to: Option<MemberId> },
    /// The active makes this the list of members and the minimum of the in-sync set.
    Reconfigure { members: Vec<MemberId>, in_sync_min: u32 },
    /// This member leads although it may lack committed entries. The operator has made sure that all others
    /// are off.
    UncleanElect,
    /// The coordinator has lost history: its view is written anew from what the stores prove. All members but those named
    /// in `without` must have been heard. Without `is_confirmed` it only says what it would write.
    Repair { without: Vec<MemberId>, is_confirmed: bool },
}

/// Says that something this member asked for is durable. Made by [`crate::Effects::release`] only.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proof {
    pub(crate) promised: Option<Epoch>,
    pub(crate) appended: Option<LogPoint>,
    /// The entries appended were this many before anything was cut off after them: proofs of what is cut off
    /// are void.
    pub(crate) cuts: u64,
}

/// A range of the log that is asked for on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadLog {
    pub to: MemberId,
    /// Entries after this one.
    pub after: Sn,
    /// No entry above this one, which is durable.
    pub up_to: Sn,
    pub bytes_max: u32,
    pub purpose: ReadPurpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadPurpose {
    /// The active's stream to a member that is far behind.
    Stream,
    /// The answer to another member's `Fetch`.
    Fetch { epoch: Epoch, after: LogPoint },
}
