//! Ordered operations: what each has asked of homes, and what it waits for.

use super::{
    Effects, Root,
    asks::{AskOf, Busy, Decided, Planning},
    op_table::{Op, Stage},
};
use crate::{Ask, AskId, Entry, Mark, OpId, Session, ToGroup, broken::Broken};
use base::{GroupId, Moment};
use bytes::Bytes;

impl Root {
    /// Takes an ordered operation that needs holds. [`Effects::plan`] names it when all of them stand, [`Effects::refused`] when that took
    /// too long.
    ///
    /// # Errors
    /// Too many wait; the client is to come again.
    pub fn order(&mut self, now: Moment, op: OpId, asks: Vec<AskOf>) -> Result<(), Busy> {
        let marks_max = self.settings.marks_max;
        let is_too_much = asks.iter().any(|ask| ask.marks.len() > marks_max);
        if is_too_much || self.ops.len() >= self.settings.ops_max || self.ops.get(op).is_some() {
            return Err(Busy);
        }
        self.ops.insert(op, Op::new(now, asks));
        self.ops.wake(op);
        Ok(())
    }

    /// Whether this operation is under way: it waits, or its entry is not visible. A call that is repeated meanwhile must join it: planned a
    /// second time it might be refused, and then the first one be carried out.
    pub fn knows(&self, op: OpId) -> bool {
        self.ops.get(op).is_some()
    }

    /// Makes a plan an entry. Operations that need no holds come here at once. The entry is to be appended to the root group's log, in this
    /// turn; it goes to the groups with the next step, which is due at once.
    pub fn append(&mut self, now: Moment, op: OpId, marks: Vec<Mark>, payload: Bytes) -> Decided<Entry> {
        if !self.facts_stand(op, self.settings.breaks(Broken::HoldsWithoutSessions)) {
            self.ask_again_later(op, now);
            return Decided::AskedAnew;
        }
        let ask = self.ops.get(op).and_then(Op::ask);
        // What others have been told about this is over.
        if !self.settings.breaks(Broken::FactsOutliveEntries) {
            for other in self.ops.asking_about(&marks, op) {
                self.ask_again_later(other, now);
            }
        }
        let entry = self.push_entry(now, ask, marks, payload);
        if self.ops.get(op).is_none() {
            self.ops.insert(op, Op::new(now, Vec::new()));
        }
        self.ops.set(op, Stage::Appended { ask, dix: entry.dix }, None);
        self.is_to_be_sent = true;
        Decided::Stands(entry)
    }

    /// Refuses an operation by its facts. The refusal waits for what was seen on the root group's tree ([`Root::answer_after`]), and the facts
    /// are held until that is visible: else a home could change one while the entry that was seen has no effect there yet.
    pub fn refuse(&mut self, now: Moment, op: OpId, seen: &[Mark]) -> Decided<()> {
        let ignores_sessions = self.settings.breaks(Broken::RefusesWithoutComparing)
            || self.settings.breaks(Broken::HoldsWithoutSessions);
        if !self.facts_stand(op, ignores_sessions) {
            self.ask_again_later(op, now);
            return Decided::AskedAnew;
        }
        let waits_for =
            self.answer_after(seen).filter(|_| !self.settings.breaks(Broken::RefusalsHoldNothing));
        match (waits_for, self.ops.get(op).and_then(Op::ask)) {
            (Some(dix), Some(ask)) => self.ops.set(op, Stage::Refused { ask, dix }, None),
            _ => self.end_op(op),
        }
        Decided::Stands(())
    }

    /// Nobody wants the operation any more. If it has no entry yet, and is not refused, all holds are released.
    pub fn give_up(&mut self, op: OpId) {
        if self.ops.get(op).is_some_and(|op| !op.is_decided()) {
            self.end_op(op);
        }
    }

    /// The new plan needs other holds: all are released, and these asked for.
    pub fn ask_anew(&mut self, now: Moment, op: OpId, asks: Vec<AskOf>) {
        self.ask_again_later(op, now);
        self.ops.set_asks(op, asks);
    }

    /// Whether all that was told was told in sessions that are not over.
    fn facts_stand(&self, op: OpId, ignores_sessions: bool) -> bool {
        let Some(op) = self.ops.get(op) else { return true };
        matches!(op.stage, Stage::Planned { .. })
            && op.told.values().all(|(_, fact)| fact.is_some())
            && (ignores_sessions || self.sessions_are_current(op))
    }

    fn sessions_are_current(&self, op: &Op) -> bool {
        let is_current = |group: &GroupId, session: Session| {
            self.groups.get(group).is_some_and(|one| one.session == Some(session))
        };
        op.told.iter().all(|(group, (session, _))| is_current(group, *session))
    }

    fn release(&mut self, id: OpId) {
        let Some((ask, told)) = self.ops.take_round(id) else { return };
        let release = |(group, session)| (group, ToGroup::Release { session, ask });
        self.out.extend(told.into_iter().map(release));
    }

    pub(super) fn end_op(&mut self, id: OpId) {
        self.release(id);
        self.ops.remove(id);
    }

    fn ask_again_later(&mut self, id: OpId, until: Moment) {
        if self.ops.get(id).is_some_and(|op| !op.is_decided()) {
            self.release(id);
            self.ops.set(id, Stage::Queued { until }, Some(until));
            self.ops.wake(id);
        }
    }

    pub(super) fn on_held(&mut self, from: GroupId, session: Session, ask: AskId, fact: Bytes) {
        match self.ops.of_ask(ask) {
            Some(id) => self.ops.tell(id, from, session, fact),
            // It is over here; the news of that came before the ask, or got lost.
            None => self.out.push((from, ToGroup::Release { session, ask })),
        }
    }

    pub(super) fn on_in_the_way(&mut self, now: Moment, ask: AskId) {
        let Some(id) = self.ops.of_ask(ask) else { return };
        if self.ops.get(id).is_some_and(|op| matches!(op.stage, Stage::Asking { .. })) {
            self.ask_again_later(id, now.plus_ms(self.settings.ask_again_ms));
        }
    }

    /// Asks for those whose turn it is, and hands out those that have all their facts.
    pub(super) fn drive_ops(&mut self, now: Moment, effects: &mut Effects) {
        for id in self.ops.take_woken(now) {
            let Some(op) = self.ops.get(id) else { continue };
            let is_late = now.ms_since(op.since) >= self.settings.hold_ms;
            match op.stage {
                Stage::Queued { .. } | Stage::Asking { .. } if is_late => {
                    self.end_op(id);
                    effects.refused.push(id);
                }
                Stage::Queued { until } if until > now => {
                    self.ops.set(id, Stage::Queued { until }, Some(until))
                }
                Stage::Queued { .. } if self.may_ask(id) => {
                    self.ask_homes(now, id);
                    self.look_at_facts(now, id, effects);
                }
                Stage::Queued { until } => {
                    let late = op.since.plus_ms(self.settings.hold_ms);
                    self.ops.set(id, Stage::Queued { until }, Some(late));
                }
                Stage::Asking { .. } => self.look_at_facts(now, id, effects),
                Stage::Planned { .. } | Stage::Appended { .. } | Stage::Refused { .. } => {}
            }
        }
    }

    /// Nothing that it asks about is in doubt, is asked about by an earlier one, or is at a home that is away. To ask about what is in doubt
    /// would be in vain: the home would find that in the way.
    ///
    /// A *directory* that is in doubt needs its hold like any other, and homes are asked at once: they may show the directory, and let a call
    /// that has waited for it put a file there, before the entry comes that rests on the answer.
    fn may_ask(&self, id: OpId) -> bool {
        let Some(op) = self.ops.get(id) else { return false };
        let is_in_doubt = op.asks.iter().any(|ask| self.doubt.touched_by(&ask.marks).is_some());
        let is_away =
            op.asks.iter().any(|ask| self.groups.get(&ask.group).is_none_or(|one| one.session.is_none()));
        !is_in_doubt && !is_away && self.ops.is_first(id)
    }

    fn ask_homes(&mut self, now: Moment, id: OpId) {
        let session_of = |group: GroupId| self.groups.get(&group).and_then(|one| one.session);
        self.ops.begin_round(id, now, now.plus_ms(self.settings.resend_ms), session_of);
        self.send_asks(id);
    }

    fn send_asks(&mut self, id: OpId) {
        let Some((op, ask)) = self.ops.get(id).and_then(|op| Some((op, op.ask()?))) else { return };
        for one in &op.asks {
            let Some((session, None)) = op.told.get(&one.group) else { continue };
            let (marks, body) = (one.marks.clone(), one.body.clone());
            let message = Ask { session: *session, ask, visible: self.visible, marks, body };
            self.out.push((one.group, ToGroup::Ask(message)));
        }
    }

    fn look_at_facts(&mut self, now: Moment, id: OpId, effects: &mut Effects) {
        let Some(op) = self.ops.get(id) else { return };
        let Stage::Asking { ask, asked_at } = op.stage else { return };
        let ignores = self.settings.breaks(Broken::HoldsWithoutSessions)
            || self.settings.breaks(Broken::RefusesWithoutComparing);
        let facts = op.facts();
        let stands = self.sessions_are_current(op) || (ignores && facts.is_some());
        if !stands {
            return self.ask_again_later(id, now);
        }
        if let Some(facts) = facts {
            self.ops.set(id, Stage::Planned { ask }, None);
            effects.plan.push(Planning { op: id, facts });
            return;
        }
        let late = op.since.plus_ms(self.settings.hold_ms);
        let again = asked_at.plus_ms(self.settings.resend_ms);
        if now >= again {
            let due = now.plus_ms(self.settings.resend_ms).min(late);
            self.ops.set(id, Stage::Asking { ask, asked_at: now }, Some(due));
            self.send_asks(id);
        } else {
            self.ops.set(id, Stage::Asking { ask, asked_at }, Some(again.min(late)));
        }
    }
}
