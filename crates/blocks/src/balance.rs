//! What a balancer moves where: the figures of all data servers in, moves out.
//!
//! It knows nothing of a [`crate::BlockMap`]: a balancer is a client, and works from what the metadata server tells it. The rules are
//! those of Hadoop's balancer. The storages of one type on a server are a *group*; a group whose share of used room is farther from
//! the mean of its type than the threshold is *over* or *under*, others are *above* or *below*. First the groups over
//! the threshold give to those under it, then over to below, then above to under; on one rack first, then anywhere.
//!
//! Two rules are its own. A move is made only if it brings the shares of its two groups nearer to each other, whatever was planned: so
//! every round ends nearer to the mean than it began, and rounds come to an end. And what is planned follows from the figures alone: nothing has
//! to be remembered from one round to the next, or from one run to the next.

use crate::server::StorageType;
use std::{collections::BTreeMap, sync::Arc};

/// A live data server.
#[derive(Clone, Debug)]
pub struct Server {
    pub rack: Arc<str>,
    /// Whether replicas may be moved there and away. Those of others count where racks and holders are looked at.
    pub takes_part: bool,
    /// Its storages that serve, in any order.
    pub spaces: Vec<Space>,
}

/// The room of one storage, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    pub storage_type: StorageType,
    pub capacity: u64,
    pub remaining: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How far a group's share may be from the mean of its type, in percent of its room.
    pub threshold_percent: f64,
    /// Bytes that one group gives or takes in a round.
    pub group_bytes_max: u64,
}

/// The storages of one type on a server. `server` is the server's place among those that were given.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub server: usize,
    pub storage_type: StorageType,
    pub capacity: u64,
    /// Bytes that are taken, by whatever. It follows the moves that are chosen.
    pub used: u64,
    /// The mean of the type when the round began, in percent.
    pub mean_percent: f64,
    /// Bytes that the group may give or take yet.
    budget: u64,
}

impl Group {
    /// Percent of the room that is taken.
    pub fn used_percent(&self) -> f64 {
        100.0 * self.used as f64 / self.capacity as f64
    }

    pub fn from_mean_percent(&self) -> f64 {
        self.used_percent() - self.mean_percent
    }
}

/// Bytes that are to go from one group to another. Both are places in [`Round::groups`].
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub from: usize,
    pub to: usize,
    /// Bytes that are left to be moved.
    pub bytes: u64,
}

/// A replica of a block goes from `from` to `to`, servers both. `proxy` sends it: a server that has a replica too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub from: usize,
    pub to: usize,
    pub proxy: usize,
    pub storage_type: StorageType,
}

/// One look at the figures, and what is to be moved because of it.
#[derive(Debug)]
pub struct Round {
    servers: Vec<Server>,
    groups: Vec<Group>,
    flows: Vec<Flow>,
    threshold_percent: f64,
    excess_bytes: u64,
    /// How many replicas each server was asked to send.
    sends: Vec<usize>,
}

impl Round {
    pub fn new(servers: Vec<Server>, limits: &Limits) -> Self {
        let groups = groups_of(&servers, limits);
        let sends = vec![0; servers.len()];
        let threshold_percent = limits.threshold_percent;
        let mut round =
            Self { servers, groups, flows: Vec::new(), threshold_percent, excess_bytes: 0, sends };
        round.excess_bytes = round.bytes_beyond(1.0).max(round.bytes_beyond(-1.0));
        if round.excess_bytes > 0 {
            round.plan();
        }
        round
    }

    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Bytes that have to be moved at least until no group is beyond the threshold, as of the beginning of the round.
    pub fn excess_bytes(&self) -> u64 {
        self.excess_bytes
    }

    pub fn is_balanced(&self) -> bool {
        self.excess_bytes == 0
    }

    /// The greatest distance of a group from the mean of its type, in percent.
    pub fn spread_percent(&self) -> f64 {
        self.groups.iter().map(|group| group.from_mean_percent().abs()).fold(0.0, f64::max)
    }

    /// Bytes that the groups on one side of the mean are beyond the threshold by.
    fn bytes_beyond(&self, side: f64) -> u64 {
        let beyond = |group: &Group| {
            let percent = side * group.from_mean_percent() - self.threshold_percent;
            if percent > 0.0 { bytes_of(percent, group.capacity) } else { 0 }
        };
        self.groups.iter().map(beyond).sum()
    }

    fn plan(&mut self) {
        let threshold = self.threshold_percent;
        let over = |group: &Group| group.from_mean_percent() > threshold;
        let under = |group: &Group| group.from_mean_percent() < -threshold;
        let above = |group: &Group| (0.0..=threshold).contains(&group.from_mean_percent());
        let below = |group: &Group| (-threshold..0.0).contains(&group.from_mean_percent());
        for on_one_rack in [true, false] {
            self.pair(&over, &under, on_one_rack);
            self.pair(&over, &below, on_one_rack);
            self.pair(&above, &under, on_one_rack);
        }
    }

    fn pair(&mut self, gives: &dyn Fn(&Group) -> bool, takes: &dyn Fn(&Group) -> bool, on_one_rack: bool) {
        for from in 0..self.groups.len() {
            for to in 0..self.groups.len() {
                let (source, target) = (&self.groups[from], &self.groups[to]);
                let same_rack = self.servers[source.server].rack == self.servers[target.server].rack;
                let bytes = source.budget.min(target.budget);
                if bytes == 0
                    || source.storage_type != target.storage_type
                    || same_rack != on_one_rack
                    || !gives(source)
                    || !takes(target)
                {
                    continue;
                }
                self.groups[from].budget -= bytes;
                self.groups[to].budget -= bytes;
                self.flows.push(Flow { from, to, bytes });
            }
        }
    }

    /// Chooses where a replica of this group goes, and takes it as moved. `holders` are the servers that have the block, `None` for
    /// one that is not among those of the round. `None` if the replica stays.
    pub fn choose(&mut self, group: usize, length: u64, holders: &[Option<usize>]) -> Option<Move> {
        let from = self.groups[group].server;
        let known: Vec<usize> = holders.iter().copied().collect::<Option<_>>()?;
        if length == 0 || !known.contains(&from) {
            return None;
        }
        let fits = |flow: &Flow| {
            let to = self.groups[flow.to].server;
            flow.from == group
                && flow.bytes > 0
                && !known.contains(&to)
                && self.brings_nearer(flow, length)
                && self.keeps_racks(&known, from, to)
        };
        let at = self.flows.iter().position(fits)?;
        let flow = &mut self.flows[at];
        flow.bytes = flow.bytes.saturating_sub(length);
        let target = flow.to;
        let to = self.groups[target].server;
        self.groups[group].used -= length;
        self.groups[target].used += length;
        let proxy = self.sender(&known, to);
        self.sends[proxy] += 1;
        Some(Move { from, to, proxy, storage_type: self.groups[group].storage_type })
    }

    /// The replica could not be moved.
    pub fn take_back(&mut self, undone: Move, length: u64) {
        for group in &mut self.groups {
            if group.storage_type != undone.storage_type {
                continue;
            }
            if group.server == undone.from {
                group.used += length;
            } else if group.server == undone.to {
                group.used = group.used.saturating_sub(length);
            }
        }
    }

    fn brings_nearer(&self, flow: &Flow, length: u64) -> bool {
        let (source, target) = (&self.groups[flow.from], &self.groups[flow.to]);
        let Some(left) = source.used.checked_sub(length) else { return false };
        let Some(taken) = target.used.checked_add(length).filter(|taken| *taken <= target.capacity) else {
            return false;
        };
        let share = |used: u64, group: &Group| used as f64 / group.capacity as f64;
        let before = share(source.used, source) - share(target.used, target);
        let after = share(left, source) - share(taken, target);
        before > 0.0 && after.abs() < before
    }

    /// The block is on no fewer racks afterwards.
    fn keeps_racks(&self, holders: &[usize], from: usize, to: usize) -> bool {
        let count = |servers: &mut dyn Iterator<Item = usize>| {
            let mut racks: Vec<&Arc<str>> = servers.map(|server| &self.servers[server].rack).collect();
            racks.sort_unstable();
            racks.dedup();
            racks.len()
        };
        let others = holders.iter().copied().filter(|holder| *holder != from);
        count(&mut others.chain([to])) >= count(&mut holders.iter().copied())
    }

    /// The holder that sends the replica: one on the rack where it goes, and of these the one that sends the fewest others.
    fn sender(&self, holders: &[usize], to: usize) -> usize {
        let is_far = |server: usize| self.servers[server].rack != self.servers[to].rack;
        let of_all = holders.iter().copied();
        of_all.min_by_key(|server| (is_far(*server), self.sends[*server])).expect("the block has a holder")
    }
}

fn groups_of(servers: &[Server], limits: &Limits) -> Vec<Group> {
    let mut sums: BTreeMap<(StorageType, usize), (u64, u64)> = BTreeMap::new();
    for (at, server) in servers.iter().enumerate().filter(|(_, server)| server.takes_part) {
        for space in &server.spaces {
            let (capacity, remaining) = sums.entry((space.storage_type, at)).or_default();
            *capacity = capacity.saturating_add(space.capacity);
            *remaining = remaining.saturating_add(space.remaining.min(space.capacity));
        }
    }
    sums.retain(|_, (capacity, _)| *capacity > 0);
    let mut totals: BTreeMap<StorageType, (f64, f64)> = BTreeMap::new();
    for ((storage_type, _), (capacity, remaining)) in &sums {
        let (of_capacity, of_used) = totals.entry(*storage_type).or_default();
        *of_capacity += *capacity as f64;
        *of_used += (capacity - remaining) as f64;
    }
    let group = |((storage_type, server), (capacity, remaining)): ((StorageType, usize), (u64, u64))| {
        let (of_capacity, of_used) = totals[&storage_type];
        let mean_percent = 100.0 * of_used / of_capacity;
        let used = capacity - remaining;
        let mut group = Group { server, storage_type, capacity, used, mean_percent, budget: 0 };
        let distance = group.from_mean_percent();
        let wanted = bytes_of(distance.abs(), capacity).min(limits.group_bytes_max);
        group.budget = if distance < 0.0 { wanted.min(remaining) } else { wanted };
        group
    };
    sums.into_iter().map(group).collect()
}

fn bytes_of(percent: f64, capacity: u64) -> u64 {
    (percent * capacity as f64 / 100.0) as u64
}

#[cfg(test)]
mod tests;
