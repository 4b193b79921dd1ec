//! Holds: what a home has promised to leave as it is until the root group says otherwise.

use super::{Home, Permit, received::Received};
use crate::{Ask, AskId, Dix, Dropped, Mark, Session, ToRoot, broken::Broken};
use base::Moment;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of an ask that was evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldVerdict {
    /// The hold stands. The root group hears of it once everything that was seen has committed.
    Held,
    /// Another hold, or a call that comes first, is in the way; the root group is told.
    InTheWay,
    /// The ask is over, or was evaluated in vain: [`super::Effects::asks`] names it with every step while it is wanted.
    Void,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Hold {
    marks: Vec<Mark>,
    fact: Bytes,
    /// The entry of the own log up to which the answer waits.
    rests_on: u64,
    /// When it was evaluated, if nothing has shown since that this server led its group then. One that had been deposed would tell of a
    /// state that is over.
    unproved_since: Option<Moment>,
}

/// Asks that were taken, and holds that stand.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Holds {
    /// Not evaluated yet.
    asked: BTreeMap<AskId, Ask>,
    holds: BTreeMap<AskId, Hold>,
    /// The holds of which the root group has not been told.
    untold: BTreeSet<AskId>,
    marks: BTreeMap<Mark, AskId>,
    /// Asks below this one are over, whatever comes of them.
    open_from: AskId,
    /// The last entry of the own log that has committed.
    committed: u64,
}

impl Holds {
    /// `committed`: the own log up to here.
    pub fn new(committed: u64) -> Self {
        Self { committed, ..Self::default() }
    }

    /// The holds of the session before are void.
    pub fn begin_session(&mut self, open_from: AskId) -> Vec<AskId> {
        self.asked.clear();
        self.open_from = open_from;
        self.end_all()
    }

    pub fn end_all(&mut self) -> Vec<AskId> {
        self.marks.clear();
        self.untold.clear();
        std::mem::take(&mut self.holds).into_keys().collect()
    }

    /// The hold ends, or the ask is forgotten. Returns the ask if a hold stood.
    pub fn end(&mut self, ask: AskId) -> Option<AskId> {
        self.asked.remove(&ask);
        let hold = self.holds.remove(&ask)?;
        self.untold.remove(&ask);
        hold.marks.iter().for_each(|mark| _ = self.marks.remove(mark));
        Some(ask)
    }

    /// Older asks are over: one whose entry has been received ends with that, the others now.
    pub fn on_open_from(&mut self, open_from: AskId, received: &Received) -> Vec<AskId> {
        self.open_from = self.open_from.max(open_from);
        let open_from = self.open_from;
        self.asked = self.asked.split_off(&open_from);
        let over: Vec<AskId> = self
            .holds
            .range(..open_from)
            .map(|(ask, _)| *ask)
            .filter(|ask| !received.has_entry_of(*ask))
            .collect();
        over.into_iter().filter_map(|ask| self.end(ask)).collect()
    }

    pub fn on_committed(&mut self, own: u64, session: Option<Session>, out: &mut Vec<ToRoot>) {
        self.committed = self.committed.max(own);
        let Some(session) = session else { return };
        let (holds, committed) = (&self.holds, self.committed);
        self.untold.retain(|ask| {
            let hold = &holds[ask];
            let is_certain = hold.rests_on <= committed && hold.unproved_since.is_none();
            if is_certain {
                out.push(ToRoot::Held { session, ask: *ask, fact: hold.fact.clone() });
            }
            !is_certain
        });
    }

    fn insert(&mut self, ask: AskId, hold: Hold) {
        hold.marks.iter().for_each(|mark| _ = self.marks.insert(*mark, ask));
        self.holds.insert(ask, hold);
        self.untold.insert(ask);
    }

    pub fn on_proved(&mut self, began: Moment, session: Option<Session>, out: &mut Vec<ToRoot>) {
        for ask in &self.untold {
            if let Some(hold) = self.holds.get_mut(ask) {
                hold.unproved_since = hold.unproved_since.filter(|evaluated| *evaluated > began);
            }
        }
        self.on_committed(self.committed, session, out);
    }

    pub fn wait_for_proof(&self) -> bool {
        self.untold.iter().any(|ask| self.holds[ask].unproved_since.is_some())
    }

    /// Asks that can be evaluated now.
    pub fn due(&self, applied: Dix) -> Vec<Ask> {
        self.asked.values().filter(|ask| ask.visible <= applied).cloned().collect()
    }

    /// A hold that stops a plan which saw this.
    pub fn touched_by(&self, seen: &[Mark]) -> Option<AskId> {
        if self.holds.is_empty() {
            return None;
        }
        seen.iter().find_map(|mark| self.marks.get(mark)).copied()
    }

    pub fn standing(&self) -> impl Iterator<Item = AskId> {
        self.holds.keys().copied()
    }

    pub fn is_consistent(&self) -> Result<(), String> {
        let of_holds: BTreeMap<Mark, AskId> =
            self.holds.iter().flat_map(|(ask, hold)| hold.marks.iter().map(|mark| (*mark, *ask))).collect();
        if of_holds != self.marks {
            return Err("marks are held by nobody".to_owned());
        }
        let stand = self.untold.iter().all(|ask| self.holds.contains_key(ask));
        if stand { Ok(()) } else { Err("a hold that does not stand is to be told".to_owned()) }
    }
}

impl Home {
    pub(super) fn on_ask(&mut self, now: Moment, ask: Ask) {
        if !self.is_of_session(now, ask.session) {
            return;
        }
        let is_late = ask.ask < self.holds.open_from && !self.settings.breaks(Broken::LateAsksHeld);
        if is_late {
            return self.counts.note(Dropped::LateAsk);
        }
        if ask.marks.len() > self.settings.marks_max {
            return self.counts.note(Dropped::Malformed);
        }
        self.received.on_visible(ask.visible);
        if let Some(hold) = self.holds.holds.get(&ask.ask) {
            // The root group asks again because the answer got lost.
            if !self.holds.untold.contains(&ask.ask) {
                let fact = hold.fact.clone();
                self.out.push(ToRoot::Held { session: ask.session, ask: ask.ask, fact });
            }
        } else if self.holds.asked.contains_key(&ask.ask) {
            self.counts.note(Dropped::Overtaken);
        } else if self.holds.asked.len() + self.holds.holds.len() >= self.settings.asks_max {
            self.counts.note(Dropped::Full);
            self.out.push(ToRoot::InTheWay { session: ask.session, ask: ask.ask });
        } else {
            self.holds.asked.insert(ask.ask, ask);
        }
    }

    /// Takes what an ask was answered in the writer's turn, and holds it so: also a fact for which the root group will refuse.
    /// `rests_on`: the last entry of the own log that was seen. The root group hears of it once that has committed, and once it is certain
    /// that this server led its group when it looked.
    pub fn hold(
        &mut self,
        now: Moment,
        permit: Permit,
        ask: AskId,
        fact: Bytes,
        rests_on: u64,
    ) -> HoldVerdict {
        if !self.stands(now, permit) {
            return HoldVerdict::Void;
        }
        let Some(Ask { marks, .. }) = self.holds.asked.get(&ask) else { return HoldVerdict::Void };
        let is_held = self.holds.touched_by(marks).is_some();
        let is_in_doubt = self.received.doubt().touched_by(marks).is_some()
            && !self.settings.breaks(Broken::PlansDoNotWait);
        if is_held || is_in_doubt || self.calls.comes_first(marks) {
            self.in_the_way(ask);
            return HoldVerdict::InTheWay;
        }
        let Some(Ask { marks, .. }) = self.holds.asked.remove(&ask) else { return HoldVerdict::Void };
        let rests_on = if self.settings.breaks(Broken::HoldOnUncommitted) { 0 } else { rests_on };
        let unproved_since = Some(now).filter(|_| !self.leads(now));
        // The last proof that was asked for began too early.
        self.own.asked_at = self.own.asked_at.filter(|_| unproved_since.is_none());
        let is_certain = rests_on <= self.holds.committed && unproved_since.is_none();
        self.holds.insert(ask, Hold { marks, fact, rests_on, unproved_since });
        if is_certain {
            self.holds.on_committed(self.holds.committed, self.bond.session, &mut self.out);
        }
        HoldVerdict::Held
    }

    /// The facts cannot be told now: a file is being written, a message about it is under way.
    pub fn in_the_way(&mut self, ask: AskId) {
        let was_asked = self.holds.asked.remove(&ask).is_some();
        if let Some(session) = self.bond.session.filter(|_| was_asked) {
            self.out.push(ToRoot::InTheWay { session, ask });
        }
    }
}
