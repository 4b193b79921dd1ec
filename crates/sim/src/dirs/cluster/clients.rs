//! Clients, and what becomes of their calls.

use super::{CALLS_END, HOMES, Happening, MEMBERS, World};
use crate::{
    dirs::{
        ordering::{Facts, asks, known, plan_on},
        sites::{HomeRecord, Record, digest},
        tree::{Call, Outcome, Path, Plan, Planned, group_id},
    },
    truth::Broken,
};
use base::GroupId;
use bytes::Bytes;
use dirlog::{
    CallId, Dix, Mark, OpId,
    home::{self, CallKind, Verdict},
    root::{self, Decided, Fact},
};

const NAMES: [Path; 4] = [Path(b"a"), Path(b"b"), Path(b"c"), Path(b"d")];
const BELOW: [Path; 8] = [
    Path(b"af"),
    Path(b"ax"),
    Path(b"bg"),
    Path(b"bx"),
    Path(b"cf"),
    Path(b"cx"),
    Path(b"axf"),
    Path(b"bxf"),
];

/// What is looked at in the end, and held against the history.
pub(super) const LOOKS: &[Call] = &[
    Call::List(Path(b"")),
    Call::List(Path(b"a")),
    Call::List(Path(b"b")),
    Call::List(Path(b"c")),
    Call::List(Path(b"d")),
    Call::Stat(Path(b"af")),
    Call::Stat(Path(b"bg")),
];

/// How long a client waits before it calls again, in microseconds, and how often it does.
const PATIENCE: u64 = 1_500_000;

#[derive(Clone, Debug)]
enum Doing {
    /// To be looked at by whoever decides it.
    Sent,
    /// A machine of this server, in this life, has it.
    With { server: usize, life: u64 },
    /// Decided there: the answer waits for this much of the log, and, at the root group, for an entry to be visible.
    Decided { server: usize, life: u64, needs: usize, visible: Dix, outcome: Outcome, appended: bool },
    /// An entry of the directory log, at this server.
    Entry { server: usize, life: u64, dix: Dix },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    /// Its call, since when, and since when this try.
    call: Option<(u8, u64, u64, Doing)>,
    made: usize,
}

impl World {
    pub(super) fn on_client(&mut self, client: usize) -> Result<(), Broken> {
        let pause = 2_000 + self.dice.below(20_000);
        self.schedule(self.now + pause, Happening::Client { client });
        match self.clients[client].call.clone() {
            None => {
                let is_over = self.now > CALLS_END || self.calls.len() >= self.shape.calls_max;
                let is_busy = self.now < self.struck_at + 600_000;
                if !is_over && self.dice.chance(if is_busy { 20 } else { 1 }) {
                    self.make_call(client);
                }
                Ok(())
            }
            Some((call, since, tried, doing)) => self.look_after(client, call, since, tried, doing),
        }
    }

    fn make_call(&mut self, client: usize) {
        let dice = &mut self.dice;
        let top = *dice.pick(&NAMES);
        let below = *dice.pick(&BELOW);
        let other = *dice.pick(&BELOW[..6]);
        let call = match dice.below(20) {
            0..=2 => Call::Mkdir(*dice.pick(&BELOW[..6])),
            3 => Call::Mkdir(top),
            4 | 5 => Call::Rmdir(*dice.pick(&BELOW[..6])),
            6 => Call::Rmdir(top),
            7 | 8 => Call::RenameDir(top, *dice.pick(&NAMES)),
            9 => Call::RenameDir(other, *dice.pick(&BELOW[..6])),
            10..=12 => Call::Create(below),
            13 | 14 => Call::Delete(below),
            15 | 16 => Call::Move(below, other),
            17 => Call::List(top),
            18 if dice.chance(20) => Call::Close(other),
            _ => Call::Stat(below),
        };
        let number = self.calls.len() as u8;
        self.calls.push(call);
        self.history.ask(call, number);
        self.say(|| format!("client {client} makes call {number}: {call:?}"));
        self.clients[client].call = Some((number, self.now, self.now, Doing::Sent));
        self.clients[client].made += 1;
    }

    fn doing(&mut self, call: u8) -> Option<&mut Doing> {
        let mut calls = self.clients.iter_mut().filter_map(|client| client.call.as_mut());
        calls.find(|one| one.0 == call).map(|one| &mut one.3)
    }

    fn set(&mut self, call: u8, doing: Doing) {
        if let Some(place) = self.doing(call) {
            *place = doing;
        }
    }

    /// The call is over for its client: `None`, it will never know.
    fn over(&mut self, call: u8, outcome: Option<Outcome>) {
        let now = self.now;
        for client in &mut self.clients {
            if client.call.as_ref().is_some_and(|one| one.0 == call) {
                let since = client.call.take().map_or(now, |one| one.1);
                self.outcome.slowest_ms = self.outcome.slowest_ms.max((now - since) / 1_000);
            }
        }
        match outcome {
            Some(outcome) => self.told(call, outcome),
            None => self.say(|| format!("call {call} is given up")),
        }
    }

    fn look_after(
        &mut self,
        client: usize,
        call: u8,
        _since: u64,
        tried: u64,
        doing: Doing,
    ) -> Result<(), Broken> {
        let is_late = self.now > tried + PATIENCE;
        let lives = |server: usize, life: u64| self.servers[server].life == life;
        match doing {
            Doing::Sent => return self.look(call),
            Doing::With { server, life } | Doing::Entry { server, life, .. }
                if is_late || !lives(server, life) =>
            {
                // Nothing has happened, or it is an entry of the log, which the next root finds.
                if self.servers[server].life == life {
                    self.step_home(server, home::Input::Forget(CallId(call.into())))?;
                }
                self.set(call, Doing::Sent);
            }
            Doing::Decided { server, life, appended, .. } if is_late || !lives(server, life) => {
                match appended {
                    // Names for repeated home operations are not built here.
                    true => self.over(call, None),
                    false => self.set(call, Doing::Sent),
                }
            }
            _ => return Ok(()),
        }
        let now = self.now;
        if let Some(one) = self.clients[client].call.as_mut() {
            one.2 = now;
        }
        Ok(())
    }

    /// Looks for the group that takes itself for the one that decides, as a door would.
    fn look(&mut self, call: u8) -> Result<(), Broken> {
        let what = self.calls[call as usize];
        if let Some(root) = self.root_that_waits_with(call) {
            return self.look_at_root(call, root);
        }
        for group in 0..=usize::from(HOMES) {
            // Now and then by a server that has been deposed and does not know it.
            let first = group * MEMBERS;
            let any = first + self.dice.below(MEMBERS as u64) as usize;
            let server = if self.dice.chance(20) { Some(any) } else { self.groups[group].active };
            let Some(server) = server.filter(|server| self.servers[*server].frozen_until <= self.now) else {
                continue;
            };
            let one = &self.servers[server];
            let is_led = one.local(self.now) < one.own_lease_end;
            let (tree, is_root) = match (one.root(), one.home()) {
                (Some(seat), _) => (&seat.site.tree, true),
                (_, Some(site)) => (&site.tree, false),
                _ => continue,
            };
            let decider = tree.decider(what, HOMES);
            if decider.unwrap_or(GroupId::ROOT) != group_id(group) || !is_led {
                continue;
            }
            if is_root {
                return self.look_at_root(call, server);
            } else {
                return self.look_at_home(call, server);
            }
        }
        Ok(())
    }

    /// The root group's active, if an operation of this call waits there: the client has called again meanwhile. No home may decide what the root
    /// group can still carry out. A door learns it by the call's name, which it asks all groups for (design, section 9).
    fn root_that_waits_with(&self, call: u8) -> Option<usize> {
        let active = self.groups[0].active.filter(|active| self.leads(*active))?;
        let seat = self.servers[active].root()?;
        seat.site.machine.knows(OpId(call.into())).then_some(active)
    }

    /// A call that waited is done again, if it is still this home's.
    pub(super) fn look_again(&mut self, call: u8, server: usize) -> Result<(), Broken> {
        let life = self.servers[server].life;
        let is_here = matches!(self.doing(call), Some(Doing::With { server: at, life: of }) if *at == server && *of == life);
        let is_own = self.servers[server].home().is_some_and(|site| {
            site.tree.decider(self.calls[call as usize], HOMES) == Some(site.machine.group())
        });
        if is_here && is_own {
            return self.look_at_home(call, server);
        }
        if is_here {
            self.set(call, Doing::Sent);
        }
        self.step_home(server, home::Input::Forget(CallId(call.into())))
    }

    fn look_at_home(&mut self, call: u8, server: usize) -> Result<(), Broken> {
        let now = self.servers[server].local(self.now);
        let is_led = now < self.servers[server].own_lease_end;
        let what = self.calls[call as usize];
        let life = self.servers[server].life;
        let group = group_id(self.servers[server].group);
        let Some(site) = self.servers[server].home_mut() else { return Ok(()) };
        let Ok(permit) = site.machine.begin(now) else {
            let verdict = site.machine.wait(now, CallId(call.into()));
            if verdict == Verdict::Waits {
                self.set(call, Doing::With { server, life });
            }
            return Ok(());
        };
        let Planned { plan, seen } = site.tree.plan(what, call, &|question| Some(site.tree.tell(question)));
        let kind =
            if matches!(what, Call::Stat(_) | Call::List(_)) { CallKind::Read } else { CallKind::Plan };
        match site.machine.judge(now, CallId(call.into()), kind, permit, &seen) {
            Verdict::Go => {}
            Verdict::Waits => {
                self.set(call, Doing::With { server, life });
                return Ok(());
            }
            Verdict::Again | Verdict::Refused => return Ok(()),
        }
        if !is_led {
            self.set(call, Doing::Sent);
            return Ok(());
        }
        let is_relayed = self.is_relayed(server, call);
        let Some(site) = self.servers[server].home_mut() else { return Ok(()) };
        let had = site.log.len();
        let (outcome, appended) = match plan {
            _ if is_relayed => (Outcome::Done, false),
            Plan::Answer(outcome) => (outcome, false),
            Plan::Do(edit) => {
                site.tree.apply(edit, Some((group, HOMES)));
                site.log.push(HomeRecord::Own(edit));
                (Outcome::Done, true)
            }
            Plan::Ask(_) => unreachable!("a home knows its own files"),
        };
        let needs = site.log.len();
        self.say(|| format!("server {server} decides call {call}: {outcome:?}, entry {needs} of its log"));
        self.set(call, Doing::Decided { server, life, needs, visible: Dix(0), outcome, appended });
        self.after_append(server, had);
        self.answer_at(server);
        // The machine may let entries in now.
        self.step_home(server, home::Input::Tick)
    }

    /// Whether this home has followed the entry that carries the call out. The relay has put the answer into the retry cache: a directory may have
    /// been renamed since, and then the repeated call comes to a home.
    fn is_relayed(&self, server: usize, call: u8) -> bool {
        let carries = |record: &Record| match record {
            Record::Dir { entry, call: of } if *of == call => Some(entry.point()),
            _ => None,
        };
        let Some(point) = self.truth.records.iter().find_map(carries) else { return false };
        let follows =
            |record: &HomeRecord| matches!(record, HomeRecord::Relay(entry) if entry.point() == point);
        self.servers[server].home().is_some_and(|site| site.log.iter().any(follows))
    }

    fn look_at_root(&mut self, call: u8, server: usize) -> Result<(), Broken> {
        let life = self.servers[server].life;
        let Some(seat) = self.servers[server].root() else { return Ok(()) };
        if let Some(dix) = seat.site.done.get(&call).copied() {
            self.set(call, Doing::Entry { server, life, dix });
            self.answer_at(server);
            return Ok(());
        }
        if seat.site.machine.knows(OpId(call.into())) {
            // Its client has called again.
            self.set(call, Doing::With { server, life });
            return Ok(());
        }
        self.plan_at_root(server, call, &Facts::new(), false)
    }

    pub(super) fn plan_with_facts(
        &mut self,
        server: usize,
        op: OpId,
        facts: Vec<Fact>,
    ) -> Result<(), Broken> {
        let call = op.0 as u8;
        let asked =
            self.servers[server].root().and_then(|seat| seat.asked.get(&call).cloned()).unwrap_or_default();
        self.plan_at_root(server, call, &known(&asked, facts), true)
    }

    fn plan_at_root(
        &mut self,
        server: usize,
        call: u8,
        facts: &Facts,
        is_ordered: bool,
    ) -> Result<(), Broken> {
        let what = self.calls[call as usize];
        let one = &mut self.servers[server];
        let (now, life) = (one.local(self.now), one.life);
        let is_current = self.groups[0].active == Some(server);
        let Some(seat) = one.root_mut() else { return Ok(()) };
        let Planned { plan, seen } = plan_on(&seat.site, what, call, facts, HOMES, None);
        let is_own = seat.site.tree.decider(what, HOMES) == Some(GroupId::ROOT);
        let op = OpId(call.into());
        let had = seat.log.records.len();
        match plan {
            Plan::Ask(questions) => {
                let (asked, asks) = asks(&questions, HOMES);
                seat.asked.insert(call, asked);
                if is_ordered {
                    seat.site.machine.ask_anew(now, op, asks);
                    self.set(call, Doing::With { server, life });
                } else if seat.site.machine.order(now, op, asks).is_ok() {
                    self.set(call, Doing::With { server, life });
                }
            }
            Plan::Answer(outcome) => {
                if is_ordered && seat.site.machine.refuse(now, op, &seen) == Decided::AskedAnew {
                    return Ok(());
                }
                self.decide_at_root(server, call, outcome, &seen, false);
            }
            Plan::Do(edit) if is_own => {
                seat.log.records.push(Record::Own { edit });
                seat.site.tree.apply(edit, Some((GroupId::ROOT, HOMES)));
                self.decide_at_root(server, call, Outcome::Done, &seen, true);
            }
            Plan::Do(edit) => {
                let marks = seat.site.tree.marks(edit);
                let decided =
                    seat.site.machine.append(now, op, marks, Bytes::copy_from_slice(&edit.encode()));
                let Decided::Stands(entry) = decided else { return Ok(()) };
                let dix = entry.dix;
                seat.log.records.push(Record::Dir { entry, call });
                seat.site.tree.apply(edit, Some((GroupId::ROOT, HOMES)));
                seat.site.done.insert(call, dix);
                if is_current {
                    self.digests.insert(dix, digest(&seat.site.tree));
                }
                self.say(|| format!("server {server} appends {dix} for call {call}: {edit:?}"));
                self.set(call, Doing::Entry { server, life, dix });
            }
        }
        self.after_append(server, had);
        self.answer_at(server);
        self.step_root(server, root::Input::Tick)
    }

    fn decide_at_root(&mut self, server: usize, call: u8, outcome: Outcome, seen: &[Mark], appended: bool) {
        let one = &self.servers[server];
        let Some(seat) = one.root() else { return };
        // What is answered from the tree alone needs the group's own lease, after it was looked at.
        if !appended && one.local(self.now) >= one.own_lease_end {
            return self.set(call, Doing::Sent);
        }
        let visible = seat.site.machine.answer_after(seen).unwrap_or_default();
        let (needs, life) = (seat.log.records.len(), one.life);
        self.set(call, Doing::Decided { server, life, needs, visible, outcome, appended });
    }

    /// A machine has given a call up: its client comes again.
    pub(super) fn on_refused(&mut self, call: u8, server: usize) {
        if matches!(self.doing(call), Some(Doing::With { server: at, .. }) if *at == server) {
            self.set(call, Doing::Sent);
        }
    }

    /// Answers go out that have waited for this server.
    pub(super) fn answer_at(&mut self, server: usize) {
        let one = &self.servers[server];
        let (committed, machine) = match (one.root(), one.home()) {
            (Some(seat), _) => (seat.log.committed, Some(&seat.site.machine)),
            (_, Some(site)) => (site.committed, None),
            _ => return,
        };
        let now_visible = machine.map_or(Dix(u64::MAX), |machine| machine.visible());
        let mut answers = Vec::new();
        for client in &self.clients {
            match &client.call {
                Some((call, _, _, Doing::Decided { server: at, life, needs, visible, outcome, .. }))
                    if (*at, *life) == (server, one.life)
                        && *needs <= committed
                        && *visible <= now_visible =>
                {
                    answers.push((*call, *outcome));
                }
                Some((call, _, _, Doing::Entry { server: at, life, dix }))
                    if (*at, *life) == (server, one.life)
                        && machine.is_some_and(|root| root.may_answer(*dix)) =>
                {
                    answers.push((*call, Outcome::Done));
                }
                _ => {}
            }
        }
        answers.into_iter().for_each(|(call, outcome)| self.over(call, Some(outcome)));
    }

    pub(super) fn everyone_has_an_answer(&self) -> Result<(), Broken> {
        match self.clients.iter().find_map(|client| client.call.as_ref()) {
            Some((call, since, _, doing)) => Err(format!(
                "everyone gets an answer: call {call} of {} ms, {:?}, does not: {doing:?}",
                since / 1_000,
                self.calls[*call as usize]
            )),
            None => Ok(()),
        }
    }
}
