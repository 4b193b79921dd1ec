//! Calls at a home: what each has seen, and for what it waits.

use super::Home;
use crate::{AskId, CallId, Dix, Mark, broken::Broken};
use base::Moment;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of a call, by what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// It changes nothing: holds do not stop it.
    Read,
    /// A home operation's plan, or the carrying out of a message of an outbox.
    Plan,
}

/// The proof that the lease held before something was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "judge what was looked at"]
pub struct Permit {
    pub(super) period: u64,
    pub(super) applied: Dix,
}

/// The lease does not hold: nothing may be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotNow;

/// What becomes of a call that was evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "only a call that goes on may be answered or appended"]
pub enum Verdict {
    /// The answer may go out, or the plan be appended, in this very turn.
    Go,
    /// What was looked at is no more: it is to be evaluated again, at once.
    Again,
    /// It waits; [`super::Effects::again`] names it later, or [`super::Effects::refused`].
    Waits,
    /// Too many wait: its client is to come again.
    Refused,
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wait {
    /// For the application of entries up to this one. It keeps later ones out.
    Doubt(Dix),
    Hold(AskId),
    /// For the application of an ordered operation of its own.
    Applied(Dix),
    /// For the lease.
    Lease,
    /// For its next evaluation; `keeps_out`: it waited for an entry before.
    Turn {
        keeps_out: bool,
        is_told: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Call {
    since: Moment,
    wait: Wait,
    /// What it saw when a hold stopped it: nothing else is held of that before it was done again.
    seen: Vec<Mark>,
}

/// The calls that wait.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Calls {
    calls: BTreeMap<CallId, Call>,
    by_age: BTreeSet<(Moment, CallId)>,
    /// How many keep entries out.
    keeping_out: usize,
    waiting_for_holds: usize,
}

impl Calls {
    fn set(&mut self, now: Moment, id: CallId, wait: Wait, seen: Vec<Mark>) {
        let since = self.calls.get(&id).map_or(now, |call| call.since);
        self.remove(id);
        self.count(wait, 1);
        self.by_age.insert((since, id));
        self.calls.insert(id, Call { since, wait, seen });
    }

    fn change(&mut self, id: CallId, wait: Wait) {
        if let Some(call) = self.calls.get_mut(&id) {
            let before = std::mem::replace(&mut call.wait, wait);
            self.count(before, -1);
            self.count(wait, 1);
        }
    }

    fn count(&mut self, wait: Wait, by: isize) {
        match wait {
            Wait::Doubt(_) | Wait::Turn { keeps_out: true, .. } => {
                self.keeping_out = self.keeping_out.wrapping_add_signed(by);
            }
            Wait::Hold(_) => self.waiting_for_holds = self.waiting_for_holds.wrapping_add_signed(by),
            _ => {}
        }
    }

    pub fn remove(&mut self, id: CallId) {
        if let Some(call) = self.calls.remove(&id) {
            self.by_age.remove(&(call.since, id));
            self.count(call.wait, -1);
        }
    }

    pub fn keep_entries_out(&self, counts_holds: bool) -> bool {
        self.keeping_out > 0 || (counts_holds && self.waiting_for_holds > 0)
    }

    fn change_all(&mut self, to: impl Fn(&Wait) -> Option<Wait>) {
        let changes: Vec<(CallId, Wait)> =
            self.calls.iter().filter_map(|(id, call)| Some((*id, to(&call.wait)?))).collect();
        changes.into_iter().for_each(|(id, wait)| self.change(id, wait));
    }

    pub fn on_applied(&mut self, dix: Dix) {
        if self.calls.is_empty() {
            return;
        }
        self.change_all(|wait| match wait {
            Wait::Doubt(until) if *until <= dix => Some(Wait::Turn { keeps_out: true, is_told: false }),
            Wait::Applied(until) if *until <= dix => Some(Wait::Turn { keeps_out: false, is_told: false }),
            _ => None,
        });
    }

    pub fn on_hold_ended(&mut self, ask: AskId) {
        if self.waiting_for_holds > 0 {
            let turn = Wait::Turn { keeps_out: false, is_told: false };
            self.change_all(|wait| (*wait == Wait::Hold(ask)).then_some(turn));
        }
    }

    /// Entries for which calls wait may be gone.
    pub fn begin_session(&mut self) {
        let turn = Wait::Turn { keeps_out: false, is_told: false };
        self.change_all(|wait| matches!(wait, Wait::Doubt(_) | Wait::Turn { .. }).then_some(turn));
    }

    pub fn take_late(&mut self, now: Moment, hold_ms: u64) -> Vec<CallId> {
        let is_late = |since: Moment| now.ms_since(since) >= hold_ms;
        let late: Vec<CallId> =
            self.by_age.iter().take_while(|(since, _)| is_late(*since)).map(|(_, id)| *id).collect();
        late.iter().for_each(|id| self.remove(*id));
        late
    }

    /// Those whose turn has come and who have not been told so. The lease holds.
    pub fn take_again(&mut self) -> Vec<CallId> {
        let is_due = |wait: &Wait| matches!(wait, Wait::Lease | Wait::Turn { is_told: false, .. });
        let due: Vec<CallId> =
            self.calls.iter().filter(|(_, call)| is_due(&call.wait)).map(|(id, _)| *id).collect();
        for id in &due {
            let keeps_out = matches!(self.calls[id].wait, Wait::Turn { keeps_out: true, .. });
            self.change(*id, Wait::Turn { keeps_out, is_told: true });
        }
        due
    }

    /// Whether a call that a hold had stopped is about to be done again and saw one of these.
    pub fn comes_first(&self, marks: &[Mark]) -> bool {
        let is_next = |call: &&Call| matches!(call.wait, Wait::Turn { .. }) && !call.seen.is_empty();
        self.calls.values().filter(is_next).any(|call| Mark::any_common(&call.seen, marks))
    }

    pub fn deadline(&self, hold_ms: u64) -> Option<Moment> {
        self.by_age.first().map(|(since, _)| since.plus_ms(hold_ms))
    }

    pub fn len(&self) -> usize {
        self.calls.len()
    }

    pub fn is_consistent(&self) -> Result<(), String> {
        let keeping = |call: &&Call| matches!(call.wait, Wait::Doubt(_) | Wait::Turn { keeps_out: true, .. });
        let count = self.calls.values().filter(keeping).count();
        if count != self.keeping_out || self.by_age.len() != self.calls.len() {
            return Err(format!("{count} calls keep entries out, not {}", self.keeping_out));
        }
        Ok(())
    }
}

impl Home {
    /// Says whether a call that was evaluated may go on. `seen`: all that its outcome rests on, and, for a plan, all that it changes, with the
    /// names and passages of every directory above that, however it was found.
    ///
    /// To be asked in the turn, or under the lock, in which it was evaluated: nothing may be applied in between.
    pub fn judge(
        &mut self,
        now: Moment,
        call: CallId,
        kind: CallKind,
        permit: Permit,
        seen: &[Mark],
    ) -> Verdict {
        if !self.may_evaluate(now) {
            return self.wait(now, call);
        }
        if !self.stands(now, permit) {
            return Verdict::Again;
        }
        let (waits_for_doubt, waits_for_holds) = match kind {
            CallKind::Read => (!self.settings.breaks(Broken::ReadsDoNotWait), false),
            CallKind::Plan => (
                !self.settings.breaks(Broken::PlansDoNotWait),
                !self.settings.breaks(Broken::PlansIgnoreHolds),
            ),
        };
        if let Some(until) = self.received.doubt().touched_by(seen).filter(|_| waits_for_doubt) {
            return self.park(now, call, Wait::Doubt(until), Vec::new());
        }
        if let Some(ask) = self.holds.touched_by(seen).filter(|_| waits_for_holds) {
            return self.park(now, call, Wait::Hold(ask), seen.to_vec());
        }
        self.calls.remove(call);
        Verdict::Go
    }

    /// A call that could not begin waits for the lease.
    pub fn wait(&mut self, now: Moment, call: CallId) -> Verdict {
        self.park(now, call, Wait::Lease, Vec::new())
    }

    /// A call whose own ordered operation is the entry `dix` waits until that is applied here. It keeps no entries out.
    pub fn wait_until_applied(&mut self, now: Moment, call: CallId, dix: Dix) -> Verdict {
        if dix <= self.received.applied().dix {
            Verdict::Again
        } else {
            self.park(now, call, Wait::Applied(dix), Vec::new())
        }
    }

    /// Whether the call waits, or is to be done again. One that is decided elsewhere by now must be forgotten
    /// ([`super::Input::Forget`]): it would keep entries out.
    pub fn knows(&self, call: CallId) -> bool {
        self.calls.calls.contains_key(&call)
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.calls.len()
    }

    fn park(&mut self, now: Moment, call: CallId, wait: Wait, seen: Vec<Mark>) -> Verdict {
        let is_known = self.calls.calls.contains_key(&call);
        let is_too_much = seen.len() > self.settings.marks_max;
        if is_too_much || (!is_known && self.calls.len() >= self.settings.calls_max) {
            self.calls.remove(call);
            return Verdict::Refused;
        }
        self.calls.set(now, call, wait, seen);
        Verdict::Waits
    }
}
