//! The servers: clocks, seats, and what their drivers do.

use super::{HOMES, Happening, MEMBERS, World};
use crate::{
    Dice,
    dirs::{
        checks,
        sites::{HomeRecord, HomeSite, Record, RootLog, RootSite},
        tree::{Edit, Question, Tree, group_id},
        world::questions,
    },
    truth::Broken,
};
use base::{GroupId, Moment};
use bytes::{Bytes, BytesMut};
use dirlog::{Dix, ToGroup, ToRoot, home, root, root::ReadLog, wire};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(super) enum Packet {
    Down(ToGroup),
    Up(ToRoot),
}

impl Packet {
    /// As it is read at the other end: no story may rest on what its bytes do not tell.
    fn through_its_bytes(self) -> Self {
        let mut bytes = BytesMut::new();
        let read = match &self {
            Self::Down(message) => {
                wire::encode_to_group(message, &mut bytes);
                wire::decode_to_group(bytes.freeze()).map(Self::Down)
            }
            Self::Up(message) => {
                wire::encode_to_root(message, &mut bytes);
                wire::decode_to_root(bytes.freeze()).map(Self::Up)
            }
        };
        read.expect("what a machine says can be read")
    }
}

#[derive(Clone, Debug)]
pub(super) struct RootSeat {
    pub site: RootSite,
    /// As this server has it: what it appends after it was deposed commits nowhere.
    pub log: RootLog,
    pub asked: BTreeMap<u8, BTreeMap<GroupId, Vec<Question>>>,
}

#[derive(Clone, Debug)]
pub(super) enum Seat {
    Down,
    Standby,
    Root(Box<RootSeat>),
    Home(Box<HomeSite>),
}

#[derive(Clone, Debug)]
pub(super) struct Server {
    pub group: usize,
    /// Counts processes and reigns: what was for another one is void.
    pub life: u64,
    pub seat: Seat,
    pub frozen_until: u64,
    /// By its own clock.
    pub own_lease_end: Moment,
    ppm: i64,
    offset_us: u64,
    timer: u64,
    /// Timers that followed one another at once, and when the last one was.
    restless: (u32, u64),
}

/// A machine is stepped again at once where a step has left it something to do. A machine that wants it more often than this does
/// nothing else any more: its server's processor would be busy without an end.
const RESTLESS_MAX: u32 = 1_000;

/// Packets that a server takes together, at most.
const GATHERED_MAX: usize = 8;

impl Server {
    pub fn new(group: usize, drift_ppm: u64, dice: &mut Dice) -> Self {
        let ppm = dice.below(2 * drift_ppm + 1) as i64 - drift_ppm as i64;
        let offset_us = 1_000_000 + dice.below(1_000_000);
        let seat = Seat::Standby;
        Self {
            group,
            life: 0,
            seat,
            frozen_until: 0,
            own_lease_end: Moment::default(),
            ppm,
            offset_us,
            timer: u64::MAX,
            restless: (0, 0),
        }
    }

    /// Another process, or another reign: what was for the one before is void.
    pub fn begin_life(&mut self) {
        self.life += 1;
        self.timer = u64::MAX;
    }

    pub fn is_up(&self) -> bool {
        !matches!(self.seat, Seat::Down)
    }

    /// Its clock's time.
    pub fn local(&self, real_us: u64) -> Moment {
        let passed = (real_us as i128 * (1_000_000 + i128::from(self.ppm))) / 1_000_000;
        Moment { ns: (u64::try_from(passed).unwrap_or(0) + self.offset_us) * 1_000 }
    }

    /// The real time that passes while its clock goes on by this much.
    pub fn real_length(&self, local_us: u64) -> u64 {
        (i128::from(local_us) * 1_000_000 / (1_000_000 + i128::from(self.ppm))) as u64
    }

    fn real(&self, local: Moment) -> u64 {
        self.real_length((local.ns / 1_000).saturating_sub(self.offset_us)) + 2
    }

    pub fn home(&self) -> Option<&HomeSite> {
        match &self.seat {
            Seat::Home(site) => Some(site),
            _ => None,
        }
    }

    pub fn home_mut(&mut self) -> Option<&mut HomeSite> {
        match &mut self.seat {
            Seat::Home(site) => Some(site),
            _ => None,
        }
    }

    pub fn root(&self) -> Option<&RootSeat> {
        match &self.seat {
            Seat::Root(seat) => Some(seat),
            _ => None,
        }
    }

    pub fn root_mut(&mut self) -> Option<&mut RootSeat> {
        match &mut self.seat {
            Seat::Root(seat) => Some(seat),
            _ => None,
        }
    }
}

impl World {
    pub(super) fn root_tree(&self) -> Option<Tree> {
        let active = self.groups[0].active?;
        Some(self.servers[active].root()?.site.tree.clone())
    }

    fn post(&mut self, from: usize, to: usize, packet: Packet) {
        if self.cuts.contains(&(from, to)) || self.dice.chance(self.loss_percent) {
            return;
        }
        let packet = packet.through_its_bytes();
        let copies = if self.dice.chance(2) { 2 } else { 1 };
        for _ in 0..copies {
            let mut delay = 150 + self.dice.below(600);
            if self.dice.chance(3) {
                delay += self.dice.below(40_000);
            }
            // Some come very late.
            if self.loss_percent > 0 && self.dice.chance(3) {
                delay += self.dice.below(2_500_000);
            }
            self.schedule(self.now + delay, Happening::Packet { from, to, packet: packet.clone() });
        }
    }

    fn post_up(&mut self, from: usize, message: ToRoot) {
        let epoch = match &message {
            ToRoot::Hello { .. } => None,
            ToRoot::Received { session, .. }
            | ToRoot::Renew { session, .. }
            | ToRoot::Held { session, .. }
            | ToRoot::InTheWay { session, .. } => Some(session.root_epoch),
        };
        self.outcome.hellos += u64::from(epoch.is_none());
        let is_of = |at: &usize| {
            let machine = self.servers[*at].root().map(|seat| seat.site.machine.epoch());
            machine.is_some() && machine == epoch
        };
        // A session's messages go to the server that gave it, be it deposed; others to the active.
        let to = (0..MEMBERS).find(is_of).or(self.groups[0].active);
        if let Some(to) = to {
            self.post(from, to, Packet::Up(message));
        }
    }

    /// A packet is there. Some wait for others: a driver has its machine take messages together that have come in one call.
    pub(super) fn arrive(&mut self, from: usize, to: usize, packet: Packet) -> Result<(), Broken> {
        let waiting = self.gathered.entry(to).or_default();
        waiting.push((from, packet));
        let batch_percent = self.shape.batch_percent;
        if batch_percent > 0 && waiting.len() < GATHERED_MAX && self.dice.chance(batch_percent) {
            self.schedule(self.now + 200, Happening::Gathered { to });
            return Ok(());
        }
        self.take_gathered(to)
    }

    /// The packets that have come to a server by now are taken together.
    pub(super) fn take_gathered(&mut self, to: usize) -> Result<(), Broken> {
        let (mut of_homes, mut of_root) = (Vec::new(), Vec::new());
        for (from, packet) in self.gathered.remove(&to).unwrap_or_default() {
            match packet {
                Packet::Down(message) => of_root.push(home::Input::Message(message)),
                Packet::Up(message) => {
                    let from = group_id(self.servers[from].group);
                    of_homes.push(root::Input::Message { from, message });
                }
            }
        }
        self.step_home_with(to, of_root)?;
        self.step_root_with(to, of_homes)
    }

    pub(super) fn on_timer(&mut self, server: usize, life: u64) -> Result<(), Broken> {
        if self.servers[server].life != life {
            return Ok(());
        }
        self.servers[server].timer = u64::MAX;
        let (count, last) = self.servers[server].restless;
        let count = if self.now <= last + 2 { count + 1 } else { 0 };
        self.servers[server].restless = (count, self.now);
        if count > RESTLESS_MAX {
            return Err(format!(
                "a step is followed by a rest: server {server} wants to be stepped all the time"
            ));
        }
        self.step_home(server, home::Input::Tick)?;
        self.step_root(server, root::Input::Tick)
    }

    fn set_timer(&mut self, server: usize, deadline: Option<Moment>) {
        let Some(deadline) = deadline else { return };
        let at = self.servers[server].real(deadline).max(self.now + 1);
        let life = self.servers[server].life;
        if at < self.servers[server].timer || self.servers[server].timer <= self.now {
            self.servers[server].timer = at;
            self.schedule(at, Happening::Timer { server, life });
        }
    }

    pub(super) fn step_root(&mut self, server: usize, input: root::Input) -> Result<(), Broken> {
        self.step_root_with(server, vec![input])
    }

    fn step_root_with(&mut self, server: usize, inputs: Vec<root::Input>) -> Result<(), Broken> {
        let now = self.servers[server].local(self.now);
        let Some(seat) = self.servers[server].root_mut().filter(|_| !inputs.is_empty()) else {
            return Ok(());
        };
        let effects = seat.site.machine.step_all(now, inputs);
        if let Some(purge) = effects.purge {
            seat.log.purged = seat.log.purged.max(purge);
        }
        let is_consistent = seat.site.machine.is_consistent();
        is_consistent?;
        if let Some(purge) = effects.purge.filter(|_| self.groups[0].active == Some(server)) {
            self.truth.purged = self.truth.purged.max(purge);
        }
        for (group, message) in effects.messages {
            let first = usize::from(group.number()) * MEMBERS;
            for to in first..first + MEMBERS {
                if self.servers[to].home().is_some() {
                    self.post(server, to, Packet::Down(message.clone()));
                }
            }
        }
        for asked in effects.read {
            let life = self.servers[server].life;
            let delay = 300 + self.dice.below(30_000);
            self.schedule(self.now + delay, Happening::LogRead { server, life, asked });
        }
        if effects.prove {
            let (life, began) = (self.servers[server].life, now);
            let delay = 500 + self.dice.below(20_000);
            self.schedule(self.now + delay, Happening::Proof { server, life, began });
        }
        for op in effects.refused {
            self.on_refused(op.0 as u8, server);
        }
        for planning in effects.plan {
            self.plan_with_facts(server, planning.op, planning.facts)?;
        }
        if let Some(visible) = effects.visible {
            self.on_visible(server, visible)?;
        }
        self.answer_at(server);
        let Some(seat) = self.servers[server].root() else { return Ok(()) };
        let deadline = seat.site.machine.deadline();
        self.set_timer(server, deadline);
        Ok(())
    }

    /// The root's driver has read entries that the root keeps in memory no longer.
    pub(super) fn on_log_read(&mut self, server: usize, life: u64, asked: ReadLog) -> Result<(), Broken> {
        if self.servers[server].life != life {
            return Ok(());
        }
        let Some(seat) = self.servers[server].root() else { return Ok(()) };
        let read = seat.log.read(asked);
        self.outcome.log_reads += u64::from(read.is_some());
        self.say(|| format!("server {server} reads its log for group {}: {}", asked.group, read.is_some()));
        self.step_root(server, root::Input::LogRead { group: asked.group, read })
    }

    /// The coordinator was asked after `began`: it shows who is the active now.
    pub(super) fn on_proof(&mut self, server: usize, life: u64, began: Moment) -> Result<(), Broken> {
        if self.servers[server].life == life && self.leads(server) {
            self.step_root(server, root::Input::Proved { began })?;
            self.step_home(server, home::Input::Proved { began })?;
        }
        Ok(())
    }

    fn on_visible(&mut self, server: usize, visible: Dix) -> Result<(), Broken> {
        self.say(|| format!("server {server} makes visible: {visible}"));
        // A deposed home's active serves as long as its own lease in its group holds.
        for at in MEMBERS..self.servers.len() {
            let one = &self.servers[at];
            let now = one.local(self.now);
            if let Some(site) = one.home().filter(|_| now < one.own_lease_end) {
                checks::visible_is_committed_and_received(now, visible, &self.truth, &[&site.machine])?;
            }
        }
        Ok(())
    }

    pub(super) fn step_home(&mut self, server: usize, input: home::Input) -> Result<(), Broken> {
        self.step_home_with(server, vec![input])
    }

    fn step_home_with(&mut self, server: usize, inputs: Vec<home::Input>) -> Result<(), Broken> {
        let now = self.servers[server].local(self.now);
        let group = group_id(self.servers[server].group);
        let Some(site) = self.servers[server].home_mut().filter(|_| !inputs.is_empty()) else {
            return Ok(());
        };
        let effects = site.machine.step_all(now, inputs);
        site.machine.is_consistent()?;
        let had = site.log.len();
        for entry in effects.apply {
            checks::visible_is_committed(&entry, &self.truth)?;
            let site = self.servers[server].home_mut().expect("it is one");
            site.tree.apply(Edit::decode(&entry.payload), Some((group, HOMES)));
            checks::directories_are_equal(entry.dix, &site.tree, &self.digests)?;
            checks::trees_are_sound(group, &site.tree, HOMES)?;
            site.log.push(HomeRecord::Relay(entry));
        }
        if let Some(why) = effects.alarm {
            return Err(format!("no alarm without a cause: group {group}: {why}"));
        }
        for message in effects.messages {
            self.post_up(server, message);
        }
        for ask in effects.asks {
            let site = self.servers[server].home_mut().expect("it is one");
            let Ok(permit) = site.machine.begin(now) else { continue };
            let facts: Vec<u8> =
                questions(&ask.body).into_iter().map(|question| site.tree.tell(question)).collect();
            let rests_on = site.log.len() as u64;
            let _ = site.machine.hold(now, permit, ask.ask, Bytes::from(facts), rests_on);
        }
        for call in effects.again {
            self.look_again(call.0 as u8, server)?;
        }
        for call in effects.refused {
            self.on_refused(call.0 as u8, server);
        }
        if effects.prove {
            let (life, began) = (self.servers[server].life, now);
            let delay = 500 + self.dice.below(20_000);
            self.schedule(self.now + delay, Happening::Proof { server, life, began });
        }
        self.after_append(server, had);
        self.answer_at(server);
        let Some(site) = self.servers[server].home() else { return Ok(()) };
        let deadline = site.machine.deadline();
        self.set_timer(server, deadline);
        Ok(())
    }

    /// What was appended behind `had` commits some time later.
    pub(super) fn after_append(&mut self, server: usize, had: usize) {
        let len = match &self.servers[server].seat {
            Seat::Home(site) => site.log.len(),
            Seat::Root(seat) => seat.log.records.len(),
            _ => return,
        };
        if len > had {
            let delay =
                400 + self.dice.below(3_000) + if self.dice.chance(3) { self.dice.below(200_000) } else { 0 };
            let life = self.servers[server].life;
            self.schedule(self.now + delay, Happening::Commit { server, life, len });
        }
    }

    pub(super) fn on_commit(&mut self, server: usize, life: u64, len: usize) -> Result<(), Broken> {
        if self.servers[server].life != life || self.groups[self.servers[server].group].active != Some(server)
        {
            return Ok(());
        }
        if !self.leads(server) {
            // It is repeated until the members answer again, or somebody else leads.
            self.schedule(self.now + 20_000, Happening::Commit { server, life, len });
            return Ok(());
        }
        let group = self.servers[server].group;
        match &mut self.servers[server].seat {
            Seat::Root(seat) => {
                if len <= seat.log.committed {
                    return Ok(());
                }
                seat.log.committed = len;
                let new: Vec<Record> = seat.log.records[self.truth.records.len()..len].to_vec();
                self.truth.records.extend(new);
                self.truth.committed = self.truth.records.len();
                let end = self.truth.end(self.truth.committed);
                self.step_root(server, root::Input::Committed(end))
            }
            Seat::Home(site) => {
                if len <= site.committed {
                    return Ok(());
                }
                site.committed = len;
                self.home_truth[group] = site.log[..len].to_vec();
                let relays = site.log[..len].iter().rev().find_map(|record| match record {
                    HomeRecord::Relay(entry) => Some(entry.dix),
                    HomeRecord::Own(_) => None,
                });
                self.step_home(
                    server,
                    home::Input::Committed { own: len as u64, applied: relays.unwrap_or_default() },
                )
            }
            _ => Ok(()),
        }
    }
}
