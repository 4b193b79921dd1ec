//! The data servers of a cluster, with the network between them and the members.

use super::{
    data_server::{DataServer, Replica},
    needed::NeededBlocks,
    words::Event,
};
use crate::dice::Dice;
use base::{Block, BlockId};
use blocks::{Config, Rules, SafeModeConfig};
use std::collections::BTreeSet;

pub struct DataRoom {
    pub dice: Dice,
    pub config: Config,
    pub servers: Vec<DataServer>,
    pub paths: Paths,
    pub needed: NeededBlocks,
    /// The events of data servers that are stopped.
    pub inbox: Vec<Event>,
    pub counts: Counts,
}

/// What has happened at data servers, for those who ask whether a story shows anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub blocks_written: u64,
    pub deletions: u64,
    /// Deletions of replicas beyond the number wanted.
    pub excess: u64,
    /// Orders that were not carried out, because a newer active was known.
    pub refused: u64,
    pub copies: u64,
    pub reports: u64,
    /// Decommissioned servers that lost their disks.
    pub given_away: u64,
    /// Servers in maintenance that were switched off.
    pub rested: u64,
}

/// The network between data servers and members.
pub struct Paths {
    dice: Dice,
    /// Data servers and seats that cannot hear each other.
    pub cut: BTreeSet<(usize, usize)>,
    pub loss_percent: u64,
    pub late_percent: u64,
    pub late_ms_max: u64,
}

impl Paths {
    fn new(dice: Dice) -> Self {
        let mut paths = Self { dice, cut: BTreeSet::new(), loss_percent: 0, late_percent: 0, late_ms_max: 0 };
        paths.heal();
        paths
    }

    pub fn heal(&mut self) {
        self.cut.clear();
        (self.loss_percent, self.late_percent, self.late_ms_max) = (0, 2, 50);
    }

    /// When a message arrives that is sent now, if it does, in nanoseconds from now. What was sent before may be overtaken.
    pub fn send(&mut self, server: usize, seat: usize) -> Option<u64> {
        if self.cut.contains(&(server, seat)) || self.dice.chance(self.loss_percent) {
            return None;
        }
        let late_ms = if self.dice.chance(self.late_percent) { self.dice.below(self.late_ms_max) } else { 0 };
        Some((late_ms * 1_000 + 50 + self.dice.below(500)) * 1_000)
    }
}

/// Numbers in proportion to the group's: the stories take some seconds.
fn config(rules: Rules) -> Config {
    Config {
        heartbeat_interval_ms: 100,
        recheck_interval_ms: 300,
        stale_interval_ms: 400,
        pending_timeout_ms: 1_500,
        takeover_grace_ms: 300,
        report_lease_ms: 1_000,
        unknown_min: 6,
        safe_mode: SafeModeConfig { extension_ms: 100, ..SafeModeConfig::default() },
        rules,
        ..Config::default()
    }
}

impl DataRoom {
    pub fn new(mut dice: Dice, servers: usize, members: usize, rules: Rules) -> Self {
        Self {
            config: config(rules),
            servers: (0..servers).map(|_| DataServer::new(members, rules)).collect(),
            paths: Paths::new(dice.split()),
            needed: NeededBlocks::default(),
            inbox: Vec::new(),
            counts: Counts::default(),
            dice,
        }
    }

    /// The data servers that have a good replica of the block on their disks, whether they run or not.
    /// The replicas of a block in whatever state, with their data servers.
    pub fn replicas_of(&self, id: BlockId) -> Vec<(usize, Replica)> {
        let found = |(server, it): (usize, &DataServer)| Some((server, *it.replicas.get(&id)?));
        self.servers.iter().enumerate().filter_map(found).collect()
    }

    pub fn holders(&self, block: &Block) -> Vec<usize> {
        (0..self.servers.len()).filter(|server| self.servers[*server].has_good(block)).collect()
    }
}

pub fn uuid(server: usize) -> String {
    format!("data-{server}")
}

pub fn server_of(uuid: &str) -> usize {
    uuid.rsplit('-').next().and_then(|number| number.parse().ok()).expect("all are named so")
}

pub fn ip(server: usize) -> String {
    format!("10.0.0.{}", server + 1)
}

pub fn storage(server: usize) -> String {
    format!("DS-{server}")
}

/// The port at which each takes data.
pub const PORT: u16 = 9_866;
