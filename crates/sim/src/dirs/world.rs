//! Groups, their links and their clients as one value that can be cloned, hashed and gone on from in every possible way.

use super::{
    Bounds, Event, Planted, checks,
    event::Link,
    history::History,
    sites::{Doing, HomeRecord, HomeSite, RootLog, RootSite},
    tree::{Call, Edit, Outcome, Plan, Planned, Question, group_id},
};
use crate::{
    model::{Hashed, Search, Told, hash_of},
    truth::Broken,
};
use base::{Epoch, GroupId, Moment};
use bytes::Bytes;
use dirlog::{CallId, Dix, Root, ToGroup, ToRoot, home, home::CallKind, home::Verdict, root};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Debug,
    sync::Arc,
};

#[derive(Clone, Debug, Hash)]
pub(super) enum Packet {
    Down(ToGroup),
    Up(ToRoot),
}

/// How much of what is bounded is left.
#[derive(Clone, Debug, Hash)]
pub(super) struct Left {
    pub root_takeovers: u8,
    pub home_takeovers: u8,
    pub ticks: u8,
    pub losses: u8,
    pub disorders: u8,
}

#[derive(Clone, Hash)]
pub struct World {
    pub(super) now: Moment,
    pub(super) root: Hashed<RootSite>,
    /// The machine of a root group's active that has been deposed and does not know it.
    pub(super) deposed: Option<Hashed<Root>>,
    pub(super) homes: Vec<Hashed<HomeSite>>,
    pub(super) log: RootLog,
    /// The digests of the directories behind each entry of the directory log.
    pub(super) digests: BTreeMap<Dix, u64>,
    pub(super) links: BTreeMap<Link, VecDeque<Hashed<Packet>>>,
    pub(super) calls: Vec<(Call, Doing)>,
    /// The next call of each client.
    pub(super) clients: Vec<(u8, u8)>,
    pub(super) history: History,
    /// What the driver of the root group's active has asked homes for each call.
    pub(super) asked: BTreeMap<u8, BTreeMap<GroupId, Vec<Question>>>,
    pub(super) left: Left,
}

pub(super) fn say(told: &mut Told, line: impl FnOnce() -> String) {
    if let Some(lines) = told {
        lines.push(line());
    }
}

pub(super) fn text(what: &impl Debug) -> String {
    format!("{what:?}").chars().take(300).collect()
}

impl Search for Bounds {
    type World = World;
    type Event = Event;
    const NO_EVENT: Event = Event::Tick;

    fn outset(&self) -> World {
        World::new(self)
    }

    fn events(&self, world: &World) -> Vec<Event> {
        world.events(self)
    }

    fn go(&self, world: &mut World, event: Event, told: &mut Told) -> Result<(), Broken> {
        if event == Event::Rest {
            return world.come_to_rest(self, told);
        }
        world.go(event, self, told)
    }

    fn allows(&self, world: &World, event: Event) -> bool {
        event == Event::Rest || world.events(self).contains(&event)
    }

    fn fingerprint(world: &World) -> u64 {
        hash_of(world)
    }

    fn states(&self) -> usize {
        self.states
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

impl World {
    pub fn new(bounds: &Bounds) -> Self {
        let groups: Vec<GroupId> = (1..=bounds.homes).map(|home| group_id(home.into())).collect();
        let log = RootLog::default();
        let machine =
            Root::new(bounds.settings, Epoch(1), &groups, root::Recovered::default(), Moment::default());
        let mut calls = Vec::new();
        let mut clients = Vec::new();
        for of_client in &bounds.clients {
            clients.push((calls.len() as u8, (calls.len() + of_client.len()) as u8));
            calls.extend(of_client.iter().map(|call| (*call, Doing::NotYet)));
        }
        let home = |group| HomeSite::new(group, &bounds.outset, bounds.homes, bounds.settings);
        let mut world = Self {
            now: Moment::default(),
            root: Hashed::new(RootSite::new(machine, &bounds.outset, bounds.homes, &log)),
            deposed: None,
            homes: groups.into_iter().map(|group| Hashed::new(home(group))).collect(),
            log,
            digests: BTreeMap::new(),
            links: BTreeMap::new(),
            calls,
            clients,
            history: History::default(),
            asked: BTreeMap::new(),
            left: Left {
                root_takeovers: bounds.root_takeovers,
                home_takeovers: bounds.home_takeovers,
                ticks: bounds.ticks,
                losses: bounds.losses,
                disorders: bounds.disorders,
            },
        };
        world.pump_all(bounds, &mut None).expect("a beginning breaks nothing");
        for _ in 0..200 {
            let Some(link) = world.links.iter().find(|(_, link)| !link.is_empty()).map(|(link, _)| *link)
            else {
                return world;
            };
            world.carry_out(Event::Deliver(link), bounds, &mut None).expect("the prelude breaks nothing");
        }
        panic!("the groups do not come to rest");
    }

    /// Everything that may happen next.
    pub(super) fn events(&self, bounds: &Bounds) -> Vec<Event> {
        let mut events = Vec::new();
        for (link, packets) in &self.links {
            events.push(Event::Deliver(*link));
            if self.left.losses > 0 {
                events.push(Event::Lose(*link));
            }
            if self.left.disorders > 0 {
                events.push(Event::Double(*link));
                if packets.len() > 1 {
                    events.push(Event::Overtake(*link));
                }
            }
        }
        for (client, (next, end)) in self.clients.iter().enumerate() {
            let is_free = (0..*next).rev().take(1).all(|last| {
                let is_own = !self.clients[..client].iter().any(|(_, end)| last < *end);
                !is_own || matches!(self.calls[last as usize].1, Doing::Told | Doing::Lost)
            });
            if next < end && is_free {
                events.push(Event::Invoke { client: client as u8 });
            }
        }
        for (number, (call, doing)) in self.calls.iter().enumerate() {
            let number = number as u8;
            match doing {
                Doing::Sent => {
                    let deciders = (0..=bounds.homes).filter(|at| self.decides(*at, *call, bounds));
                    events.extend(deciders.map(|at| Event::Look { call: number, at }));
                }
                Doing::Looked { .. } => events.push(Event::Judge { call: number }),
                Doing::Ordered { by_deposed: true } | Doing::Entry { by_deposed: true, .. } => {
                    events.push(Event::Resend { call: number });
                }
                _ => {}
            }
        }
        if self.log.committed < self.log.records.len() {
            events.push(Event::Commit { group: 0 });
        }
        for (home, site) in (1..).zip(&self.homes) {
            let has_uncommitted = site.value.committed < site.value.log.len();
            if has_uncommitted {
                events.push(Event::Commit { group: home });
            }
            if self.left.home_takeovers > 0 {
                events.push(Event::Takeover { group: home, keeps: true });
                if has_uncommitted {
                    events.push(Event::Takeover { group: home, keeps: false });
                }
            }
        }
        if self.left.root_takeovers > 0 {
            events.push(Event::Takeover { group: 0, keeps: true });
            if self.log.committed < self.log.records.len() {
                events.push(Event::Takeover { group: 0, keeps: false });
            }
        }
        if self.left.ticks > 0 {
            events.push(Event::Tick);
        }
        events
    }

    /// Whether this group takes itself for the one that decides the call.
    fn decides(&self, at: u8, call: Call, bounds: &Bounds) -> bool {
        match at {
            0 => self.root.value.tree.decider(call, bounds.homes).is_none_or(|group| group == GroupId::ROOT),
            home => {
                let site = &self.homes[home as usize - 1].value;
                let is_own = site.tree.decider(call, bounds.homes) == Some(group_id(home.into()));
                // One that waits for the lease waits outside of the machine: it is looked at when it can be.
                is_own && site.machine.begin(self.now).is_ok()
            }
        }
    }

    fn describe(&self, event: Event) -> String {
        let packet = |link: Link, at: usize| {
            self.links.get(&link).and_then(|link| link.get(at)).map(|one| text(&one.value))
        };
        match event {
            Event::Deliver(link) => format!("{link:?} arrives: {}", packet(link, 0).unwrap_or_default()),
            Event::Overtake(link) => format!("{link:?} overtakes: {}", packet(link, 1).unwrap_or_default()),
            Event::Double(link) => {
                format!("{link:?} arrives, to come again: {}", packet(link, 0).unwrap_or_default())
            }
            Event::Lose(link) => format!("{link:?} is lost: {}", packet(link, 0).unwrap_or_default()),
            Event::Invoke { client } => {
                format!("client {client} calls {:?}", self.calls[self.clients[client as usize].0 as usize].0)
            }
            Event::Look { call, at } => format!("group {at} looks at {:?}", self.calls[call as usize].0),
            Event::Judge { call } => format!("{:?} is judged", self.calls[call as usize].0),
            other => format!("{other:?}"),
        }
    }

    fn go(&mut self, event: Event, bounds: &Bounds, told: &mut Told) -> Result<(), Broken> {
        say(told, || format!("> {}", self.describe(event)));
        self.carry_out(event, bounds, told)?;
        self.check(bounds)
    }

    /// Nothing fails any more: every call that was made is answered in the end.
    fn come_to_rest(&mut self, bounds: &Bounds, told: &mut Told) -> Result<(), Broken> {
        self.left = Left { root_takeovers: 0, home_takeovers: 0, ticks: u8::MAX, losses: 0, disorders: 0 };
        for _ in 0..40 {
            for _ in 0..2_000 {
                let ordinary = self.events(bounds).into_iter().find(|event| event.is_ordinary());
                let Some(event) = ordinary else { break };
                self.go(event, bounds, told)?;
            }
            if self.unanswered().is_empty() {
                return Ok(());
            }
            self.go(Event::Tick, bounds, told)?;
        }
        Err(format!("everyone gets an answer: not {:?}", self.unanswered()))
    }

    fn carry_out(&mut self, event: Event, bounds: &Bounds, told: &mut Told) -> Result<(), Broken> {
        match event {
            Event::Deliver(link) => self.deliver(link, 0, false, bounds, told)?,
            Event::Double(link) => {
                self.left.disorders -= 1;
                self.deliver(link, 0, true, bounds, told)?;
            }
            Event::Overtake(link) => {
                self.left.disorders -= 1;
                self.deliver(link, 1, false, bounds, told)?;
            }
            Event::Lose(link) => {
                self.left.losses -= 1;
                self.take_packet(link, 0, false);
            }
            Event::Invoke { client } => {
                let call = self.clients[client as usize].0;
                self.clients[client as usize].0 += 1;
                self.calls[call as usize].1 = Doing::Sent;
                self.history.ask(self.calls[call as usize].0, call);
            }
            Event::Look { call, at: 0 } => self.look_at_root(call, bounds, told)?,
            Event::Look { call, at } => {
                self.look(call, at, bounds);
                if !bounds.slow_looks {
                    self.judge(call, bounds, told)?;
                }
            }
            Event::Judge { call } => self.judge(call, bounds, told)?,
            Event::Commit { group: 0 } => self.commit_root(bounds, told)?,
            Event::Commit { group } => self.commit_home(group, bounds, told)?,
            Event::Takeover { group: 0, keeps } => self.take_over_root(keeps, bounds, told)?,
            Event::Takeover { group, keeps } => self.take_over_home(group, keeps, bounds),
            Event::Resend { call } => self.calls[call as usize].1 = Doing::Sent,
            Event::Rest => unreachable!("a rest is many events"),
            Event::Tick => {
                self.left.ticks -= 1;
                self.now = self.now.plus_ms(Bounds::TICK_MS);
                self.step_root(root::Input::Tick, bounds, told)?;
                self.step_deposed(root::Input::Tick, bounds, told)?;
                for home in 1..=bounds.homes {
                    self.step_home(home, home::Input::Tick, bounds, told)?;
                }
            }
        }
        self.pump_all(bounds, told)
    }

    fn take_packet(&mut self, link: Link, at: usize, stays: bool) -> Option<Arc<Packet>> {
        let packets = self.links.get_mut(&link)?;
        let packet = if stays { packets.get(at).cloned() } else { packets.remove(at) };
        if packets.is_empty() {
            self.links.remove(&link);
        }
        packet.map(|packet| packet.value)
    }

    fn deliver(
        &mut self,
        link: Link,
        at: usize,
        stays: bool,
        bounds: &Bounds,
        told: &mut Told,
    ) -> Result<(), Broken> {
        let Some(packet) = self.take_packet(link, at, stays) else { return Ok(()) };
        match (link, &*packet) {
            (Link::Down(home) | Link::DownFromDeposed(home), Packet::Down(message)) => {
                self.step_home(home, home::Input::Message(message.clone()), bounds, told)
            }
            (Link::Up(home), Packet::Up(message)) => {
                let epoch = match message {
                    ToRoot::Hello { .. } => None,
                    ToRoot::Received { session, .. }
                    | ToRoot::Renew { session, .. }
                    | ToRoot::Held { session, .. }
                    | ToRoot::InTheWay { session, .. } => Some(session.root_epoch),
                };
                let input = root::Input::Message { from: group_id(home.into()), message: message.clone() };
                let is_for_deposed =
                    self.deposed.as_ref().is_some_and(|one| Some(one.value.epoch()) == epoch);
                if is_for_deposed {
                    self.step_deposed(input, bounds, told)
                } else {
                    self.step_root(input, bounds, told)
                }
            }
            _ => unreachable!("a link carries one kind"),
        }
    }

    pub(super) fn send(&mut self, link: Link, packet: Packet, told: &mut Told) {
        say(told, || format!("  {link:?}: {}", text(&packet)));
        self.links.entry(link).or_default().push_back(Hashed::new(packet));
    }

    pub(super) fn home(&self, home: u8) -> &HomeSite {
        &self.homes[home as usize - 1].value
    }

    /// Changes a home's site.
    pub(super) fn with_home<T>(&mut self, home: u8, change: impl FnOnce(&mut HomeSite) -> T) -> T {
        let at = home as usize - 1;
        let mut site = HomeSite::clone(&self.homes[at].value);
        let value = change(&mut site);
        self.homes[at] = Hashed::new(site);
        value
    }

    pub(super) fn step_home(
        &mut self,
        home: u8,
        input: home::Input,
        bounds: &Bounds,
        told: &mut Told,
    ) -> Result<(), Broken> {
        let now = self.now;
        let mut input = input;
        if bounds.planted == Some(Planted::MarksOfTheReceiver)
            && let home::Input::Message(ToGroup::Append { entries, .. }) = &mut input
        {
            // The chains stay as they are: this world takes any.
            for entry in entries {
                entry.marks = self.home(home).tree.marks(Edit::decode(&entry.payload)).into();
            }
        }
        let mut effects = self.with_home(home, |site| {
            // The active's own lease holds, for the moment.
            let own = site.machine.step(now, home::Input::OwnLease(Moment { ns: now.ns + 1 }));
            let mut effects = site.machine.step(now, input);
            effects.apply.splice(0..0, own.apply);
            effects.messages.splice(0..0, own.messages);
            effects.again.extend(own.again);
            effects.refused.extend(own.refused);
            effects
        });
        self.home(home).machine.is_consistent()?;
        for entry in std::mem::take(&mut effects.apply) {
            let edit = Edit::decode(&entry.payload);
            say(told, || format!("  group {home} applies {}: {edit:?}", entry.dix));
            checks::visible_is_committed(&entry, &self.log)?;
            self.with_home(home, |site| {
                site.tree.apply(edit, Some((group_id(home.into()), bounds.homes)));
                site.log.push(HomeRecord::Relay(entry.clone()));
            });
            checks::directories_are_equal(entry.dix, &self.home(home).tree, &self.digests)?;
        }
        if let Some(why) = effects.alarm {
            return Err(format!("no alarm without a cause: group {home}: {why}"));
        }
        for message in effects.messages {
            self.send(Link::Up(home), Packet::Up(message), told);
        }
        for call in effects.again.into_iter().chain(effects.refused) {
            let doing = &mut self.calls[call.0 as usize].1;
            if matches!(doing, Doing::Parked { at } if *at == home) {
                *doing = Doing::Sent;
            }
        }
        for ask in effects.asks {
            let Ok(permit) = self.home(home).machine.begin(now) else { continue };
            let site = self.home(home);
            let facts: Vec<u8> =
                questions(&ask.body).into_iter().map(|question| site.tree.tell(question)).collect();
            let rests_on = site.log.len() as u64;
            say(told, || format!("  group {home} tells {facts:?} for {}", ask.ask));
            let _ = self.with_home(home, |site| {
                site.machine.hold(now, permit, ask.ask, Bytes::from(facts), rests_on)
            });
        }
        if !bounds.slow_commits && self.home(home).committed < self.home(home).log.len() {
            self.commit_home(home, bounds, told)?;
        }
        Ok(())
    }

    /// A call to be done again that is another group's by now is answered "elsewhere", and waited for no longer.
    fn forget_elsewhere(&mut self, bounds: &Bounds, told: &mut Told) -> Result<bool, Broken> {
        let mut forgotten = false;
        for number in 0..self.calls.len() as u8 {
            let (call, doing) = &self.calls[number as usize];
            if !matches!(doing, Doing::Sent | Doing::Ordered { .. } | Doing::AtRoot { .. } | Doing::Told) {
                continue;
            }
            let call = *call;
            for home in 1..=bounds.homes {
                let id = CallId(number.into());
                let site = self.home(home);
                let is_own = matches!(self.calls[number as usize].1, Doing::Sent)
                    && site.tree.decider(call, bounds.homes) == Some(group_id(home.into()));
                if site.machine.knows(id) && !is_own {
                    self.step_home(home, home::Input::Forget(id), bounds, told)?;
                    forgotten = true;
                }
            }
        }
        Ok(forgotten)
    }

    /// What a machine wants done at once.
    fn pump_all(&mut self, bounds: &Bounds, told: &mut Told) -> Result<(), Broken> {
        for _ in 0..50 {
            let mut is_quiet = true;
            if self.root.value.machine.deadline() == Some(Moment::default()) {
                is_quiet = false;
                self.step_root(root::Input::Tick, bounds, told)?;
            }
            if self.deposed.as_ref().is_some_and(|root| root.value.deadline() == Some(Moment::default())) {
                is_quiet = false;
                self.step_deposed(root::Input::Tick, bounds, told)?;
            }
            for home in 1..=bounds.homes {
                if self.home(home).machine.deadline() == Some(Moment::default()) {
                    is_quiet = false;
                    self.step_home(home, home::Input::Tick, bounds, told)?;
                }
            }
            is_quiet &= !self.forget_elsewhere(bounds, told)?;
            if is_quiet {
                return Ok(());
            }
        }
        Err("a machine comes to rest: it always wants to be stepped at once".to_owned())
    }

    /// A home looks at a call: what comes of it is judged later.
    fn look(&mut self, call: u8, at: u8, bounds: &Bounds) {
        let site = self.home(at);
        let Ok(permit) = site.machine.begin(self.now) else { return };
        let mut planned =
            site.tree.plan(self.calls[call as usize].0, call, &|question| Some(site.tree.tell(question)));
        if bounds.planted == Some(Planted::PassagesUnseen) {
            planned.seen.retain(|mark| mark.kind != dirlog::MarkKind::Passage);
        }
        self.calls[call as usize].1 = Doing::Looked { at, permit, planned };
    }

    fn judge(&mut self, call: u8, bounds: &Bounds, told: &mut Told) -> Result<(), Broken> {
        let Doing::Looked { at, permit, planned } = self.calls[call as usize].1.clone() else {
            return Ok(());
        };
        let Planned { plan, seen } = planned;
        let kind = match self.calls[call as usize].0 {
            Call::Stat(_) | Call::List(_) => CallKind::Read,
            _ => CallKind::Plan,
        };
        let now = self.now;
        let verdict =
            self.with_home(at, |site| site.machine.judge(now, CallId(call.into()), kind, permit, &seen));
        say(told, || format!("  {verdict:?} by {seen:?}"));
        match (verdict, plan) {
            (Verdict::Waits, _) => self.calls[call as usize].1 = Doing::Parked { at },
            (Verdict::Again | Verdict::Refused, _) => self.calls[call as usize].1 = Doing::Sent,
            (Verdict::Go, Plan::Answer(outcome)) => {
                let needs = self.home(at).log.len();
                self.calls[call as usize].1 = Doing::AtHome { at, needs, outcome, appended: false };
                self.answer_at_home(at, bounds, told)?;
            }
            (Verdict::Go, Plan::Do(edit)) => {
                let needs = self.with_home(at, |site| {
                    site.tree.apply(edit, Some((group_id(at.into()), bounds.homes)));
                    site.log.push(HomeRecord::Own(edit));
                    site.log.len()
                });
                self.calls[call as usize].1 =
                    Doing::AtHome { at, needs, outcome: Outcome::Done, appended: true };
                if !bounds.slow_commits {
                    self.commit_home(at, bounds, told)?;
                }
            }
            (Verdict::Go, Plan::Ask(_)) => unreachable!("a home knows its own files"),
        }
        Ok(())
    }

    fn commit_home(&mut self, home: u8, bounds: &Bounds, told: &mut Told) -> Result<(), Broken> {
        let (own, applied) = self.with_home(home, |site| {
            site.committed = site.log.len();
            (site.committed as u64, site.machine.applied().dix)
        });
        self.answer_at_home(home, bounds, told)?;
        self.step_home(home, home::Input::Committed { own, applied }, bounds, told)
    }

    fn answer_at_home(&mut self, home: u8, bounds: &Bounds, told: &mut Told) -> Result<(), Broken> {
        let committed = self.home(home).committed;
        for call in 0..self.calls.len() {
            if let Doing::AtHome { at, needs, outcome, .. } = self.calls[call].1
                && at == home
                && needs <= committed
            {
                self.tell(call as u8, outcome, bounds, told)?;
            }
        }
        Ok(())
    }

    pub(super) fn tell(
        &mut self,
        call: u8,
        outcome: Outcome,
        bounds: &Bounds,
        told: &mut Told,
    ) -> Result<(), Broken> {
        say(told, || format!("  the client of {:?} is told {outcome:?}", self.calls[call as usize].0));
        self.calls[call as usize].1 = Doing::Told;
        let asked = self.history.0.iter_mut().find(|asked| asked.number == call).expect("it was made");
        asked.told = Some(outcome);
        checks::histories_are_linearizable(&self.history, &bounds.outset)
    }

    fn take_over_home(&mut self, home: u8, keeps: bool, bounds: &Bounds) {
        self.left.home_takeovers -= 1;
        let now = self.now;
        let keep = if keeps { self.home(home).log.len() } else { self.home(home).committed };
        self.with_home(home, |site| {
            *site = site.take_over(keep, &bounds.outset, bounds.homes, bounds.settings, now)
        });
        for (_, doing) in &mut self.calls {
            match doing {
                Doing::Looked { at, .. } | Doing::Parked { at } if *at == home => *doing = Doing::Sent,
                Doing::AtHome { at, appended, .. } if *at == home => {
                    *doing = if *appended { Doing::Lost } else { Doing::Sent };
                }
                _ => {}
            }
        }
    }

    fn check(&self, bounds: &Bounds) -> Result<(), Broken> {
        for (group, tree) in (1..).map(group_id).zip(self.homes.iter().map(|site| &site.value.tree)) {
            checks::trees_are_sound(group, tree, bounds.homes)?;
        }
        checks::trees_are_sound(GroupId::ROOT, &self.root.value.tree, bounds.homes)?;
        checks::ordered_calls_have_one_entry(&self.log)
    }

    /// Whether every call that was made has been answered, or never will be for a cause.
    fn unanswered(&self) -> Vec<String> {
        let open = |doing: &Doing| !matches!(doing, Doing::NotYet | Doing::Told | Doing::Lost);
        self.calls.iter().filter(|(_, doing)| open(doing)).map(text).collect()
    }
}

/// Questions as the body of an ask.
pub(super) fn body(questions: &[Question]) -> Bytes {
    let encode = |question: &Question| match *question {
        Question::Name(dir, name) => [0, dir, name],
        Question::Files(dir) => [1, dir, 0],
    };
    questions.iter().flat_map(encode).collect::<Vec<u8>>().into()
}

pub(super) fn questions(body: &[u8]) -> Vec<Question> {
    let decode = |bytes: &[u8]| {
        if bytes[0] == 0 { Question::Name(bytes[1], bytes[2]) } else { Question::Files(bytes[1]) }
    };
    body.chunks_exact(3).map(decode).collect()
}
