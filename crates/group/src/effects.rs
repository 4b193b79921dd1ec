//! The effects of a step, in an order that the types enforce.

use crate::{ChangeName, Message, Proof, Proposal, ReadLog};
use base::{Durable, Entry, Epoch, GroupView, LogPoint, MemberId, MemberLife, Sn};

/// The work that a step leaves to the world.
///
/// 1. [`Effects::take_change`] goes to the coordinator and [`Effects::take_messages`] to the peers at once;
///    [`Effects::take_outgoing`] is delivered at once as well, in the order of the steps: nothing in it rests
///    on this step's writes.
/// 2. [`Effects::promise`], [`Effects::cut`] and [`Effects::take_entries`] go to the journal, in this order.
/// 3. When the journal has proved them durable, [`Effects::release`] gives the rest, which is unreachable
///    before: the proof, and the messages that rest on it. Where nothing is to be made durable,
///    [`Effects::release_at_once`] gives what was not taken yet.
#[derive(Debug, Default)]
#[must_use = "a member's wishes are to be carried out"]
pub struct Effects {
    pub(crate) change: Option<ViewChange>,
    pub(crate) messages: Vec<(MemberId, Message)>,
    pub(crate) promise: Option<Epoch>,
    pub(crate) cut: Option<LogPoint>,
    pub(crate) cuts: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) appended: Option<LogPoint>,
    /// Rests on nothing that this step writes.
    pub(crate) outgoing: Outgoing,
    /// Messages that rest on what this step writes.
    pub(crate) messages_when_durable: Vec<(MemberId, Message)>,
}

/// A compare-and-set of the view that is wanted. It may be sent before anything is durable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ViewChange {
    pub expected_version: u64,
    /// The change that made the view of that version. A coordinator that was put back from a backup comes to the same
    /// version again with another view.
    pub expected_id: u64,
    pub view: GroupView,
    /// The records of these members must still say this, in the same atomic change.
    pub requires: Vec<MemberLife>,
}

/// The effects that durability has released.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[must_use = "what was released is to be carried out"]
pub struct Outgoing {
    /// The proof that is given back as [`crate::Input::Durable`].
    pub proof: Option<Proof>,
    /// Messages that had to wait for the disk.
    pub messages: Vec<(MemberId, Message)>,
    /// Committed entries that the state machine has not applied: to be applied in this order, before anything
    /// below takes effect.
    pub apply: Vec<Entry>,
    /// Entries that may have committed under an earlier active, or not: to be applied behind those, and whatever
    /// they touch is not to be answered about before they have committed.
    pub apply_ahead: Vec<Entry>,
    /// Entries up to here have committed: waiting replies up to it may go out.
    pub committed: Option<Sn>,
    /// The member's role has changed.
    pub role: Option<Role>,
    /// The coordinator's view is to be read and given in as [`crate::Input::View`].
    pub read_view: bool,
    /// Proposals that were not taken because this member does not serve: nothing of them has happened, but
    /// the state machine has applied them and must be built anew from the disk.
    pub refused: Vec<Proposal>,
    /// Entries to read from the journal, away from this thread; the answer is [`crate::Input::LogRead`].
    pub read_log: Vec<ReadLog>,
    /// This member leads no more: why. Replies not yet given are of unknown outcome.
    pub stepped_down: Option<String>,
    /// The proposals that others suggested to this serving member. The state machine's own writer is to propose them.
    pub suggested: Vec<Proposal>,
    /// The state machine has applied entries that were cut off: it must be built anew from the disk. The sentence
    /// says why.
    pub rebuild: Option<String>,
    /// The store must not be trusted any more: its generation is to be raised and the member renewed from
    /// others.
    pub distrust: Option<String>,
    /// A majority of the members has made another state of the same entries, and has all that has committed: what is in memory is to be
    /// kept as evidence, then the store's generation raised and the member renewed from others. The sentence says where they
    /// differ.
    pub differs: Option<String>,
    /// The entries missing here are gone elsewhere: the newest image is to be fetched and installed.
    pub needs_image: bool,
    /// A member lacks what is gone from this log: an image of an entry behind this one is needed, and is to be made now where
    /// there is none.
    pub image_wanted: Option<Sn>,
    /// A torn tail has been repaired by an active's stream: the mark on the store may go.
    pub tail_is_sound: bool,
    /// Answers to [`crate::Input::Operator`].
    pub answers: Vec<(u64, Result<String, String>)>,
    /// A takeover by this member has ended: how long its stages took.
    pub takeover: Option<Takeover>,
}

/// The stages of a takeover, as in MAMS Figure 7; each is the time at which it was over, counted from the
/// moment at which the old active was given up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Takeover {
    pub epoch: Epoch,
    /// The cause of this member's claim: "lease over", "process gone", "lock gone", "hand-over", "start".
    pub trigger: &'static str,
    /// Since the old active was last heard of, until the claim was made.
    pub detect_ms: u64,
    /// The claim was confirmed by the coordinator.
    pub claim_ms: u64,
    /// The promise was durable here.
    pub promise_ms: u64,
    /// The other members have promised, or were given up.
    pub fence_ms: u64,
    /// A longer log was adopted.
    pub adopt_ms: u64,
    /// The first entry had committed.
    pub sync_ms: u64,
}

/// The present role of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Waiting: for the view, for leases to end, or for another active. In sync (a standby) or not (a junior):
    /// [`crate::Member::status`] says which.
    Following,
    /// Asking the coordinator for the next epoch.
    Claiming,
    /// The epoch is this member's; its first entry has not committed yet.
    Starting { epoch: Epoch },
    /// The epoch is this member's, and too few are in sync for its first entry to commit. Nothing is taken, and
    /// only that is answered which no entry that may have committed, or not, has touched.
    Reading { epoch: Epoch },
    /// Active: takes proposals.
    Serving { epoch: Epoch },
    /// Was active and is giving the group to another: takes no more proposals, and soon follows.
    HandingOver { epoch: Epoch },
    /// Will do nothing more; the sentence says why and what to do.
    Stopped { reason: String },
}

impl ViewChange {
    /// The name by which the answer to this change is known.
    pub fn name(&self) -> ChangeName {
        ChangeName { expected_version: self.expected_version, change_id: self.view.change_id }
    }
}

impl Effects {
    pub fn take_change(&mut self) -> Option<ViewChange> {
        self.change.take()
    }

    /// An epoch whose promise is to be made durable.
    pub fn promise(&self) -> Option<Epoch> {
        self.promise
    }

    /// Messages that may go out at once.
    pub fn take_messages(&mut self) -> Vec<(MemberId, Message)> {
        std::mem::take(&mut self.messages)
    }

    /// Takes the effects that are to be delivered at once.
    pub fn take_outgoing(&mut self) -> Outgoing {
        std::mem::take(&mut self.outgoing)
    }

    /// The log is to be cut off after this point, before entries are appended.
    pub fn cut(&self) -> Option<LogPoint> {
        self.cut
    }

    /// Entries to append, in order.
    pub fn take_entries(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries)
    }

    /// Whether something must be made durable before the rest may go out.
    pub fn needs_disk(&self) -> bool {
        self.promise.is_some() || self.cut.is_some() || self.appended.is_some()
    }

    /// `_proof` says that the promise and the entries of this very step are durable.
    ///
    /// # Panics
    /// The change of the view, the entries or the messages were not taken.
    pub fn release(self, _proof: Durable) -> Outgoing {
        assert!(self.change.is_none(), "the change of the view was not taken");
        assert!(self.entries.is_empty(), "the entries were not taken");
        assert!(self.messages.is_empty(), "the messages were not taken");
        let mut outgoing = self.outgoing;
        outgoing.messages = self.messages_when_durable;
        if self.promise.is_some() || self.appended.is_some() {
            outgoing.proof = Some(Proof { promised: self.promise, appended: self.appended, cuts: self.cuts });
        }
        outgoing
    }

    /// Releases the effects of a step that makes nothing durable.
    ///
    /// # Panics
    /// The step made something to be durable (see [`Effects::needs_disk`]), or the change of the view or the messages
    /// were not taken.
    pub fn release_at_once(self) -> Outgoing {
        assert!(!self.needs_disk(), "a proof of durability is needed first");
        assert!(self.change.is_none(), "the change of the view was not taken");
        assert!(self.messages.is_empty(), "the messages were not taken");
        self.outgoing
    }
}
