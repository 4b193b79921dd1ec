//! The root group's active in a modelled namespace: what its driver does.

use super::{
    Bounds, Planted, World, checks,
    event::Link,
    sites::{Doing, Record, RootSite, digest},
    tree::{Call, DirId, Edit, Outcome, Plan, Planned, Question, Tree, group_id, home},
    world::{Packet, body, say},
};
use crate::{
    model::{Hashed, Told},
    truth::Broken,
};
use base::{Epoch, GroupId, Moment};
use bytes::Bytes;
use dirlog::{
    Dix, Mark, OpId, Root,
    root::{self, AskOf, Decided, Fact},
};
use std::collections::BTreeMap;

pub(super) type Facts = BTreeMap<Question, u8>;
pub(super) type Asked = BTreeMap<GroupId, Vec<Question>>;

impl World {
    fn with_root<T>(&mut self, change: impl FnOnce(&mut RootSite) -> T) -> T {
        let mut site = RootSite::clone(&self.root.value);
        let value = change(&mut site);
        self.root = Hashed::new(site);
        value
    }

    pub(super) fn step_root(
        &mut self,
        input: root::Input,
        bounds: &Bounds,
        told: &mut Told,
    ) -> Result<(), Broken> {
        let now = self.now;
        let effects = self.with_root(|site| {
            // The active's own lease holds, for the moment.
            let mut effects = site.machine.step(now, root::Input::OwnLease(Moment { ns: now.ns + 1 }));
            let more = site.machine.step(now, input);
            effects.messages.extend(more.messages);
            effects.plan.extend(more.plan);
            effects.refused.extend(more.refused);
            effects.visible = effects.visible.max(more.visible);
            effects.purge = effects.purge.max(more.purge);
            effects
        });
        self.root.value.machine.is_consistent()?;
        for (group, message) in effects.messages {
            self.send(Link::Down(group.number()), Packet::Down(message), told);
        }
        if let Some(purge) = effects.purge {
            self.log.purged = self.log.purged.max(purge);
        }
        if let Some(visible) = effects.visible {
            say(told, || format!("  the root group makes visible: {visible}"));
            self.on_visible(visible, false, bounds, told)?;
        }
        for planning in effects.plan {
            self.plan_with_facts(planning.op, planning.facts, bounds, told)?;
        }
        for op in effects.refused {
            self.calls[op.0 as usize].1 = Doing::Sent;
        }
        Ok(())
    }

    /// The deposed active has no log any more that would commit what it appends; it knows only what had committed.
    pub(super) fn step_deposed(
        &mut self,
        input: root::Input,
        bounds: &Bounds,
        told: &mut Told,
    ) -> Result<(), Broken> {
        let Some(deposed) = &self.deposed else { return Ok(()) };
        let mut machine = Root::clone(&deposed.value);
        let effects = machine.step(self.now, input);
        self.deposed = Some(Hashed::new(machine));
        for (group, message) in effects.messages {
            self.send(Link::DownFromDeposed(group.number()), Packet::Down(message), told);
        }
        if let Some(visible) = effects.visible {
            say(told, || format!("  the deposed root makes visible: {visible}"));
            self.on_visible(visible, true, bounds, told)?;
        }
        Ok(())
    }

    fn on_visible(
        &mut self,
        visible: Dix,
        by_deposed: bool,
        bounds: &Bounds,
        told: &mut Told,
    ) -> Result<(), Broken> {
        let homes: Vec<_> = (1..=bounds.homes).map(|home| &self.home(home).machine).collect();
        checks::visible_is_committed_and_received(self.now, visible, &self.log, &homes)?;
        for call in 0..self.calls.len() {
            if let Doing::Entry { dix, by_deposed: at_deposed } = self.calls[call].1
                && dix <= visible
                && by_deposed == at_deposed
            {
                self.tell(call as u8, Outcome::Done, bounds, told)?;
            }
        }
        self.answer_at_root(bounds, told)
    }

    pub(super) fn look_at_root(&mut self, call: u8, bounds: &Bounds, told: &mut Told) -> Result<(), Broken> {
        let done = self.root.value.done.get(&call).copied();
        let repeats = bounds.planted == Some(Planted::RepeatsAreCarriedOut);
        if let Some(dix) = done.filter(|_| !repeats) {
            self.calls[call as usize].1 = Doing::Entry { dix, by_deposed: false };
            if self.root.value.machine.may_answer(dix) {
                self.tell(call, Outcome::Done, bounds, told)?;
            }
            return Ok(());
        }
        self.plan_at_root(call, &Facts::new(), false, bounds, told)
    }

    fn plan_with_facts(
        &mut self,
        op: OpId,
        facts: Vec<Fact>,
        bounds: &Bounds,
        told: &mut Told,
    ) -> Result<(), Broken> {
        let call = op.0 as u8;
        let asked = self.asked.get(&call).cloned().unwrap_or_default();
        let known = known(&asked, facts);
        self.plan_at_root(call, &known, true, bounds, told)
    }

    /// Plans a call on the root group's tree, and does what comes of it.
    fn plan_at_root(
        &mut self,
        call: u8,
        facts: &Facts,
        is_ordered: bool,
        bounds: &Bounds,
        told: &mut Told,
    ) -> Result<(), Broken> {
        let now = self.now;
        let what = self.calls[call as usize].0;
        let Planned { plan, seen } =
            plan_on(&self.root.value, what, call, facts, bounds.homes, bounds.planted);
        say(told, || format!("  the root group plans {plan:?} with {facts:?}"));
        let own = self.root.value.tree.decider(what, bounds.homes) == Some(GroupId::ROOT);
        let op = OpId(call.into());
        match plan {
            Plan::Ask(questions) => {
                let (asked, asks) = asks(&questions, bounds.homes);
                self.asked.insert(call, asked);
                let is_taken = self.with_root(|site| {
                    if is_ordered {
                        site.machine.ask_anew(now, op, asks);
                        true
                    } else {
                        site.machine.order(now, op, asks).is_ok()
                    }
                });
                if is_taken {
                    self.calls[call as usize].1 = Doing::Ordered { by_deposed: false };
                }
            }
            Plan::Answer(outcome) => {
                if is_ordered
                    && self.with_root(|site| site.machine.refuse(now, op, &seen)) == Decided::AskedAnew
                {
                    return Ok(());
                }
                self.answer_from_root(call, outcome, &seen, false, bounds, told)?;
            }
            Plan::Do(edit) if own => {
                // A file of the root group's own.
                self.log.records.push(Record::Own { edit });
                self.with_root(|site| site.tree.apply(edit, Some((GroupId::ROOT, bounds.homes))));
                self.answer_from_root(call, Outcome::Done, &seen, true, bounds, told)?;
            }
            Plan::Do(edit) => {
                let decided = self.with_root(|site| {
                    let marks = site.tree.marks(edit);
                    site.machine.append(now, op, marks, Bytes::copy_from_slice(&edit.encode()))
                });
                let Decided::Stands(entry) = decided else { return Ok(()) };
                say(told, || format!("  the root group appends {}: {edit:?}", entry.dix));
                let dix = entry.dix;
                self.log.records.push(Record::Dir { entry, call });
                self.with_root(|site| {
                    site.tree.apply(edit, Some((GroupId::ROOT, bounds.homes)));
                    site.done.insert(call, dix);
                });
                self.digests.insert(dix, digest(&self.root.value.tree));
                self.calls[call as usize].1 = Doing::Entry { dix, by_deposed: false };
            }
        }
        if !bounds.slow_commits && self.log.committed < self.log.records.len() {
            self.commit_root(bounds, told)?;
        }
        Ok(())
    }

    fn answer_from_root(
        &mut self,
        call: u8,
        outcome: Outcome,
        seen: &[Mark],
        appended: bool,
        bounds: &Bounds,
        told: &mut Told,
    ) -> Result<(), Broken> {
        let needs = self.log.records.len();
        let visible = self.root.value.machine.answer_after(seen).unwrap_or_default();
        self.calls[call as usize].1 = Doing::AtRoot { needs, visible, outcome, appended };
        self.answer_at_root(bounds, told)
    }

    fn answer_at_root(&mut self, bounds: &Bounds, told: &mut Told) -> Result<(), Broken> {
        let now_visible = self.root.value.machine.visible();
        for call in 0..self.calls.len() {
            if let Doing::AtRoot { needs, visible, outcome, .. } = self.calls[call].1
                && needs <= self.log.committed
                && visible <= now_visible
            {
                self.tell(call as u8, outcome, bounds, told)?;
            }
        }
        Ok(())
    }

    pub(super) fn commit_root(&mut self, bounds: &Bounds, told: &mut Told) -> Result<(), Broken> {
        self.log.committed = self.log.records.len();
        let end = self.log.end(self.log.committed);
        self.step_root(root::Input::Committed(end), bounds, told)?;
        self.answer_at_root(bounds, told)
    }

    /// Another member claims once the old active's lease is over, and serves: all that it has in its log has committed.
    pub(super) fn take_over_root(
        &mut self,
        keeps: bool,
        bounds: &Bounds,
        told: &mut Told,
    ) -> Result<(), Broken> {
        self.left.root_takeovers -= 1;
        self.now = self.now.plus_ms(1);
        if !keeps {
            self.log.records.truncate(self.log.committed);
        }
        let end = self.log.end(self.log.records.len());
        self.digests.retain(|dix, _| *dix <= end);
        let groups: Vec<GroupId> = (1..=bounds.homes).map(|home| group_id(home.into())).collect();
        let epoch = Epoch(self.root.value.machine.epoch().0 + 1);
        let machine = Root::new(bounds.settings, epoch, &groups, self.log.recovered(), self.now);
        let old = std::mem::replace(
            &mut self.root,
            Hashed::new(RootSite::new(machine, &bounds.outset, bounds.homes, &self.log)),
        );
        self.deposed = Some(Hashed::new(old.value.machine.clone()));
        for home in 1..=bounds.homes {
            self.links.remove(&Link::DownFromDeposed(home));
            if let Some(packets) = self.links.remove(&Link::Down(home)) {
                self.links.insert(Link::DownFromDeposed(home), packets);
            }
        }
        for (_, doing) in &mut self.calls {
            match doing {
                Doing::Ordered { by_deposed } | Doing::Entry { by_deposed, .. } => *by_deposed = true,
                Doing::AtRoot { appended, .. } => *doing = if *appended { Doing::Lost } else { Doing::Sent },
                _ => {}
            }
        }
        self.commit_root(bounds, told)
    }
}

/// Plans on the root group's tree, with the facts of other homes that are in hand.
pub(super) fn plan_on(
    site: &RootSite,
    call: Call,
    number: u8,
    facts: &Facts,
    homes: u8,
    planted: Option<Planted>,
) -> Planned {
    let is_in_doubt = |dir: DirId| {
        let made = |edit: Edit| matches!(edit, Edit::Mkdir { id, .. } if id == dir);
        site.machine.doubt().entries().any(|entry| made(Edit::decode(&entry.payload)))
    };
    let spares = planted == Some(Planted::NoHoldBelowDoubt);
    site.tree.plan(call, number, &|question| {
        let (Question::Name(dir, _) | Question::Files(dir)) = question;
        if home(dir, homes) == GroupId::ROOT {
            return Some(site.tree.tell(question));
        }
        facts.get(&question).copied().or_else(|| (spares && is_in_doubt(dir)).then_some(0))
    })
}

/// The questions by home, and what the machine asks. The root group knows its own files when it plans.
pub(super) fn asks(questions: &[Question], homes: u8) -> (Asked, Vec<AskOf>) {
    let mut by_group = Asked::new();
    for question in questions {
        let (Question::Name(dir, _) | Question::Files(dir)) = question;
        let group = home(*dir, homes);
        if group != GroupId::ROOT {
            by_group.entry(group).or_default().push(*question);
        }
    }
    let ask = |(group, questions): (&GroupId, &Vec<Question>)| AskOf {
        group: *group,
        marks: questions.iter().map(|question| Tree::held_marks(*question)).collect(),
        body: body(questions),
    };
    let asks = by_group.iter().map(ask).collect();
    (by_group, asks)
}

/// The facts by question. A home's come in the order in which it was asked.
pub(super) fn known(asked: &Asked, facts: Vec<Fact>) -> Facts {
    let of = |fact: Fact| {
        let questions = asked.get(&fact.group).cloned().unwrap_or_default();
        questions.into_iter().zip(fact.body.to_vec())
    };
    facts.into_iter().flat_map(of).collect()
}
