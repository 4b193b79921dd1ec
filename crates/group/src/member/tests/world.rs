//! A world in which everything takes time: disks, links, the coordinator. Members crash and begin again, stand still, tear the ends of
//! their logs, and purge them. For stories that nobody has chosen.

use super::super::*;
use crate::{ChangeFailed, ChangeName, LogReadFailed, Message, ReadLog, ViewChange};
use base::{Durable, EntryKind};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

mod dice;
mod judge;
mod log;

pub use dice::Dice;
pub use log::Log;

struct Job {
    until: Moment,
    effects: Effects,
    after: Log,
}

pub struct Seat {
    pub store: MemberStore,
    pub boot: u64,
    pub member: Option<Member>,
    pub written: Log,
    pub stable: Log,
    /// Known to have committed, as a file says that is never synced.
    pub watermark: Sn,
    /// The last image: nothing before it is in doubt.
    pub image: Sn,
    pub is_suspect: bool,
    /// An older copy of the store: log, what is known to have committed, image.
    copy: (Log, Sn, Sn),
    jobs: VecDeque<Job>,
    pub disk_ms: u64,
    pub frozen_until: Option<Moment>,
    inbox: VecDeque<Input>,
}

enum Event {
    Message { from: MemberStore, boot: u64, to: u32, message: Message },
    Disk { seat: u32, boot: u64 },
    View { seat: u32, boot: u64 },
    Decide { seat: u32, boot: u64, change: ViewChange, answers: u8 },
    Answer { seat: u32, boot: u64, asked: ChangeName, answer: Result<u64, ChangeFailed> },
    Read { seat: u32, boot: u64, asked: ReadLog },
    Gone { seat: u32, other: u32 },
    Ended { seat: u32, store: MemberStore, boot: u64 },
    Connected { seat: u32, other: u32 },
    Start { seat: u32, boot: u64 },
    Thaw { seat: u32 },
}

pub struct World {
    pub now: Moment,
    pub dice: Dice,
    pub settings: Settings,
    pub seats: BTreeMap<u32, Seat>,
    events: BTreeMap<(Moment, u64), Event>,
    count: u64,
    pub view: GroupView,
    pub version: u64,
    /// All views that the coordinator has had since it was last put back.
    pub views: Vec<(GroupView, u64)>,
    pub coordinator_ms: u64,
    pub coordinator_is_down: bool,
    pub lost_answers_percent: u64,
    pub cut: BTreeSet<(u32, u32)>,
    pub delay_ms: BTreeMap<(u32, u32), u64>,
    last_delivery: BTreeMap<(u32, u32), Moment>,
    /// The entries that an active has declared committed, from sn 1 on.
    pub truth: Vec<LogPoint>,
    pub is_operation: Vec<bool>,
    /// The last entry that was acknowledged to a client.
    pub proposals: u64,
    pub broken: Option<String>,
    pub tells: bool,
    pub story: Vec<String>,
    pub level: Level,
    pub steps: u64,
    pub messages: u64,
    pub changes: u64,
}

impl World {
    pub fn new(seed: u64, count: u32, min: u32, in_sync: u32) -> Self {
        let stores: Vec<_> = (1..=count).map(super::cluster::store).collect();
        let mut view = GroupView::new(&stores, min);
        view.in_sync.truncate(in_sync as usize);
        let seats = stores
            .iter()
            .map(|store| {
                let seat = Seat {
                    store: *store,
                    boot: 0,
                    member: None,
                    written: Log::default(),
                    stable: Log::default(),
                    watermark: Sn(0),
                    image: Sn(0),
                    is_suspect: false,
                    copy: (Log::default(), Sn(0), Sn(0)),
                    jobs: VecDeque::new(),
                    disk_ms: 1,
                    frozen_until: None,
                    inbox: VecDeque::new(),
                };
                (store.member.0, seat)
            })
            .collect();
        Self {
            now: Moment::from_ms(10_000),
            dice: Dice::new(seed),
            settings: Settings::default(),
            seats,
            events: BTreeMap::new(),
            count: 0,
            views: vec![(view.clone(), 1)],
            view,
            version: 1,
            coordinator_ms: 2,
            coordinator_is_down: false,
            lost_answers_percent: 0,
            cut: BTreeSet::new(),
            delay_ms: BTreeMap::new(),
            last_delivery: BTreeMap::new(),
            truth: Vec::new(),
            is_operation: Vec::new(),
            proposals: 0,
            broken: None,
            tells: false,
            story: Vec::new(),
            level: Level::FIRST,
            steps: 0,
            messages: 0,
            changes: 0,
        }
    }

    pub fn tell(&mut self, text: impl FnOnce() -> String) {
        if self.tells {
            let text = text();
            self.story.push(format!("{:>7} {text}", self.now.ns / 1_000_000 - 10_000));
        }
    }

    fn at(&mut self, in_ms: u64, event: Event) {
        self.count += 1;
        self.events.insert((self.now.plus_ms(in_ms), self.count), event);
    }

    pub fn ids(&self) -> Vec<u32> {
        self.seats.keys().copied().collect()
    }

    pub fn up(&self) -> Vec<u32> {
        self.seats.iter().filter(|(_, seat)| seat.member.is_some()).map(|(id, _)| *id).collect()
    }

    pub fn member(&self, id: u32) -> Option<&Member> {
        self.seats[&id].member.as_ref()
    }

    pub fn role(&self, id: u32) -> Option<Role> {
        self.member(id).map(|member| member.role().clone())
    }

    pub fn serving(&self) -> Option<u32> {
        let serves = |id: &u32| matches!(self.role(*id), Some(Role::Serving { .. }));
        self.up().into_iter().filter(serves).max_by_key(|id| self.member(*id).unwrap().promised())
    }

    pub fn start(&mut self, id: u32) {
        if self.seats[&id].member.is_some() {
            return;
        }
        let now = self.now;
        let settings = self.settings;
        let seat = self.seats.get_mut(&id).unwrap();
        seat.boot += 1;
        seat.frozen_until = None;
        seat.inbox.clear();
        seat.written = seat.stable.clone();
        let log = &seat.stable;
        let base = seat.watermark.clamp(log.start.id.sn, log.end().id.sn);
        let point = log.point(base).unwrap();
        let tail: Vec<_> = log.entries.iter().filter(|entry| entry.id.sn > base).cloned().collect();
        let restored = Restored {
            promised: log.promised,
            base: point,
            tail,
            boot: seat.boot,
            is_suspect: seat.is_suspect,
            level: self.level,
            ..Restored::default()
        };
        let (end, boot, suspect) = (log.end(), seat.boot, seat.is_suspect);
        let promised = log.promised;
        seat.member = Some(Member::new(settings, seat.store, restored, now, u64::from(id) * 77 + boot));
        self.tell(|| {
            format!(
                "{id} begins (boot {boot}): promised {promised}, base {point}, end {end}, suspect {suspect}"
            )
        });
        let ms = self.coordinator_ms;
        self.at(ms, Event::View { seat: id, boot });
        for other in self.up().into_iter().filter(|other| *other != id) {
            let (one, two) = (1 + self.dice.below(20), 1 + self.dice.below(20));
            if !self.cut.contains(&(id, other)) && !self.cut.contains(&(other, id)) {
                self.at(one, Event::Connected { seat: id, other });
                self.at(two, Event::Connected { seat: other, other: id });
            }
        }
        for other in self
            .ids()
            .into_iter()
            .filter(|other| *other != id && self.seats[other].member.is_none())
            .collect::<Vec<_>>()
        {
            if self.dice.chance(80) {
                self.at(2, Event::Gone { seat: id, other });
            }
        }
    }

    /// The process ends. `tears`: power is gone, and the last durable entry is torn.
    pub fn kill(&mut self, id: u32, tears: bool, is_silent: bool) {
        let Some(seat) = self.seats.get_mut(&id) else { return };
        let Some(member) = seat.member.take() else { return };
        let life = (seat.store, seat.boot);
        let done = self.dice.below(seat.jobs.len() as u64 + 1) as usize;
        if done > 0 {
            seat.stable = seat.jobs[done - 1].after.clone();
        }
        // The last job may have been written in part.
        seat.jobs.clear();
        seat.inbox.clear();
        let known = member.committed().0.min(seat.stable.end().id.sn.0);
        let behind = self.dice.one_of(&[0, 0, 1, 2, 5, 1_000]);
        seat.watermark = seat.watermark.max(Sn(known.saturating_sub(behind)));
        let tears = tears && seat.stable.end().id.sn > seat.image.max(Sn(1));
        if tears && seat.stable.entries.pop().is_some() {
            seat.is_suspect = true;
            seat.watermark = seat.watermark.min(seat.stable.end().id.sn);
        }
        let end = seat.stable.end();
        seat.written = seat.stable.clone();
        self.tell(|| format!("{id} ends at {end}, tears {tears}, silent {is_silent}"));
        if !is_silent {
            for other in self.up() {
                if !self.cut.contains(&(id, other)) {
                    self.at(1, Event::Gone { seat: other, other: id });
                    if self.dice.chance(70) {
                        let (store, boot) = life;
                        self.at(3, Event::Ended { seat: other, store, boot });
                    }
                }
            }
        }
    }

    pub fn copy(&mut self, id: u32) {
        let seat = self.seats.get_mut(&id).unwrap();
        seat.copy = (seat.stable.clone(), seat.watermark.min(seat.stable.end().id.sn), seat.image);
        self.tell(|| format!("the store of {id} is copied"));
    }

    /// The process ends; in the place of its store comes an empty one, or the copy, which has promised as little as it had then.
    pub fn replace(&mut self, id: u32, is_copy: bool) {
        self.kill(id, false, false);
        let seat = self.seats.get_mut(&id).unwrap();
        let empty = (Log::default(), Sn(0), Sn(0));
        (seat.stable, seat.watermark, seat.image) = if is_copy { seat.copy.clone() } else { empty };
        seat.written = seat.stable.clone();
        seat.is_suspect = false;
        seat.store.generation += 1;
        let end = seat.stable.end();
        self.tell(|| format!("the store of {id} is another one, copy {is_copy}, end {end}"));
    }

    pub fn freeze(&mut self, id: u32, ms: u64) {
        let until = self.now.plus_ms(ms);
        let seat = self.seats.get_mut(&id).unwrap();
        if seat.member.is_some() {
            seat.frozen_until = Some(until);
            self.at(ms, Event::Thaw { seat: id });
            self.tell(|| format!("{id} stands still for {ms} ms"));
        }
    }

    pub fn cut_link(&mut self, one: u32, other: u32, is_both: bool) {
        self.cut.insert((one, other));
        if is_both {
            self.cut.insert((other, one));
        }
        self.tell(|| format!("cut {one} -> {other}, both {is_both}"));
    }

    pub fn heal(&mut self) {
        let pairs: Vec<_> = std::mem::take(&mut self.cut).into_iter().collect();
        self.tell(|| "links are healed".into());
        for (one, other) in pairs {
            if self.member(one).is_some() && self.member(other).is_some() {
                self.at(1, Event::Connected { seat: one, other });
                self.at(2, Event::Connected { seat: other, other: one });
            }
        }
    }

    pub fn propose(&mut self, id: u32) {
        self.proposals += 1;
        let payload = Bytes::from(format!("{}", self.proposals));
        self.input(id, Input::Propose(vec![crate::Proposal { kind: EntryKind::Operation, payload }]));
    }

    pub fn put_back(&mut self, at: usize) {
        (self.view, self.version) = self.views[at].clone();
        self.views.truncate(at + 1);
        let view = describe(&self.view);
        self.tell(|| format!("THE COORDINATOR IS PUT BACK to {view}"));
    }

    /// Steps one member with an input, unless it stands still.
    pub fn input(&mut self, id: u32, input: Input) {
        let seat = self.seats.get_mut(&id).unwrap();
        if seat.member.is_none() {
            return;
        }
        if seat.frozen_until.is_some() {
            seat.inbox.push_back(input);
            return;
        }
        self.step(id, input);
    }

    fn step(&mut self, id: u32, input: Input) {
        self.steps += 1;
        let now = self.now;
        let seat = self.seats.get_mut(&id).unwrap();
        let Some(member) = seat.member.as_mut() else { return };
        let before = member.role().clone();
        let led = member.leading.is_some();
        let mut effects = member.step(now, input);
        let after = member.role().clone();
        let trouble = member.trouble(self.now);
        let boot = seat.boot;
        if before != after {
            let epoch = member.leading.as_ref().map(|leading| leading.epoch_start);
            self.tell(|| format!("{id} {before:?} -> {after:?} {epoch:?} trouble {trouble:?}"));
        }
        self.changes_asked(id, boot, &mut effects);
        for (to, message) in effects.take_messages() {
            self.send(id, to.0, message);
        }
        let outgoing = effects.take_outgoing();
        let entries = effects.take_entries();
        let seat = self.seats.get_mut(&id).unwrap();
        let is_again =
            effects.promise() == Some(seat.written.promised) && effects.cut().is_none() && entries.is_empty();
        if let Some(epoch) = effects.promise() {
            seat.written.promised = seat.written.promised.max(epoch);
        }
        if let Some(point) = effects.cut() {
            let keep = (point.id.sn.0 - seat.written.start.id.sn.0) as usize;
            let lost: Vec<_> =
                seat.written.entries.split_off(keep).iter().map(|entry| entry.point()).collect();
            self.tell(|| format!("{id} cuts off {lost:?}"));
        }
        let seat = self.seats.get_mut(&id).unwrap();
        let texts: Vec<_> =
            entries.iter().map(|entry| format!("{} {:?}", entry.point(), entry.kind)).collect();
        seat.written.entries.extend(entries);
        if !texts.is_empty() {
            self.tell(|| format!("{id} writes {texts:?}"));
        }
        let seat = self.seats.get_mut(&id).unwrap();
        if effects.needs_disk() {
            let from = seat.jobs.back().map_or(now, |job| job.until).max(now);
            let until = from.plus_ms(if is_again { 0 } else { seat.disk_ms });
            let after = seat.written.clone();
            seat.jobs.push_back(Job { until, effects, after });
            let in_ms = until.ms_since(now);
            self.at(in_ms, Event::Disk { seat: id, boot });
        } else {
            drop(effects.release_at_once());
        }
        self.carry_out(id, boot, led, outgoing);
        self.check(id);
    }

    fn changes_asked(&mut self, id: u32, boot: u64, effects: &mut Effects) {
        let Some(change) = effects.take_change() else { return };
        self.changes += 1;
        if self.coordinator_is_down {
            let asked = change.name();
            let late = self.dice.chance(30);
            let answer = Err(ChangeFailed::Unknown);
            self.at(50, Event::Answer { seat: id, boot, asked, answer });
            if late {
                let ms = self.dice.below(1_500);
                self.at(ms, Event::Decide { seat: id, boot, change, answers: 0 });
            }
            return;
        }
        let ms = self.coordinator_ms;
        let is_lost = self.dice.below(100) < self.lost_answers_percent;
        if is_lost {
            let asked = change.name();
            let answer = Err(ChangeFailed::Unknown);
            self.at(20, Event::Answer { seat: id, boot, asked, answer });
            let late = self.dice.below(400);
            let answers = self.dice.below(2) as u8;
            if self.dice.chance(70) {
                self.at(late, Event::Decide { seat: id, boot, change, answers });
            }
            return;
        }
        let answers = 1 + u8::from(self.dice.chance(10));
        self.at(ms, Event::Decide { seat: id, boot, change, answers });
    }

    fn decide(&mut self, id: u32, boot: u64, change: ViewChange, answers: u8) {
        let asked = change.name();
        let is_known = |life: &MemberLife| {
            self.seats
                .get(&life.store.member.0)
                .is_some_and(|seat| (seat.store, seat.boot) == (life.store, life.boot))
        };
        let answer = if (change.expected_version, change.expected_id) != (self.version, self.view.change_id) {
            Err(ChangeFailed::BadVersion)
        } else if !change.requires.iter().all(is_known) {
            Err(ChangeFailed::NotMade)
        } else {
            self.version += 1;
            self.view = change.view;
            self.views.push((self.view.clone(), self.version));
            let view = describe(&self.view);
            self.tell(|| format!("view {view} by {id}"));
            for other in self.up() {
                if self.dice.chance(95) {
                    let ms = self.coordinator_ms + self.dice.below(10);
                    let boot = self.seats[&other].boot;
                    self.at(ms, Event::View { seat: other, boot });
                }
            }
            Ok(self.version)
        };
        for copy in 0..answers {
            let ms = if copy == 0 { self.coordinator_ms } else { self.dice.below(1_000) };
            self.at(ms, Event::Answer { seat: id, boot, asked, answer });
        }
    }

    fn send(&mut self, from: u32, to: u32, message: Message) {
        self.messages += 1;
        if self.cut.contains(&(from, to)) {
            return;
        }
        let ms = self.delay_ms.get(&(from, to)).copied().unwrap_or(0);
        let last = self.last_delivery.get(&(from, to)).copied().unwrap_or_default();
        let at = self.now.plus_ms(ms).max(last);
        self.last_delivery.insert((from, to), at);
        self.count += 1;
        let seat = &self.seats[&from];
        let event = Event::Message { from: seat.store, boot: seat.boot, to, message };
        self.events.insert((Moment { ns: at.ns + 100_000 }, self.count), event);
    }

    fn carry_out(&mut self, id: u32, boot: u64, led: bool, outgoing: crate::Outgoing) {
        if let Some(sn) = outgoing.committed {
            self.commit(id, sn, led);
        }
        if outgoing.read_view && !self.coordinator_is_down {
            let ms = self.coordinator_ms;
            self.at(ms, Event::View { seat: id, boot });
        }
        if let Some(reason) = &outgoing.stepped_down {
            self.tell(|| format!("{id} leads no more: {reason}"));
        }
        for asked in outgoing.read_log {
            self.at(2, Event::Read { seat: id, boot, asked });
        }
        if outgoing.tail_is_sound {
            self.seats.get_mut(&id).unwrap().is_suspect = false;
        }
        if let Some(reason) = outgoing.distrust.or(outgoing.differs) {
            self.tell(|| format!("{id} puts its store aside: {reason}"));
            self.kill(id, false, true);
            let seat = self.seats.get_mut(&id).unwrap();
            seat.store.generation += 1;
            let promised = seat.stable.promised;
            seat.stable = Log { promised, ..Log::default() };
            seat.watermark = Sn(0);
            seat.image = Sn(0);
            seat.is_suspect = false;
            self.again(id);
        } else if outgoing.needs_image {
            self.fetch_image(id);
        } else if let Some(reason) = outgoing.rebuild {
            self.tell(|| format!("{id} is built anew: {reason}"));
            // The disk has done what it was told; the process goes on with it.
            if let Some(job) = self.seats.get_mut(&id).unwrap().jobs.pop_back() {
                self.seats.get_mut(&id).unwrap().stable = job.after;
            }
            self.seats.get_mut(&id).unwrap().jobs.clear();
            self.kill(id, false, true);
            self.again(id);
        }
        for (ticket, answer) in outgoing.answers {
            self.tell(|| format!("{id} answers order {ticket}: {answer:?}"));
        }
    }

    fn again(&mut self, id: u32) {
        let boot = self.seats[&id].boot;
        self.at(30, Event::Start { seat: id, boot });
    }

    fn fetch_image(&mut self, id: u32) {
        let mine = self.member(id).unwrap().committed();
        let best = self
            .up()
            .into_iter()
            .filter(|other| *other != id)
            .map(|other| (self.member(other).unwrap().committed(), other))
            .max();
        let Some((sn, other)) = best.filter(|(sn, _)| *sn > mine) else { return };
        let Some(point) = self.seats[&other].written.point(sn) else { return };
        self.tell(|| format!("{id} takes an image of {other} at {point}"));
        self.kill(id, false, true);
        let seat = self.seats.get_mut(&id).unwrap();
        seat.stable.entries.clear();
        seat.stable.start = point;
        seat.watermark = sn;
        seat.image = sn;
        self.again(id);
    }

    /// A member says that everything up to here has committed.
    fn commit(&mut self, id: u32, sn: Sn, is_active: bool) {
        let log = self.seats[&id].written.clone();
        for next in log.start.id.sn.0.max(1)..=sn.0 {
            let Some(point) = log.point(Sn(next)) else {
                self.fail(format!("{id} calls {sn} committed and lacks {next}"));
                return;
            };
            match self.truth.get(next as usize - 1).copied() {
                Some(known) if known == point => {}
                Some(known) => {
                    let what =
                        if self.is_operation[next as usize - 1..].contains(&true) { "LOST" } else { "START" };
                    self.fail(format!(
                        "{what}: {id} calls {point} committed, and {known} was committed in its place"
                    ));
                    return;
                }
                None if is_active && self.truth.len() as u64 + 1 == next => {
                    let is_operation = log
                        .entries
                        .get((next - log.start.id.sn.0) as usize - 1)
                        .is_some_and(|entry| entry.kind == EntryKind::Operation);
                    self.truth.push(point);
                    self.is_operation.push(is_operation);
                    self.tell(|| format!("{id} commits {point} operation {is_operation}"));
                }
                None => {
                    self.fail(format!("{id} calls {point} committed, which no active has"));
                    return;
                }
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Message { from, boot, to, message } => {
                if !self.cut.contains(&(from.member.0, to)) {
                    self.input(to, Input::Message { from, boot, message });
                }
            }
            Event::Disk { seat: id, boot } => {
                let seat = self.seats.get_mut(&id).unwrap();
                if seat.boot != boot || seat.member.is_none() {
                    return;
                }
                let Some(job) = seat.jobs.pop_front() else { return };
                seat.stable = job.after;
                let released = job.effects.release(Durable::attest());
                for (to, message) in released.messages {
                    self.send(id, to.0, message);
                }
                if let Some(proof) = released.proof {
                    self.input(id, Input::Durable(proof));
                }
            }
            Event::View { seat, boot } => {
                if self.seats[&seat].boot == boot {
                    if self.coordinator_is_down {
                        self.at(200, Event::View { seat, boot });
                        return;
                    }
                    let (view, version) = (self.view.clone(), self.version);
                    self.input(seat, Input::View { view, version });
                }
            }
            Event::Decide { seat, boot, change, answers } => self.decide(seat, boot, change, answers),
            Event::Answer { seat, boot, asked, answer } => {
                if self.seats[&seat].boot == boot {
                    self.input(seat, Input::Changed { asked, answer });
                }
            }
            Event::Read { seat, boot, asked } => {
                if self.seats[&seat].boot == boot {
                    let log = &self.seats[&seat].written;
                    let result = match log.point(asked.after) {
                        Some(previous) => {
                            let entries: Vec<_> = log
                                .entries
                                .iter()
                                .filter(|entry| entry.id.sn > asked.after && entry.id.sn <= asked.up_to)
                                .cloned()
                                .collect();
                            Ok((previous, entries))
                        }
                        None => Err(LogReadFailed::Gone),
                    };
                    self.input(seat, Input::LogRead { asked, result });
                }
            }
            Event::Gone { seat, other } => {
                if self.member(other).is_none() {
                    self.input(seat, Input::PeerGone(MemberId(other)));
                }
            }
            Event::Ended { seat, store, boot } => self.input(seat, Input::PeerEnded { store, boot }),
            Event::Connected { seat, other } => {
                if self.member(other).is_some() {
                    self.input(seat, Input::PeerConnected(MemberId(other)));
                }
            }
            Event::Start { seat, boot } => {
                if self.seats[&seat].boot == boot {
                    self.start(seat);
                }
            }
            Event::Thaw { seat: id } => {
                let now = self.now;
                let seat = self.seats.get_mut(&id).unwrap();
                if seat.frozen_until.is_some_and(|until| until <= now) {
                    seat.frozen_until = None;
                    let inbox = std::mem::take(&mut seat.inbox);
                    // Its timer runs out before it has read what came meanwhile, or after.
                    if self.dice.chance(50) {
                        self.input(id, Input::Tick);
                    }
                    inbox.into_iter().for_each(|input| self.input(id, input));
                }
            }
        }
    }

    pub fn purge(&mut self, id: u32) {
        let Some(known) = self.member(id).map(|member| member.committed()) else { return };
        let seat = self.seats.get_mut(&id).unwrap();
        if seat.stable.point(known).is_none() || !seat.jobs.is_empty() || seat.image == known {
            return;
        }
        let before = std::mem::replace(&mut seat.image, known);
        seat.written.purge(before);
        seat.stable.purge(before);
        seat.watermark = seat.watermark.max(known);
        self.tell(|| format!("{id} purges its log up to {before} and has an image of {known}"));
    }

    /// Lets time pass.
    pub fn pass(&mut self, ms: u64) {
        let end = self.now.plus_ms(ms);
        while self.broken.is_none() {
            let event_at = self.events.keys().next().map(|(at, _)| *at);
            let awake = self.seats.values().filter(|seat| seat.frozen_until.is_none());
            let deadline = awake.filter_map(|seat| seat.member.as_ref()?.deadline()).min();
            let deadline = deadline.map(|at| at.max(Moment { ns: self.now.ns + 50_000 }));
            let Some(next) = [event_at, deadline].into_iter().flatten().min() else { break };
            if next > end {
                break;
            }
            self.now = next.max(self.now);
            if event_at == Some(next) {
                let (_, event) = self.events.pop_first().unwrap();
                self.happen(event);
            } else {
                for id in self.up() {
                    let seat = &self.seats[&id];
                    let is_due = seat
                        .member
                        .as_ref()
                        .and_then(|member| member.deadline())
                        .is_some_and(|at| at <= self.now);
                    if is_due && seat.frozen_until.is_none() {
                        self.step(id, Input::Tick);
                    }
                }
            }
        }
        self.now = self.now.max(end);
    }
}

pub fn describe(view: &GroupView) -> String {
    let names = |stores: &[MemberStore]| {
        stores
            .iter()
            .map(|store| format!("{}.{}", store.member, store.generation))
            .collect::<Vec<_>>()
            .join(",")
    };
    format!(
        "epoch {} active {:?} in sync [{}] exiles [{}] hint {:?} unclean {}",
        view.epoch,
        view.active.map(|active| active.0),
        names(&view.in_sync),
        names(&view.exiles),
        view.commit_hint,
        view.unclean_epoch
    )
}
