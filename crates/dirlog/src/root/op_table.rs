//! The table of ordered operations that are not over.

use super::asks::{AskOf, Fact};
use crate::{AskId, Dix, Mark, OpId, Session};
use base::{Epoch, GroupId, Moment};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// It waits for an earlier operation, an entry in doubt, a home that is away, or (`until`) because something was in the way.
    Queued {
        until: Moment,
    },
    Asking {
        ask: AskId,
        asked_at: Moment,
    },
    /// Held everywhere: it is being planned, in one turn.
    Planned {
        ask: AskId,
    },
    Appended {
        ask: Option<AskId>,
        dix: Dix,
    },
    /// Refused by its facts, and by what is in doubt up to this entry: the facts are held until that is visible.
    Refused {
        ask: AskId,
        dix: Dix,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Op {
    pub since: Moment,
    pub asks: Vec<AskOf>,
    pub stage: Stage,
    /// What was told in this round, and the session in which it was asked for.
    pub told: BTreeMap<GroupId, (Session, Option<Bytes>)>,
    /// The order in which operations came.
    number: u64,
    due: Option<Moment>,
}

impl Op {
    pub fn new(now: Moment, asks: Vec<AskOf>) -> Self {
        let stage = Stage::Queued { until: now };
        Self { since: now, asks, stage, told: BTreeMap::new(), number: 0, due: None }
    }

    pub fn ask(&self) -> Option<AskId> {
        match self.stage {
            Stage::Queued { .. } => None,
            Stage::Asking { ask, .. } | Stage::Planned { ask } | Stage::Refused { ask, .. } => Some(ask),
            Stage::Appended { ask, .. } => ask,
        }
    }

    pub fn is_decided(&self) -> bool {
        matches!(self.stage, Stage::Appended { .. } | Stage::Refused { .. })
    }

    /// All facts, if all have been told.
    pub fn facts(&self) -> Option<Vec<Fact>> {
        let fact = |(group, (_, body)): (&GroupId, &(Session, Option<Bytes>))| {
            Some(Fact { group: *group, body: body.clone()? })
        };
        self.told.iter().map(fact).collect()
    }

    fn marks(&self) -> impl Iterator<Item = Mark> {
        self.asks.iter().flat_map(|ask| ask.marks.iter().copied())
    }
}

/// The ordered operations that are not over: those whose entry is not visible.
#[derive(Clone, Debug, Hash)]
pub(super) struct Ops {
    epoch: Epoch,
    ops: BTreeMap<OpId, Op>,
    by_ask: BTreeMap<AskId, OpId>,
    /// Who asks about a mark, the first one first.
    by_mark: BTreeMap<Mark, BTreeSet<(u64, OpId)>>,
    by_entry: BTreeSet<(Dix, OpId)>,
    queued: BTreeSet<(u64, OpId)>,
    by_due: BTreeSet<(Moment, OpId)>,
    /// To be looked at now.
    woken: BTreeSet<OpId>,
    next_ask: u64,
    next_number: u64,
}

impl Ops {
    pub fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            ops: BTreeMap::new(),
            by_ask: BTreeMap::new(),
            by_mark: BTreeMap::new(),
            by_entry: BTreeSet::new(),
            queued: BTreeSet::new(),
            by_due: BTreeSet::new(),
            woken: BTreeSet::new(),
            next_ask: 1,
            next_number: 1,
        }
    }

    pub fn len(&self) -> usize {
        self.ops.len()
    }

    pub fn get(&self, id: OpId) -> Option<&Op> {
        self.ops.get(&id)
    }

    pub fn of_ask(&self, ask: AskId) -> Option<OpId> {
        self.by_ask.get(&ask).copied()
    }

    pub fn open_asks(&self) -> Vec<AskId> {
        self.by_ask.keys().copied().collect()
    }

    /// The oldest ask that is open: its entry is not visible, and it was not released.
    pub fn open_from(&self, but_appended: bool) -> AskId {
        let is_open = |id: &OpId| !(but_appended && self.ops[id].is_decided());
        let open = self.by_ask.iter().find(|(_, id)| is_open(id)).map(|(ask, _)| *ask);
        open.unwrap_or(AskId { root_epoch: self.epoch, number: self.next_ask })
    }

    pub fn insert(&mut self, id: OpId, mut op: Op) {
        op.number = self.next_number;
        self.next_number += 1;
        for mark in op.marks() {
            self.by_mark.entry(mark).or_default().insert((op.number, id));
        }
        self.queued.insert((op.number, id));
        self.ops.insert(id, op);
    }

    fn forget_marks(&mut self, id: OpId) {
        let Some(op) = self.ops.get(&id) else { return };
        for mark in op.marks().collect::<Vec<_>>() {
            if let Some(asking) = self.by_mark.get_mut(&mark) {
                asking.remove(&(op.number, id));
                if asking.is_empty() {
                    self.by_mark.remove(&mark);
                }
            }
        }
    }

    pub fn set_asks(&mut self, id: OpId, asks: Vec<AskOf>) {
        self.forget_marks(id);
        if let Some(op) = self.ops.get_mut(&id) {
            op.asks = asks;
            for mark in op.marks().collect::<Vec<_>>() {
                self.by_mark.entry(mark).or_default().insert((op.number, id));
            }
        }
    }

    /// Whether no earlier operation asks about what this one asks about.
    pub fn is_first(&self, id: OpId) -> bool {
        let Some(op) = self.ops.get(&id) else { return false };
        op.marks().all(|mark| self.by_mark[&mark].first() == Some(&(op.number, id)))
    }

    pub fn set(&mut self, id: OpId, stage: Stage, due: Option<Moment>) {
        let Some(op) = self.ops.get_mut(&id) else { return };
        if let Some(before) = std::mem::replace(&mut op.due, due) {
            self.by_due.remove(&(before, id));
        }
        if let Some(due) = due {
            self.by_due.insert((due, id));
        }
        op.stage = stage;
        match stage {
            Stage::Queued { .. } => _ = self.queued.insert((op.number, id)),
            Stage::Asking { ask, .. } | Stage::Planned { ask } => {
                self.queued.remove(&(op.number, id));
                self.by_ask.insert(ask, id);
            }
            Stage::Appended { dix, .. } | Stage::Refused { dix, .. } => {
                self.queued.remove(&(op.number, id));
                self.by_entry.insert((dix, id));
            }
        }
    }

    pub fn remove(&mut self, id: OpId) {
        self.forget_marks(id);
        if let Some(op) = self.ops.remove(&id) {
            self.queued.remove(&(op.number, id));
            op.ask().iter().for_each(|ask| _ = self.by_ask.remove(ask));
            op.due.iter().for_each(|due| _ = self.by_due.remove(&(*due, id)));
            self.wake_queued();
        }
    }

    pub fn begin_round(
        &mut self,
        id: OpId,
        now: Moment,
        due: Moment,
        session_of: impl Fn(GroupId) -> Option<Session>,
    ) {
        let ask = AskId { root_epoch: self.epoch, number: self.next_ask };
        self.next_ask += 1;
        if let Some(op) = self.ops.get_mut(&id) {
            let asked = op.asks.iter().filter_map(|one| Some((one.group, (session_of(one.group)?, None))));
            op.told = asked.collect();
        }
        self.set(id, Stage::Asking { ask, asked_at: now }, Some(due));
    }

    /// Ends a round of asking: returns its name, and those who were asked.
    pub fn take_round(&mut self, id: OpId) -> Option<(AskId, Vec<(GroupId, Session)>)> {
        let op = self.ops.get_mut(&id)?;
        let ask = op.ask()?;
        self.by_ask.remove(&ask);
        let told = std::mem::take(&mut op.told);
        Some((ask, told.into_iter().map(|(group, (session, _))| (group, session)).collect()))
    }

    pub fn tell(&mut self, id: OpId, from: GroupId, session: Session, fact: Bytes) {
        let Some(op) = self.ops.get_mut(&id) else { return };
        if let Some(told) = op.told.get_mut(&from).filter(|told| told.0 == session) {
            told.1.get_or_insert(fact);
            self.woken.insert(id);
        }
    }

    pub fn wake(&mut self, id: OpId) {
        self.woken.insert(id);
    }

    /// Something has changed for those that are queued.
    pub fn wake_queued(&mut self) {
        self.woken.extend(self.queued.iter().map(|(_, id)| *id));
    }

    /// Those whose entry is visible are over. Returns those that were refused by what is visible now.
    pub fn on_visible(&mut self, visible: Dix) -> Vec<OpId> {
        let mut refused = Vec::new();
        while let Some((_, id)) = self.by_entry.first().copied().filter(|(dix, _)| *dix <= visible) {
            self.by_entry.pop_first();
            match self.ops.get(&id).map(|op| op.stage) {
                Some(Stage::Refused { .. }) => refused.push(id),
                _ => self.remove(id),
            }
        }
        self.wake_queued();
        refused
    }

    /// Others that ask about one of these, and have not been decided.
    pub fn asking_about(&self, marks: &[Mark], but: OpId) -> BTreeSet<OpId> {
        let asking = marks.iter().filter_map(|mark| self.by_mark.get(mark)).flatten().map(|(_, id)| *id);
        let is_open = |id: &OpId| matches!(self.ops[id].stage, Stage::Asking { .. } | Stage::Planned { .. });
        asking.filter(|id| *id != but && is_open(id)).collect()
    }

    pub fn on_group_gone(&mut self, group: GroupId) {
        let concerned = |op: &Op| op.asks.iter().any(|ask| ask.group == group);
        let ids: Vec<OpId> = self.ops.iter().filter(|(_, op)| concerned(op)).map(|(id, _)| *id).collect();
        for id in ids {
            let asks = self.ops[&id].asks.iter().filter(|ask| ask.group != group).cloned().collect();
            self.set_asks(id, asks);
            self.woken.insert(id);
        }
    }

    /// Those to be looked at, in the order in which they came.
    pub fn take_woken(&mut self, now: Moment) -> Vec<OpId> {
        while let Some((due, id)) = self.by_due.first().copied().filter(|(due, _)| *due <= now) {
            self.by_due.remove(&(due, id));
            if let Some(op) = self.ops.get_mut(&id) {
                op.due = None;
            }
            self.woken.insert(id);
        }
        let mut woken: Vec<OpId> = std::mem::take(&mut self.woken).into_iter().collect();
        woken.sort_by_key(|id| self.ops.get(id).map(|op| op.number));
        woken
    }

    pub fn deadline(&self) -> Option<Moment> {
        if !self.woken.is_empty() {
            return Some(Moment::default());
        }
        self.by_due.first().map(|(due, _)| *due)
    }

    pub fn is_consistent(&self) -> Result<(), String> {
        let asking = self.ops.values().filter(|op| op.ask().is_some()).count();
        let queued = self.ops.values().filter(|op| matches!(op.stage, Stage::Queued { .. })).count();
        if asking != self.by_ask.len() || queued != self.queued.len() {
            return Err(format!("{asking} asks and {} names of them, {queued} queued", self.by_ask.len()));
        }
        Ok(())
    }
}
