//! A home: the part of a group's active that follows the directory log. Every group but the root group has it.

mod bond;
mod calls;
mod holds;
mod received;

use crate::{Ask, AskId, CallId, Counts, Dix, Doubt, Dropped, Entry, Point, Settings, ToGroup, ToRoot};
use base::{Epoch, GroupId, Moment};
use bond::{Bond, Own};
use calls::Calls;
pub use calls::{CallKind, NotNow, Permit, Verdict};
pub use holds::HoldVerdict;
use holds::Holds;
use received::Received;

/// All that can wake a home.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// From the root group.
    Message(ToGroup),
    /// Entries of this group's own log have committed up to `own`, and with them the application of directory entries up to `applied`.
    Committed { own: u64, applied: Dix },
    /// Until then nobody else can have become this group's active, by its own lease. Each word replaces the one before: a member that hands over
    /// lets go of a lease that is not over.
    OwnLease(Moment),
    /// A proof that began at this moment has shown that this server was its group's active still.
    Proved { began: Moment },
    /// A call that waited is no longer wanted.
    Forget(CallId),
    /// Time has passed.
    Tick,
}

/// The work that a step leaves to the world. Nothing of it waits for a disk of the machine's: what has to has been waited for.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use = "a home's wishes are to be carried out"]
pub struct Effects {
    /// To be applied and appended to the group's own log, in this order, before anything else is evaluated.
    pub apply: Vec<Entry>,
    /// To the root group's active. May go out at once.
    pub messages: Vec<ToRoot>,
    /// Calls to be evaluated again: with [`Home::begin`] and [`Home::judge`], like new ones.
    pub again: Vec<CallId>,
    /// Calls that have waited for too long: their clients are to come again.
    pub refused: Vec<CallId>,
    /// Asks to be evaluated in a turn of the writer; [`Home::hold`] takes what comes of it, [`Home::in_the_way`] that nothing can. An ask is
    /// named with every step until one of the two was called.
    pub asks: Vec<Ask>,
    /// A proof is wanted that this server is its group's active; [`Input::Proved`] brings it.
    pub prove: bool,
    /// Nothing is served before an operator has decided: why.
    pub alarm: Option<String>,
}

/// The directory log as a group's active follows it.
///
/// A call goes through it in three moves. [`Home::begin`] tests the directory lease before anything is looked at. The call is evaluated.
/// [`Home::judge`] then says, by what was seen, whether its answer or its plan may stand, or whether it waits: nothing is held meanwhile but its
/// name, and it is evaluated again. The world below (the own group's commit, and its lease) is the driver's affair.
///
/// A home exists while its server is the active of its group and its first entry has committed.
#[derive(Clone, Debug, Hash)]
pub struct Home {
    settings: Settings,
    me: GroupId,
    own: Own,
    bond: Bond,
    received: Received,
    calls: Calls,
    holds: Holds,
    /// Messages that did not come of a step; the next one takes them along.
    out: Vec<ToRoot>,
    /// The root group is to hear how far this group is.
    is_to_tell: bool,
    alarm: Option<String>,
    is_alarm_told: bool,
    counts: Counts,
}

impl Home {
    /// `epoch`: the own group's, in which this server became active. `applied`: the last directory entry in the own log, all of which has
    /// committed, up to the entry `own`.
    pub fn new(settings: Settings, me: GroupId, epoch: Epoch, applied: Point, own: u64, now: Moment) -> Self {
        Self {
            settings,
            me,
            own: Own::default(),
            bond: Bond::new(epoch, now),
            received: Received::new(applied),
            calls: Calls::default(),
            holds: Holds::new(own),
            out: Vec::new(),
            is_to_tell: false,
            alarm: None,
            is_alarm_told: false,
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
        let told = self.received.progress();
        for input in inputs {
            self.take(now, input);
        }
        self.go_on(now, &mut effects);
        let progress = self.received.progress();
        let is_to_tell = std::mem::take(&mut self.is_to_tell) || told != progress;
        if let Some(session) = self.bond.session.filter(|_| is_to_tell) {
            self.out.push(ToRoot::Received { session, progress });
        }
        self.keep_bond(now);
        effects.prove = self.wants_proof(now);
        effects.messages.append(&mut self.out);
        debug_assert_eq!(self.is_consistent(), Ok(()));
        effects
    }

    fn take(&mut self, now: Moment, input: Input) {
        match input {
            Input::Message(_) if self.alarm.is_some() => self.counts.note(Dropped::Alarmed),
            Input::Message(message) => self.on_message(now, message),
            Input::Committed { own, applied } => {
                self.received.on_committed(applied);
                self.holds.on_committed(own, self.bond.session, &mut self.out);
            }
            Input::OwnLease(until) => self.note_own_lease(until),
            Input::Proved { began } => {
                self.own.proved = self.own.proved.max(Some(began));
                self.holds.on_proved(began, self.bond.session, &mut self.out);
            }
            Input::Forget(call) => self.calls.remove(call),
            Input::Tick => {}
        }
    }

    /// As [`Input::OwnLease`], for a driver that steps the machine next. It looks at the lease when it has the input of that step in hand.
    pub fn note_own_lease(&mut self, until: Moment) {
        let stays = self.settings.breaks(crate::broken::Broken::LeaseOutlivesHandOver);
        self.own.lease_end = if stays { self.own.lease_end.max(until) } else { until };
    }

    fn on_message(&mut self, now: Moment, message: ToGroup) {
        match message {
            ToGroup::SayHello { root_epoch, denied } => self.on_say_hello(now, root_epoch, denied),
            ToGroup::Welcome { hello, session, end, visible, open_from, is_leased } => {
                self.on_welcome(now, hello, session, end, is_leased, open_from);
                if self.bond.session == Some(session) {
                    self.received.on_visible(visible);
                }
            }
            ToGroup::Unwelcome { hello, root_epoch, why } => self.on_unwelcome(hello, root_epoch, why),
            ToGroup::Append { session, previous, entries, visible } => {
                if !self.is_of_session(now, session) {
                    return;
                }
                let had_entries = !entries.is_empty();
                let taken = self.received.on_append(&self.settings, previous, entries);
                match taken {
                    Ok(()) => {}
                    Err(received::Refused::Dropped(reason)) => self.counts.note(reason),
                    Err(received::Refused::Unknown(why)) => return self.raise(why),
                }
                self.received.on_visible(visible);
                // Also if they came before: the news of their arrival may have got lost.
                self.is_to_tell |= had_entries;
            }
            ToGroup::Renewed { session, number, is_granted, visible, open_from } => {
                if !self.is_of_session(now, session) {
                    return;
                }
                self.received.on_visible(visible);
                let ended = self.holds.on_open_from(open_from, &self.received);
                self.end_holds(ended);
                if is_granted {
                    self.on_granted(now, number);
                }
            }
            ToGroup::Ask(ask) => self.on_ask(now, ask),
            ToGroup::Release { session, ask } => {
                if self.is_of_session(now, session) {
                    let was_held = self.holds.end(ask);
                    self.end_holds(was_held.into_iter().collect());
                }
            }
        }
    }

    /// Whatever has become possible: entries are entered and applied, calls are done again, asks are evaluated.
    fn go_on(&mut self, now: Moment, effects: &mut Effects) {
        self.enter();
        let at_once = self.settings.breaks(crate::broken::Broken::AppliedBeforeVisible);
        while let Some(entry) = self.received.take_visible(at_once).filter(|_| self.alarm.is_none()) {
            self.calls.on_applied(entry.dix);
            if let Some(ask) = entry.ask {
                let was_held = self.holds.end(ask);
                self.end_holds(was_held.into_iter().collect());
            }
            effects.apply.push(entry);
            self.enter();
        }
        self.look_after_the_bond(now);
        if self.settings.breaks(crate::broken::Broken::LapseEndsHolds) && !self.may_evaluate(now) {
            let ended = self.holds.end_all();
            self.end_holds(ended);
        }
        effects.refused = self.calls.take_late(now, self.settings.hold_ms);
        if self.may_evaluate(now) {
            effects.again = self.calls.take_again();
            effects.asks = self.holds.due(self.received.applied().dix);
        }
        if let Some(why) = self.alarm.as_ref().filter(|_| !self.is_alarm_told) {
            effects.alarm = Some(why.clone());
            self.is_alarm_told = true;
        }
    }

    /// Whether later entries are kept out, because calls wait for what was entered before.
    fn keeps_entries_out(&self) -> bool {
        let counts_holds = self.settings.breaks(crate::broken::Broken::HoldsKeepEntriesOut);
        self.bond.is_caught_up
            && self.calls.keep_entries_out(counts_holds)
            && !self.settings.breaks(crate::broken::Broken::EntersAtOnce)
    }

    fn enter(&mut self) {
        if !self.keeps_entries_out() {
            self.received.enter_all();
        }
    }

    fn end_holds(&mut self, ended: Vec<AskId>) {
        ended.into_iter().for_each(|ask| self.calls.on_hold_ended(ask));
    }

    fn raise(&mut self, why: String) {
        self.alarm = Some(why);
        self.bond.session = None;
    }

    /// When to call `step(now, Input::Tick)` if nothing else happens first. The beginning of time: at once.
    pub fn deadline(&self) -> Option<Moment> {
        let can_enter = self.received.keeps_some() && !self.keeps_entries_out();
        if !self.out.is_empty() || can_enter {
            return Some(Moment::default());
        }
        [self.bond_deadline(), self.calls.deadline(self.settings.hold_ms)].into_iter().flatten().min()
    }

    /// The group that this is.
    pub fn group(&self) -> GroupId {
        self.me
    }

    /// The last entry that is applied, or given to be.
    pub fn applied(&self) -> Point {
        self.received.applied()
    }

    /// The marks of the entries that this home has received and that are not visible yet.
    pub fn doubt(&self) -> &Doubt {
        self.received.doubt()
    }

    /// The last entry that is received.
    pub fn last_received(&self) -> Dix {
        self.received.progress().received
    }

    /// The holds that stand.
    pub fn holds(&self) -> impl Iterator<Item = AskId> {
        self.holds.standing()
    }

    /// Why nothing is served, if an operator must decide.
    pub fn alarm(&self) -> Option<&str> {
        self.alarm.as_deref()
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The complete check of this object; holds after each step.
    ///
    /// # Errors
    /// A sentence about what does not fit together.
    pub fn is_consistent(&self) -> Result<(), String> {
        self.received.is_consistent()?;
        self.holds.is_consistent()?;
        self.calls.is_consistent()
    }
}
