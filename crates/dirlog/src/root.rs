//! The root group's side: the part of its active that orders the directory log.

mod asks;
mod followers;
mod hello;
mod op_table;
mod ops;
mod stream;
mod visible;

use crate::{AskId, Counts, Dix, Doubt, Dropped, Entry, Mark, OpId, Point, Settings, ToGroup, ToRoot};
pub use asks::{AskOf, Busy, Decided, Fact, Planning};
use base::{Epoch, GroupId, Moment};
use bytes::Bytes;
use followers::Follower;
use op_table::Ops;

pub use followers::Standing;
use std::collections::BTreeMap;
pub use stream::ReadLog;
use stream::Tail;

/// What the root group's log says of the directory log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Recovered {
    /// The place behind which the entries stand.
    pub base: Point,
    /// All entries of the log behind `base`, whether they are known to have committed or not. Fewer may be given, if what is missing is
    /// known to be visible and is read when a group needs it.
    pub entries: Vec<Entry>,
    /// Everything up to here is known to be visible. Less is safe, and costs waiting.
    pub visible: Dix,
    /// Nobody can read entries up to here any more.
    pub purged: Dix,
}

/// All that can wake a root.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    Message {
        from: GroupId,
        message: ToRoot,
    },
    /// Entries of the directory log up to here have committed in the root group.
    Committed(Dix),
    /// Until then nobody else can have become the root group's active, by its own lease. [`Moment::default`]: that is not known. Each word
    /// replaces the one before: a member that hands over lets go of a lease that is not over.
    OwnLease(Moment),
    /// A proof that began at this moment has shown that this server was the active still.
    Proved {
        began: Moment,
    },
    /// What was sent to this group may have got lost.
    Lost(GroupId),
    /// The answer to [`Effects::read`]: entries behind `previous`, or nothing if they are gone.
    LogRead {
        group: GroupId,
        read: Option<(Point, Vec<Entry>)>,
    },
    /// The entry by which a group exists has committed.
    Joined(GroupId),
    /// An operator gives a group up for good: nothing waits for it any more.
    GivenUp(GroupId),
    /// Time has passed.
    Tick,
}

/// The work that a step leaves to the world.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use = "a root's wishes are to be carried out"]
pub struct Effects {
    /// May go out at once.
    pub messages: Vec<(GroupId, ToGroup)>,
    /// All facts are in hand: to be planned in this very turn on the tree as it is, and then [`Root::append`], [`Root::refuse`] or
    /// [`Root::ask_anew`].
    pub plan: Vec<Planning>,
    /// Operations that have waited for too long: their clients are to come again.
    pub refused: Vec<OpId>,
    /// Entries up to here are visible: answers that wait for them may go out.
    pub visible: Option<Dix>,
    /// A proof is wanted that this server is still the active; [`Input::Proved`] brings it. Said with every step while it is wanted: one under
    /// way at a time is enough.
    pub prove: bool,
    /// Entries that are not in memory.
    pub read: Vec<ReadLog>,
    /// Nothing up to here is needed by any group any more.
    pub purge: Option<Dix>,
}

/// The directory log as the root group's active orders it.
///
/// An ordered operation is planned first to learn what homes must tell. [`Root::order`] asks them; when all facts are held,
/// [`Effects::plan`] names it, it is planned anew, and [`Root::append`] makes it an entry, in the same turn. Its client is answered
/// when the entry is visible. In the root group itself what is planned upon an entry follows it in the same log; only answers wait
/// ([`Root::answer_after`]).
///
/// A root exists while its server is the root group's active, and may read, at least.
#[derive(Clone, Debug, Hash)]
pub struct Root {
    settings: Settings,
    epoch: Epoch,
    groups: BTreeMap<GroupId, Follower>,
    tail: Tail,
    committed: Dix,
    visible: Dix,
    /// Entries that are not visible, with the moment at which each came to be known here.
    doubt: Doubt,
    since: std::collections::VecDeque<Moment>,
    /// When this server's claim to lead was made.
    claimed_at: Moment,
    /// The leases that an older active granted are over, or have been replaced.
    is_open: bool,
    session_number: u64,
    own_lease_end: Moment,
    ops: Ops,
    purged: Dix,
    /// Whether groups have been asked to say Hello, and when last.
    greeted_at: Option<Moment>,
    out: Vec<(GroupId, ToGroup)>,
    /// An entry was appended since the last step.
    is_to_be_sent: bool,
    counts: Counts,
}

impl Root {
    /// `groups`: all others that exist by the log. `claimed_at`: when the claim to lead was made, or a later moment.
    pub fn new(
        settings: Settings,
        epoch: Epoch,
        groups: &[GroupId],
        recovered: Recovered,
        claimed_at: Moment,
    ) -> Self {
        let purged = recovered.purged;
        let tail = Tail::new(recovered.base, &recovered.entries);
        let mut visible = recovered.visible.max(recovered.base.dix).min(tail.end().dix);
        if settings.breaks(crate::broken::Broken::NewRootDoubtsNothing) {
            visible = tail.end().dix;
        }
        let mut doubt = Doubt::default();
        let mut since = std::collections::VecDeque::new();
        for entry in recovered.entries.into_iter().filter(|entry| entry.dix > visible) {
            doubt.enter(entry);
            since.push_back(claimed_at);
        }
        Self {
            settings,
            epoch,
            groups: groups.iter().map(|group| (*group, Follower::default())).collect(),
            tail,
            committed: visible,
            visible,
            doubt,
            since,
            claimed_at,
            is_open: groups.is_empty(),
            session_number: 0,
            own_lease_end: Moment::default(),
            ops: Ops::new(epoch),
            purged,
            greeted_at: None,
            out: Vec::new(),
            is_to_be_sent: false,
            counts: Counts::default(),
        }
    }

    /// Takes one input; returns everything the world must now do.
    pub fn step(&mut self, now: Moment, input: Input) -> Effects {
        self.step_all(now, [input])
    }

    /// Takes inputs that have come together, in this order, and does once what follows from them all.
    pub fn step_all(&mut self, now: Moment, inputs: impl IntoIterator<Item = Input>) -> Effects {
        let mut effects = Effects::default();
        let visible = self.visible;
        for input in inputs {
            self.take(now, input, &mut effects);
        }
        self.go_on(now, &mut effects);
        if self.visible > visible {
            effects.visible = Some(self.visible);
        }
        effects.messages.append(&mut self.out);
        debug_assert_eq!(self.is_consistent(), Ok(()));
        effects
    }

    fn take(&mut self, now: Moment, input: Input, effects: &mut Effects) {
        match input {
            Input::Message { from, message } => self.on_message(now, from, message, effects),
            Input::Committed(dix) => self.note_committed(dix),
            Input::OwnLease(until) => self.note_own_lease(until),
            Input::Proved { began } => self.on_proved(now, began, effects),
            Input::Lost(group) => self.on_lost(group),
            Input::LogRead { group, read } => self.on_log_read(now, group, read),
            Input::Joined(group) => self.note_joined(group),
            Input::GivenUp(group) => self.on_given_up(group),
            Input::Tick => {}
        }
    }

    /// As [`Input::Committed`], for a driver that steps the machine later.
    pub fn note_committed(&mut self, dix: Dix) {
        self.committed = self.committed.max(dix).min(self.tail.end().dix);
    }

    /// As [`Input::OwnLease`], for a driver that steps the machine next. It looks at the lease when it has the input of that step in hand.
    pub fn note_own_lease(&mut self, until: Moment) {
        let stays = self.settings.breaks(crate::broken::Broken::LeaseOutlivesHandOver);
        self.own_lease_end = if stays { self.own_lease_end.max(until) } else { until };
    }

    /// As [`Input::Joined`], for a driver that steps the machine later.
    pub fn note_joined(&mut self, group: GroupId) {
        self.groups.entry(group).or_default();
    }

    fn on_message(&mut self, now: Moment, from: GroupId, message: ToRoot, effects: &mut Effects) {
        if !self.groups.contains_key(&from) {
            return self.counts.note(Dropped::UnknownGroup);
        }
        match message {
            ToRoot::Hello { hello, root_epoch, applied, committed } => {
                if root_epoch == self.epoch || self.settings.breaks(crate::broken::Broken::HelloToAnyRoot) {
                    self.on_hello(now, from, hello, applied, committed, effects);
                } else {
                    self.counts.note(Dropped::OldRoot);
                    let answer = ToGroup::SayHello { root_epoch: self.epoch, denied: None };
                    self.out.push((from, answer));
                }
            }
            ToRoot::Received { session, progress } => {
                if self.is_of_session(from, session) {
                    self.on_progress(from, progress);
                }
            }
            ToRoot::Renew { session, number, progress } => {
                if self.is_of_session(from, session) {
                    self.on_progress(from, progress);
                    self.on_renew(now, from, number, effects);
                } else {
                    let denied = Some(session);
                    self.out.push((from, ToGroup::SayHello { root_epoch: self.epoch, denied }));
                }
            }
            ToRoot::Held { session, ask, fact } => {
                if self.is_of_session(from, session) {
                    self.on_held(from, session, ask, fact);
                }
            }
            ToRoot::InTheWay { session, ask } => {
                if self.is_of_session(from, session) {
                    self.on_in_the_way(now, ask);
                }
            }
        }
    }

    fn go_on(&mut self, now: Moment, effects: &mut Effects) {
        self.is_to_be_sent = false;
        self.greet(now);
        self.advance(now);
        self.drive_ops(now, effects);
        self.send_entries(now, effects);
        self.look_for_purge(effects);
        effects.prove |= self.wants_proof(now);
    }

    /// The highest entry on which an answer rests that saw these marks and is not visible yet: the answer waits until it is
    /// ([`Effects::visible`]). For reads, home operations, refusals and remembered answers of the root group itself.
    pub fn answer_after(&self, seen: &[Mark]) -> Option<Dix> {
        self.doubt.touched_by(seen)
    }

    /// Likewise for the answer of an ordered operation that was carried out as this entry, in this epoch or an earlier one.
    pub fn may_answer(&self, dix: Dix) -> bool {
        dix <= self.visible || self.settings.breaks(crate::broken::Broken::RetryBeforeVisible)
    }

    /// When to call `step(now, Input::Tick)` if nothing else happens first. The beginning of time: at once.
    pub fn deadline(&self) -> Option<Moment> {
        if !self.out.is_empty() || self.is_to_be_sent {
            return Some(Moment::default());
        }
        let opens_at = (!self.is_open).then(|| self.claimed_at.plus_ms(self.settings.lease_ms));
        let greets_at = self.greets_at();
        let lapse = self.next_lapse();
        [opens_at, greets_at, lapse, self.ops.deadline(), self.resend_deadline()].into_iter().flatten().min()
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Everything up to here is visible.
    pub fn visible(&self) -> Dix {
        self.visible
    }

    /// The end of the directory log.
    pub fn end(&self) -> Point {
        self.tail.end()
    }

    /// The marks of the entries that are not known to be visible yet.
    pub fn doubt(&self) -> &Doubt {
        &self.doubt
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Ordered operations that wait for homes, for each other, or for their entry to become visible.
    pub fn waiting(&self) -> usize {
        self.ops.len()
    }

    /// Asks that may still be answered or held.
    pub fn open_asks(&self) -> Vec<AskId> {
        self.ops.open_asks()
    }

    /// The complete check of this object; holds after each step.
    ///
    /// # Errors
    /// A sentence about what does not fit together.
    pub fn is_consistent(&self) -> Result<(), String> {
        let ends = (self.tail.end().dix.0 - self.visible.0) as usize;
        if self.doubt.len() != ends || self.since.len() != ends {
            return Err(format!(
                "{} entries are in doubt between {} and {}",
                self.doubt.len(),
                self.visible,
                self.tail.end().dix
            ));
        }
        if self.visible > self.committed || self.committed > self.tail.end().dix {
            return Err(format!("visible {}, committed {}", self.visible, self.committed));
        }
        self.doubt.is_consistent()?;
        self.ops.is_consistent()
    }

    /// The bytes of an entry's edit and its marks, given back to a driver that has just appended it.
    fn push_entry(&mut self, now: Moment, ask: Option<AskId>, marks: Vec<Mark>, payload: Bytes) -> Entry {
        let entry = Entry::after(self.tail.end(), self.epoch, ask, marks.into(), payload);
        self.tail.push(entry.clone());
        self.doubt.enter(entry.clone());
        self.since.push_back(now);
        entry
    }
}
