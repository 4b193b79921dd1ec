//! A replica group's stand-in: who is active, by whose lease, and what faults befall its servers.

use super::{
    HOMES, Happening, MEMBERS, World,
    servers::{RootSeat, Seat},
};
use crate::{
    dirs::{
        sites::{HomeSite, RootSite},
        tree::group_id,
    },
    truth::Broken,
};
use base::{Epoch, GroupId};
use dirlog::Root;

/// How long a group's members make no claim after they have granted the lease, by their own clocks.
const LEASE: u64 = 400_000;
/// How long the active counts on it, by its own clock.
pub(super) const HELD_MS: u64 = 340;
const BEAT: u64 = 50_000;

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The active's process ends, and comes back as another member some time later.
    KillActive { group: usize, back_after: u64 },
    /// It does nothing for so long.
    FreezeActive { group: usize, for_us: u64 },
    /// It hands over to another member: its lease is not over, and it lets go of it. Its process goes on.
    HandOver { group: usize },
    /// It is cut off from its own members (and the coordinator), not from other groups.
    CutActiveFromMembers { group: usize },
    /// The actives of two groups are cut off from each other.
    CutGroups { one: usize, other: usize },
    /// So many messages of a hundred between groups are lost.
    Lose { percent: u64 },
    /// A server that was killed is there again.
    Back { server: usize },
    /// Cuts and losses end.
    Heal,
}

#[derive(Debug)]
pub(super) struct Group {
    pub active: Option<usize>,
    pub epoch: u64,
    /// When the members last granted the lease.
    granted_at: u64,
    /// The active is cut off from its members.
    pub is_cut: Option<usize>,
}

impl Group {
    pub fn new() -> Self {
        Self { active: None, epoch: 0, granted_at: 0, is_cut: None }
    }
}

impl World {
    /// Whether the server is its group's active by the coordinator, and reaches its members.
    pub(super) fn leads(&self, server: usize) -> bool {
        let group = &self.groups[self.servers[server].group];
        group.active == Some(server) && group.is_cut != Some(server)
    }

    pub(super) fn beat(&mut self, number: usize) -> Result<(), Broken> {
        self.schedule(self.now + BEAT, Happening::Beat { group: number });
        let now = self.now;
        let group = &self.groups[number];
        let lives = group.active.filter(|active| {
            let server = &self.servers[*active];
            server.is_up() && server.frozen_until <= now && group.is_cut != Some(*active)
        });
        if let Some(active) = lives {
            self.groups[number].granted_at = now;
            let until = self.servers[active].local(now).plus_ms(HELD_MS);
            self.servers[active].own_lease_end = until;
            if !self.shape.needs_proofs {
                self.step_root(active, dirlog::root::Input::OwnLease(until))?;
                self.step_home(active, dirlog::home::Input::OwnLease(until))?;
            }
            return Ok(());
        }
        let first = number * MEMBERS;
        let able: Vec<usize> = (first..first + MEMBERS)
            .filter(|server| {
                let one = &self.servers[*server];
                let waited = one.real_length(LEASE);
                let has_waited = group.epoch == 0 || now >= group.granted_at + waited;
                one.is_up() && one.frozen_until <= now && group.active != Some(*server) && has_waited
            })
            .collect();
        if able.is_empty() {
            // The active itself may come back, as a new one.
            let again = group.active.filter(|active| !self.servers[*active].is_up());
            if again.is_some() {
                self.groups[number].active = None;
            }
            return Ok(());
        }
        let claimant = *self.dice.pick(&able);
        self.take_over(number, claimant)
    }

    fn take_over(&mut self, number: usize, claimant: usize) -> Result<(), Broken> {
        let old = self.groups[number].active;
        let group = &mut self.groups[number];
        group.active = Some(claimant);
        group.epoch += 1;
        group.granted_at = self.now;
        group.is_cut = None;
        let epoch = Epoch(group.epoch);
        self.outcome.takeovers += u64::from(group.epoch > 1);
        self.say(|| format!("server {claimant} becomes group {number}'s active in epoch {epoch}"));
        let keep_tail = self.dice.below(4);
        self.servers[claimant].begin_life();
        let now = self.servers[claimant].local(self.now);
        self.servers[claimant].own_lease_end = now.plus_ms(HELD_MS);
        if number == 0 {
            let mut log = self.truth.clone();
            if let Some(Seat::Root(seat)) = old.map(|old| &self.servers[old].seat) {
                let tail = seat.log.records.len().saturating_sub(log.records.len());
                let keep = if tail == 0 { 0 } else { keep_tail as usize % (tail + 1) };
                let from = log.records.len();
                log.records.extend(seat.log.records[from..from + keep].iter().cloned());
            }
            log.committed = log.records.len();
            let end = log.end(log.records.len());
            self.digests.retain(|dix, _| *dix <= end);
            self.truth = log.clone();
            let groups: Vec<GroupId> = (1..=usize::from(HOMES)).map(group_id).collect();
            let machine = Root::new(self.shape.settings, epoch, &groups, log.recovered(), now);
            let site = RootSite::new(machine, &self.outset, HOMES, &log);
            self.servers[claimant].seat =
                Seat::Root(Box::new(RootSeat { site, log, asked: Default::default() }));
            self.step_root(claimant, dirlog::root::Input::Committed(end))?;
            if !self.shape.needs_proofs {
                let until = now.plus_ms(HELD_MS);
                self.step_root(claimant, dirlog::root::Input::OwnLease(until))?;
            }
            return Ok(());
        }
        let mut log = self.home_truth[number].clone();
        if let Some(Seat::Home(site)) = old.map(|old| &self.servers[old].seat) {
            let tail = site.log.len().saturating_sub(log.len());
            let keep = if tail == 0 { 0 } else { keep_tail as usize % (tail + 1) };
            let from = log.len();
            log.extend(site.log[from..from + keep].iter().cloned());
        }
        self.home_truth[number] = log.clone();
        let mut site = HomeSite::new(group_id(number), &self.outset, HOMES, self.shape.settings);
        (site.log, site.epoch) = (log, Epoch(epoch.0 - 1));
        let keep = site.log.len();
        let site = site.take_over(keep, &self.outset, HOMES, self.shape.settings, now);
        self.servers[claimant].seat = Seat::Home(Box::new(site));
        self.step_home(claimant, dirlog::home::Input::Tick)
    }

    pub(super) fn strike(&mut self, fault: Fault) -> Result<(), Broken> {
        self.say(|| format!("{fault:?}"));
        self.struck_at = self.now;
        match fault {
            Fault::KillActive { group, back_after } => {
                if let Some(server) = self.groups[group].active {
                    self.kill(server);
                    self.schedule(self.now + back_after, Happening::Fault(Fault::Back { server }));
                }
            }
            Fault::FreezeActive { group, for_us } => {
                if let Some(server) = self.groups[group].active {
                    self.servers[server].frozen_until = self.now + for_us;
                }
            }
            Fault::HandOver { group } => return self.hand_over(group),
            Fault::CutActiveFromMembers { group } => self.groups[group].is_cut = self.groups[group].active,
            Fault::CutGroups { one, other } => {
                if let (Some(one), Some(other)) = (self.groups[one].active, self.groups[other].active) {
                    self.cuts.extend([(one, other), (other, one)]);
                }
            }
            Fault::Lose { percent } => self.loss_percent = percent,
            Fault::Back { server } => {
                if !self.servers[server].is_up() {
                    self.servers[server].seat = Seat::Standby;
                    // Its members may not have noticed that it was away; it is no active any more.
                    let group = &mut self.groups[self.servers[server].group];
                    group.active = group.active.filter(|active| *active != server);
                }
            }
            Fault::Heal => {
                self.cuts.clear();
                self.loss_percent = 0;
                for group in &mut self.groups {
                    group.is_cut = None;
                }
            }
        }
        Ok(())
    }

    fn hand_over(&mut self, group: usize) -> Result<(), Broken> {
        let now = self.now;
        let is_able = |server: &usize| {
            let server = &self.servers[*server];
            server.is_up() && server.frozen_until <= now
        };
        let first = group * MEMBERS;
        let leads = |active: &usize| is_able(active) && self.groups[group].is_cut != Some(*active);
        let Some(active) = self.groups[group].active.filter(leads) else { return Ok(()) };
        let others: Vec<usize> =
            (first..first + MEMBERS).filter(|server| *server != active && is_able(server)).collect();
        if others.is_empty() {
            return Ok(());
        }
        self.servers[active].own_lease_end = base::Moment::default();
        self.step_root(active, dirlog::root::Input::OwnLease(base::Moment::default()))?;
        self.step_home(active, dirlog::home::Input::OwnLease(base::Moment::default()))?;
        let claimant = *self.dice.pick(&others);
        self.take_over(group, claimant)
    }

    fn kill(&mut self, server: usize) {
        self.servers[server].seat = Seat::Down;
        self.servers[server].begin_life();
    }
}
