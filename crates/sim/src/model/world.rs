//! A group, its network and its coordinator as one value that can be cloned, hashed and gone on from in every
//! possible way.

use super::{
    Bounds, Event, WAKE_MS,
    search::{Search, Told},
};
use crate::{
    check,
    host::{Happened, Host},
    truth::{Broken, Truth},
};
use base::{EntryKind, GroupView, MemberId, MemberLife, MemberStore, Moment};
use bytes::Bytes;
use group::{ChangeFailed, ChangeName, Input, Message, Proposal, ReadLog, Role, ViewChange};
use rapidhash::v3::RapidSecrets;
use std::{
    collections::{BTreeMap, VecDeque},
    hash::{Hash, Hasher},
    sync::Arc,
};

/// One member with its clock. Shared between worlds until it changes, with its hash beside it.
#[derive(Clone, Debug, Hash)]
pub(super) struct Seat {
    pub host: Host,
    pub now: Moment,
    /// The view is to be read.
    pub reads_view: bool,
    pub reads: VecDeque<ReadLog>,
}

pub(crate) struct Hashed<T> {
    pub value: Arc<T>,
    hash: u64,
}

impl<T: Hash> Hashed<T> {
    pub fn new(value: T) -> Self {
        let hash = hash_of(&value);
        Self { value: Arc::new(value), hash }
    }
}

impl<T> Clone for Hashed<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), hash: self.hash }
    }
}

impl<T> Hash for Hashed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A message under way, with the life of its sender.
#[derive(Debug, Hash)]
pub(super) struct Packet {
    pub from: MemberLife,
    pub message: Message,
}

/// The coordinator: the view, the members' own records, and changes that it has not carried out yet.
#[derive(Clone, Debug, Hash)]
pub(super) struct Keeper {
    pub view: GroupView,
    pub version: u64,
    pub records: BTreeMap<MemberId, MemberLife>,
    pub requests: Vec<Request>,
    /// The answers of the coordinator that their askers have not heard yet.
    pub answers: Vec<Answer>,
}

/// An answer under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Answer {
    pub author: MemberLife,
    pub asked: ChangeName,
    pub answer: Result<u64, ChangeFailed>,
}

#[derive(Clone, Debug, Hash)]
pub(super) struct Request {
    pub author: MemberLife,
    pub change: ViewChange,
    /// Its author has been told that the answer is unknown.
    pub is_orphan: bool,
}

/// How much of what is bounded is left.
#[derive(Clone, Debug, Hash)]
pub(super) struct Left {
    pub operations: u8,
    pub crashes: u8,
    pub wakes: u8,
    pub beats: u8,
    pub resets: u8,
    pub disorders: u8,
    pub unknowns: u8,
    pub late_answers: u8,
    pub alarms: u8,
    pub orders: u8,
}

#[derive(Clone, Hash)]
pub struct World {
    pub(super) seats: Vec<Hashed<Seat>>,
    /// In order, per sender and receiver.
    pub(super) links: BTreeMap<(u8, u8), VecDeque<Hashed<Packet>>>,
    pub(super) keeper: Hashed<Keeper>,
    pub(super) truth: Truth,
    pub(super) left: Left,
}

pub(crate) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = StableHasher(0x5bd1_e995);
    value.hash(&mut hasher);
    hasher.finish()
}

/// A hasher that gives equal values on every machine and in every run.
struct StableHasher(u64);

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        const SECRETS: RapidSecrets = RapidSecrets::seed(17);
        self.0 = self.0.rotate_left(23)
            ^ rapidhash::v3::rapidhash_v3_seeded(bytes, &SECRETS).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ self.0.wrapping_mul(0xff51_afd7_ed55_8ccd);
    }

    fn write_u64(&mut self, number: u64) {
        let mut mixed = (self.0 ^ number).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^= mixed >> 32;
        mixed = mixed.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        self.0 = mixed ^ (mixed >> 29) ^ self.0.rotate_left(31);
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(super) fn member(seat: u8) -> MemberId {
    MemberId(u32::from(seat) + 1)
}

pub(super) fn seat_of(member: MemberId) -> u8 {
    (member.0 - 1) as u8
}

impl Search for Bounds {
    type World = World;
    type Event = Event;
    const NO_EVENT: Event = Event::Start { seat: 0 };

    fn outset(&self) -> World {
        World::new(self)
    }

    fn events(&self, world: &World) -> Vec<Event> {
        world.events(self)
    }

    fn go(&self, world: &mut World, event: Event, told: &mut Told) -> Result<(), Broken> {
        world.go(event, self, told)
    }

    fn fingerprint(world: &World) -> u64 {
        world.fingerprint()
    }

    fn allows(&self, world: &World, event: Event) -> bool {
        world.allows(event, self)
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
        let stores: Vec<_> = (0..bounds.members as u8)
            .map(|seat| MemberStore { member: member(seat), generation: 0 })
            .collect();
        let mut view = GroupView::new(&stores, bounds.in_sync_min);
        view.in_sync.truncate((bounds.members - bounds.juniors) as usize);
        let seats = stores
            .iter()
            .map(|store| {
                let mut host = Host::new(*store);
                host.forgets_promises = bounds.forgets_promises;
                Hashed::new(Seat { host, now: Moment::from_ms(0), reads_view: false, reads: VecDeque::new() })
            })
            .collect();
        let keeper =
            Keeper { view, version: 1, records: BTreeMap::new(), requests: Vec::new(), answers: Vec::new() };
        let mut world = Self {
            seats,
            links: BTreeMap::new(),
            keeper: Hashed::new(keeper),
            truth: Truth { ignores_promises: bounds.forgets_promises, ..Truth::default() },
            left: Left {
                operations: bounds.operations,
                crashes: bounds.crashes,
                wakes: bounds.wakes,
                beats: bounds.beats,
                resets: bounds.resets,
                disorders: bounds.disorders,
                unknowns: bounds.unknowns,
                late_answers: bounds.late_answers,
                alarms: bounds.alarms,
                orders: bounds.orders.len() as u8,
            },
        };
        for seat in 0..bounds.members as u8 {
            world.start(seat, bounds, &mut None).expect("a start breaks nothing");
        }
        if bounds.starts_served {
            world.serve_first(bounds);
        }
        world
    }

    /// Lets the first member lead, and everything that follows from it happen, before the check begins.
    fn serve_first(&mut self, bounds: &Bounds) {
        let left = self.left.clone();
        (self.left.wakes, self.left.beats) = (100, 100);
        self.go(Event::Wake { seat: 0 }, bounds, &mut None).expect("the prelude breaks nothing");
        for round in 0..200 {
            let quiet = self.events(bounds).into_iter().find(|event| {
                matches!(
                    event,
                    Event::Deliver { .. }
                        | Event::Sync { .. }
                        | Event::Decide { .. }
                        | Event::ReadView { .. }
                        | Event::ReadLog { .. }
                )
            });
            match quiet {
                Some(event) => self.go(event, bounds, &mut None).expect("the prelude breaks nothing"),
                None if self.is_settled() => {
                    self.left = left;
                    return;
                }
                None => {
                    self.go(Event::Beat { seat: 0 }, bounds, &mut None).expect("the prelude breaks nothing")
                }
            }
            assert!(round < 199, "the first member does not come to serve");
        }
    }

    fn is_settled(&self) -> bool {
        let first = &self.seats[0].value.host;
        matches!(first.member().role(), Role::Serving { .. })
            && self
                .seats
                .iter()
                .all(|seat| seat.value.host.member().committed() == first.member().committed())
    }

    pub fn fingerprint(&self) -> u64 {
        hash_of(self)
    }

    /// Everything that may happen next.
    pub(super) fn events(&self, bounds: &Bounds) -> Vec<Event> {
        let mut events = Vec::new();
        let keeper = &self.keeper.value;
        if keeper.view.epoch.0 > bounds.epochs
            || self.seats.iter().any(|seat| seat.value.host.disk.end().id.sn.0 > bounds.log)
        {
            return events;
        }
        for (&(from, to), link) in &self.links {
            if !link.is_empty() && self.is_up(to) {
                events.push(Event::Deliver { from, to });
                if self.left.disorders > 0 {
                    events.push(Event::Double { from, to });
                    if link.len() > 1 {
                        events.push(Event::Overtake { from, to });
                    }
                }
            }
        }
        for (index, request) in keeper.requests.iter().enumerate() {
            let request_index = index as u8;
            events.push(Event::Decide { request: request_index });
            if self.left.late_answers > 0 {
                events.push(Event::DecideLate { request: request_index });
            }
            if !request.is_orphan && self.left.unknowns > 0 {
                events.push(Event::DecideUnheard { request: request_index });
                events.push(Event::Delay { request: request_index });
            }
        }
        for answer in 0..keeper.answers.len() as u8 {
            events.push(Event::Hear { answer });
            if self.left.late_answers > 0 {
                events.push(Event::HearAgain { answer });
            }
        }
        for (seat, hashed) in self.seats.iter().enumerate() {
            let (seat, value) = (seat as u8, &hashed.value);
            let Some(running) = &value.host.member else {
                events.push(Event::Start { seat });
                continue;
            };
            if value.reads_view {
                events.push(Event::ReadView { seat });
            }
            if !value.reads.is_empty() {
                events.push(Event::ReadLog { seat });
            }
            if value.host.unsynced() > 0 {
                events.push(Event::Sync { seat });
            }
            if running.deadline().is_some() {
                if self.left.wakes > 0 {
                    events.push(Event::Wake { seat });
                }
                if self.left.beats > 0 {
                    events.push(Event::Beat { seat });
                }
            }
            if self.left.operations > 0 && matches!(running.role(), Role::Serving { .. }) {
                events.push(Event::Propose { seat });
            }
            if self.left.crashes > 0 {
                events.push(Event::Crash { seat, keeps: false });
                if value.host.unsynced() > 0 {
                    events.push(Event::Crash { seat, keeps: true });
                }
            }
            if self.left.alarms > 0 {
                events.push(Event::LockGone { seat });
            }
            if self.left.orders > 0 {
                events.push(Event::Order { seat });
            }
            for other in 0..self.seats.len() as u8 {
                if other > seat && self.left.resets > 0 && self.is_up(other) {
                    events.push(Event::Reset { one: seat, other });
                }
                if other != seat && self.left.alarms > 0 {
                    events.push(Event::Gone { seat, other });
                }
            }
        }
        events
    }

    /// Loses all messages under way from one member to another.
    pub fn lose(&mut self, from: u8, to: u8) {
        self.links.remove(&(from, to));
    }

    /// The next event that only takes its course, if there is one.
    pub fn next_ordinary(&self, bounds: &Bounds) -> Option<Event> {
        self.events(bounds)
            .into_iter()
            .find(|event| event.is_ordinary() && !matches!(event, Event::Start { .. }))
    }

    /// Whether no member waits for the answer to this change any more.
    pub(super) fn is_orphan(&self, request: u8) -> bool {
        self.keeper.value.requests.get(request as usize).is_some_and(|request| request.is_orphan)
    }

    fn is_up(&self, seat: u8) -> bool {
        self.seats[seat as usize].value.host.is_up()
    }

    /// Whether the event can happen now: a shortened story skips what cannot.
    pub fn allows(&self, event: Event, bounds: &Bounds) -> bool {
        self.events(bounds).contains(&event)
    }

    /// # Errors
    /// A rule is broken. The text names it.
    pub fn go(&mut self, event: Event, bounds: &Bounds, told: &mut Told<'_>) -> Result<(), Broken> {
        tell(told, || format!("> {}", self.describe(event)));
        self.carry_out(event, bounds, told)?;
        self.settle(bounds, told)
    }

    /// Lets all events happen that take no time by the bounds.
    fn settle(&mut self, bounds: &Bounds, told: &mut Told<'_>) -> Result<(), Broken> {
        loop {
            let next = self.seats.iter().zip(0..).find_map(|(seat, number)| {
                let value = &seat.value;
                match () {
                    () if !value.host.is_up() => None,
                    () if !bounds.slow_disk && value.host.unsynced() > 0 => {
                        Some(Event::Sync { seat: number })
                    }
                    () if !bounds.late_views && value.reads_view => Some(Event::ReadView { seat: number }),
                    () => None,
                }
            });
            match next {
                Some(event) => self.carry_out(event, bounds, told)?,
                None => return Ok(()),
            }
        }
    }

    fn carry_out(&mut self, event: Event, bounds: &Bounds, told: &mut Told<'_>) -> Result<(), Broken> {
        match event {
            Event::Deliver { from, to } => {
                let packet = self.link(from, to).pop_front().expect("it is under way");
                self.receive(to, &packet.value, told)
            }
            Event::Double { from, to } => {
                self.left.disorders -= 1;
                let packet: Hashed<Packet> = self.link(from, to).front().expect("it is under way").clone();
                self.receive(to, &packet.value, told)
            }
            Event::Overtake { from, to } => {
                self.left.disorders -= 1;
                let packet = self.link(from, to).remove(1).expect("two are under way");
                self.receive(to, &packet.value, told)
            }
            Event::Decide { request } => {
                let (asked, answer) = self.decide(request);
                if asked.is_orphan {
                    return self.check_all();
                }
                self.answer(&asked, answer, told)
            }
            Event::DecideLate { request } => {
                self.left.late_answers -= 1;
                let (asked, answer) = self.decide(request);
                let answer = Answer { author: asked.author, asked: asked.change.name(), answer };
                let mut keeper = (*self.keeper.value).clone();
                keeper.answers.push(answer);
                self.keeper = Hashed::new(keeper);
                self.check_all()
            }
            Event::Hear { answer } => {
                let mut keeper = (*self.keeper.value).clone();
                let heard = keeper.answers.remove(answer as usize);
                self.keeper = Hashed::new(keeper);
                self.hear(heard, told)
            }
            Event::HearAgain { answer } => {
                self.left.late_answers -= 1;
                let heard = self.keeper.value.answers[answer as usize].clone();
                self.hear(heard, told)
            }
            Event::DecideUnheard { request } => {
                self.left.unknowns -= 1;
                let (asked, _) = self.decide(request);
                self.answer(&asked, Err(ChangeFailed::Unknown), told)
            }
            Event::Delay { request } => {
                self.left.unknowns -= 1;
                let mut keeper = (*self.keeper.value).clone();
                keeper.requests[request as usize].is_orphan = true;
                let asked = keeper.requests[request as usize].clone();
                self.keeper = Hashed::new(keeper);
                self.answer(&asked, Err(ChangeFailed::Unknown), told)
            }
            Event::ReadView { seat } => {
                let (view, version) = (self.keeper.value.view.clone(), self.keeper.value.version);
                self.with(seat, told, |seat, happened| {
                    seat.reads_view = false;
                    seat.host.step(seat.now, Input::View { view, version }, happened);
                })
            }
            Event::ReadLog { seat } => self.with(seat, told, |seat, happened| {
                let asked = seat.reads.pop_front().expect("it was asked for");
                let answer = seat.host.read_log(asked);
                seat.host.step(seat.now, answer, happened);
            }),
            Event::Sync { seat } => self.with(seat, told, |seat, happened| {
                seat.host.sync(seat.now, usize::MAX / 2, happened);
            }),
            Event::Wake { seat } => {
                self.left.wakes -= 1;
                self.with(seat, told, |seat, happened| {
                    seat.now = seat.now.plus_ms(WAKE_MS);
                    seat.host.step(seat.now, Input::Tick, happened);
                })
            }
            Event::Beat { seat } => {
                self.left.beats -= 1;
                self.with(seat, told, |seat, happened| {
                    let deadline = seat.host.member().deadline().expect("it waits for something");
                    seat.now = seat.now.max(deadline);
                    seat.host.step(seat.now, Input::Tick, happened);
                })
            }
            Event::Propose { seat } => {
                self.left.operations -= 1;
                let payload = Bytes::from(vec![b'a' + self.left.operations]);
                let proposal = Proposal { kind: EntryKind::Operation, payload };
                self.with(seat, told, |seat, happened| {
                    seat.host.step(seat.now, Input::Propose(vec![proposal]), happened);
                })
            }
            Event::Crash { seat, keeps } => {
                self.left.crashes -= 1;
                self.end(seat, if keeps { usize::MAX / 2 } else { 0 });
                self.check_all()
            }
            Event::Start { seat } => self.start(seat, bounds, told),
            Event::LockGone { seat } => {
                self.left.alarms -= 1;
                self.input(seat, Input::LockGone, told)
            }
            Event::Gone { seat, other } => {
                self.left.alarms -= 1;
                self.input(seat, Input::PeerGone(member(other)), told)
            }
            Event::Reset { one, other } => {
                self.left.resets -= 1;
                self.links.remove(&(one, other));
                self.links.remove(&(other, one));
                for (seat, peer) in [(one, other), (other, one)] {
                    self.input(seat, Input::PeerGone(member(peer)), told)?;
                    self.input(seat, Input::PeerConnected(member(peer)), told)?;
                }
                Ok(())
            }
            Event::Order { seat } => {
                let order = bounds.orders[bounds.orders.len() - self.left.orders as usize].clone();
                self.left.orders -= 1;
                self.input(seat, Input::Operator { ticket: 1, order }, told)
            }
        }
    }

    fn link(&mut self, from: u8, to: u8) -> &mut VecDeque<Hashed<Packet>> {
        self.links.entry((from, to)).or_default()
    }

    fn receive(&mut self, to: u8, packet: &Packet, told: &mut Told<'_>) -> Result<(), Broken> {
        let input = Input::Message {
            from: packet.from.store,
            boot: packet.from.boot,
            message: packet.message.clone(),
        };
        self.input(to, input, told)
    }

    fn input(&mut self, seat: u8, input: Input, told: &mut Told<'_>) -> Result<(), Broken> {
        self.with(seat, told, |seat, happened| seat.host.step(seat.now, input, happened))
    }

    /// Carries out a request, if the view and the members still are what it expects.
    fn decide(&mut self, request: u8) -> (Request, Result<u64, ChangeFailed>) {
        let mut keeper = (*self.keeper.value).clone();
        let asked = keeper.requests.remove(request as usize);
        let basis = (keeper.version, keeper.view.change_id);
        let is_current = basis == (asked.change.expected_version, asked.change.expected_id);
        let lives =
            asked.change.requires.iter().all(|life| keeper.records.get(&life.store.member) == Some(life));
        let answer = match (is_current, lives) {
            (true, true) => {
                keeper.version += 1;
                keeper.view = asked.change.view.clone();
                Ok(keeper.version)
            }
            (false, _) => Err(ChangeFailed::BadVersion),
            (true, false) => Err(ChangeFailed::NotMade),
        };
        self.keeper = Hashed::new(keeper);
        if answer.is_ok() {
            for seat in 0..self.seats.len() as u8 {
                // The watch of each other member: it may read the new view at any time, or never.
                if self.is_up(seat) && seat != seat_of(asked.author.store.member) {
                    self.change_seat(seat, |seat| seat.reads_view = true);
                }
            }
        }
        (asked, answer)
    }

    fn answer(
        &mut self,
        asked: &Request,
        answer: Result<u64, ChangeFailed>,
        told: &mut Told<'_>,
    ) -> Result<(), Broken> {
        self.hear(Answer { author: asked.author, asked: asked.change.name(), answer }, told)
    }

    fn hear(&mut self, heard: Answer, told: &mut Told<'_>) -> Result<(), Broken> {
        let Answer { author, asked, answer } = heard;
        let seat = seat_of(author.store.member);
        if !self.is_up(seat) || self.seats[seat as usize].value.host.boot != author.boot {
            return self.check_all();
        }
        self.input(seat, Input::Changed { asked, answer }, told)
    }

    fn start(&mut self, seat: u8, bounds: &Bounds, told: &mut Told<'_>) -> Result<(), Broken> {
        let (view, version) = (self.keeper.value.view.clone(), self.keeper.value.version);
        let settings = bounds.settings;
        self.with(seat, told, |seat, happened| {
            seat.host.start(settings, seat.now, 1);
            seat.host.step(seat.now, Input::View { view, version }, happened);
        })?;
        let life = self.seats[seat as usize].value.host.life();
        let mut keeper = (*self.keeper.value).clone();
        keeper.records.insert(life.store.member, life);
        self.keeper = Hashed::new(keeper);
        for other in 0..self.seats.len() as u8 {
            if other != seat && self.is_up(other) {
                self.input(other, Input::PeerConnected(member(seat)), told)?;
                self.input(seat, Input::PeerConnected(member(other)), told)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, seat: u8, keep: usize) {
        self.change_seat(seat, |seat| {
            seat.host.crash(keep);
            seat.reads_view = false;
            seat.reads.clear();
        });
        // Messages that it had sent are under way; messages to it are gone. Its changes are with the coordinator.
        self.links.retain(|(_, to), _| *to != seat);
        let mut keeper = (*self.keeper.value).clone();
        for request in keeper.requests.iter_mut().filter(|one| seat_of(one.author.store.member) == seat) {
            request.is_orphan = true;
        }
        self.keeper = Hashed::new(keeper);
    }

    fn change_seat(&mut self, seat: u8, change: impl FnOnce(&mut Seat)) {
        let mut value = (*self.seats[seat as usize].value).clone();
        change(&mut value);
        self.seats[seat as usize] = Hashed::new(value);
    }

    /// Does something to one member and sees to everything that follows from it.
    fn with(
        &mut self,
        seat: u8,
        told: &mut Told<'_>,
        act: impl FnOnce(&mut Seat, &mut Happened),
    ) -> Result<(), Broken> {
        let mut value = (*self.seats[seat as usize].value).clone();
        let mut happened = Happened::default();
        act(&mut value, &mut happened);
        if value.host.member.as_ref().is_some_and(|one| matches!(one.role(), Role::HandingOver { .. })) {
            // No writer's turn is open in between.
            value.host.step(value.now, Input::Quiet, &mut happened);
        }
        let life = value.host.life();
        let mut restarts = false;
        for outgoing in &happened.outgoing {
            value.reads_view |= outgoing.read_view;
            value.reads.extend(&outgoing.read_log);
            restarts |= outgoing.rebuild.is_some() || !outgoing.refused.is_empty();
            if let Some(reason) = &outgoing.distrust {
                return Err(format!("member {} distrusts its own sound disk: {reason}", life.store.member));
            }
        }
        if let Some(told) = told {
            super::tell::tell(told, &value.host, &happened);
        }
        self.truth.observe(&value.host, &happened)?;
        self.seats[seat as usize] = Hashed::new(value);
        for (to, message) in happened.messages {
            let to = seat_of(to);
            if self.is_up(to) {
                let packet = Hashed::new(Packet { from: life, message });
                self.link(seat, to).push_back(packet);
            }
        }
        if !happened.changes.is_empty() {
            let mut keeper = (*self.keeper.value).clone();
            for change in happened.changes {
                keeper.requests.push(Request { author: life, change, is_orphan: false });
            }
            self.keeper = Hashed::new(keeper);
        }
        if restarts {
            // The server starts itself anew, from its disk.
            tell(told, || format!("  member {} ends and will start anew", life.store.member));
            self.end(seat, usize::MAX / 2);
        }
        self.check_all()
    }

    fn check_all(&self) -> Result<(), Broken> {
        let hosts: Vec<&Host> = self.seats.iter().map(|seat| &seat.value.host).collect();
        let view = &self.keeper.value.view;
        self.truth.holds(&hosts, view)?;
        hosts.iter().try_for_each(|host| check::serving_is_current::check(&self.truth, host, view.epoch))
    }

    fn describe(&self, event: Event) -> String {
        let first = |from: u8, to: u8, index: usize| {
            self.links
                .get(&(from, to))
                .and_then(|link| link.get(index))
                .map_or_else(String::new, |packet| super::tell::message(&packet.value.message))
        };
        super::tell::event(event, first, &self.keeper.value)
    }
}

fn tell(told: &mut Told<'_>, line: impl FnOnce() -> String) {
    if let Some(told) = told {
        told.push(line());
    }
}
