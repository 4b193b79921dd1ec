//! What a step wants done, in an order that the types enforce.

use crate::{Proof, Proposal};
use base::{Durable, Entry, Epoch, GroupView, LogPoint, Sn};

/// What the world must now do.
///
/// 1. [`Effects::take_change`] goes to the coordinator at once.
/// 2. [`Effects::promise`] and [`Effects::take_entries`] go to the journal.
/// 3. When the journal has proved them durable, [`Effects::release`] gives the rest, which is unreachable
///    before: messages, the new watermark, the new role. Where nothing is to be made durable,
///    [`Effects::release_at_once`] gives it.
#[derive(Debug, Default)]
#[must_use = "a member's wishes are to be carried out"]
pub struct Effects {
    pub(crate) change: Option<ViewChange>,
    pub(crate) promise: Option<Epoch>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) appended: Option<LogPoint>,
    pub(crate) outgoing: Outgoing,
}

/// A compare-and-set of the view that is wanted. It may be sent before anything is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewChange {
    pub expected_version: u64,
    pub view: GroupView,
}

/// What durability has released.
#[derive(Debug, Default)]
#[must_use = "what was released is to be carried out"]
pub struct Outgoing {
    /// To be given back as [`crate::Input::Durable`].
    pub proof: Option<Proof>,
    /// Entries up to here have committed: waiting replies up to it may go out.
    pub committed: Option<Sn>,
    /// The member's role has changed.
    pub role: Option<Role>,
    /// The coordinator's view is to be read and given in as [`crate::Input::View`].
    pub read_view: bool,
    /// Proposals that were not taken because this member does not serve: nothing of them has happened.
    pub refused: Vec<Proposal>,
}

/// What a member does now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Waiting: for the view, for leases to end, or for another active.
    Following,
    /// Asking the coordinator for the next epoch.
    Claiming,
    /// The epoch is this member's; its first entry has not committed yet.
    Starting { epoch: Epoch },
    /// Active: takes proposals.
    Serving { epoch: Epoch },
    /// Will do nothing more; the sentence says why and what to do.
    Stopped { reason: String },
}

impl Effects {
    pub fn take_change(&mut self) -> Option<ViewChange> {
        self.change.take()
    }

    /// An epoch whose promise is to be made durable.
    pub fn promise(&self) -> Option<Epoch> {
        self.promise
    }

    /// Entries to append, in order.
    pub fn take_entries(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries)
    }

    /// Whether something must be made durable before the rest may go out.
    pub fn needs_disk(&self) -> bool {
        self.promise.is_some() || self.appended.is_some()
    }

    /// `_proof` says that the promise and the entries of this very step are durable.
    pub fn release(self, _proof: Durable) -> Outgoing {
        assert!(self.change.is_none(), "the change of the view was not taken");
        assert!(self.entries.is_empty(), "the entries were not taken");
        let mut outgoing = self.outgoing;
        if self.promise.is_some() || self.appended.is_some() {
            outgoing.proof = Some(Proof { promised: self.promise, appended: self.appended });
        }
        outgoing
    }

    /// For a step that made nothing durable.
    pub fn release_at_once(self) -> Outgoing {
        assert!(!self.needs_disk(), "a proof of durability is needed first");
        assert!(self.change.is_none(), "the change of the view was not taken");
        self.outgoing
    }
}
