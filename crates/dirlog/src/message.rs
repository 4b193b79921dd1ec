//! What the root group's active and the actives of other groups say to each other.
//!
//! Messages may be lost, come late, come twice and overtake each other. Each names the session it belongs to.

use crate::{AskId, Dix, Entry, HelloId, Mark, Point, Session};
use base::Epoch;
use bytes::Bytes;

/// A message to the root group's active. The driver knows from which group it came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ToRoot {
    /// "I am my group's active, and begin anew." From its sending on the group evaluates nothing until it is welcomed.
    ///
    /// It is said to one active of the root group, by its epoch, after a moment at which the sender had heard of that one and was its
    /// group's active for certain. So nobody who follows the sender can have a lease of an older root, and a late Hello is not taken by a
    /// later root. Epoch 0 asks who is there.
    Hello {
        hello: HelloId,
        root_epoch: Epoch,
        /// The last entry that is applied here.
        applied: Point,
        /// The last one whose application has committed in this group.
        committed: Dix,
    },
    /// Entries have come.
    Received { session: Session, progress: Progress },
    /// Asks for the directory lease.
    Renew { session: Session, number: u64, progress: Progress },
    /// A hold was given, and everything that was seen for it has committed. The fact is what the home tells.
    Held { session: Session, ask: AskId, fact: Bytes },
    /// No hold: something is under way here that will soon be over.
    InTheWay { session: Session, ask: AskId },
}

/// How far a group is with the directory log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Progress {
    /// Received: their marks are in doubt.
    pub received: Dix,
    /// In memory; those behind `received` are kept out while calls are done again.
    pub queued: Dix,
    /// Applied, and the application has committed.
    pub committed: Dix,
}

/// A message to a group's active.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ToGroup {
    /// "I am the root group's active; say Hello." `denied` names a session that this active has not given, or that is over.
    SayHello {
        root_epoch: Epoch,
        denied: Option<Session>,
    },
    /// A session begins. The group serves once it has received everything up to `end`.
    Welcome {
        hello: HelloId,
        session: Session,
        end: Dix,
        visible: Dix,
        /// Asks below this one are over.
        open_from: AskId,
        /// Whether a directory lease comes with it. A group that lacks much gets none, so that nobody waits for it meanwhile;
        /// it says Hello again when it has caught up.
        is_leased: bool,
    },
    /// The group's place in the directory log is not known here: an operator must decide. The sentence says what is at stake.
    Unwelcome {
        hello: HelloId,
        root_epoch: Epoch,
        why: String,
    },
    /// Entries that follow `previous`, perhaps none. Those up to `visible` are visible.
    Append {
        session: Session,
        previous: Point,
        entries: Vec<Entry>,
        visible: Dix,
    },
    /// The answer to a request for the lease.
    Renewed {
        session: Session,
        number: u64,
        is_granted: bool,
        visible: Dix,
        /// Asks below this one are over.
        open_from: AskId,
    },
    Ask(Ask),
    /// The ask is over, and so is its hold.
    Release {
        session: Session,
        ask: AskId,
    },
}

/// The root group wants to know something of a home, and to have it stay so.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    pub session: Session,
    pub ask: AskId,
    /// The home applies up to here first.
    pub visible: Dix,
    /// These stay as they are while the hold stands.
    pub marks: Vec<Mark>,
    /// The question, for the home's planner.
    pub body: Bytes,
}
