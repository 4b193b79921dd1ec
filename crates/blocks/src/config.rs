//! Numbers that an operator may set, with the values HDFS gives them.

use crate::broken::Rules;
use std::collections::BTreeMap;

/// The settings of a [`crate::BlockMap`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Replicas that must be reported before a block counts as written (`dfs.namenode.replication.min`).
    pub min_replication: u16,
    /// Replicas that must be in service of each block of a server before it may be away for maintenance
    /// (`dfs.namenode.maintenance.replication.min`).
    pub maintenance_replication: u16,
    /// The replication of new files that ask for none (`dfs.replication`). No more replicas in service are waited for when a
    /// server is decommissioned.
    pub default_replication: u16,
    /// How often data servers say that they live (`dfs.heartbeat.interval`).
    pub heartbeat_interval_ms: u64,
    /// How often HDFS looks for dead servers (`dfs.namenode.heartbeat.recheck-interval`); it enters the
    /// time after which one counts as dead, [`Config::dead_after_ms`].
    pub recheck_interval_ms: u64,
    /// Silent for so long, a server is read from last (`dfs.namenode.stale.datanode.interval`).
    pub stale_interval_ms: u64,
    /// Copies that one server may be told to send at a time (`dfs.namenode.replication.max-streams`).
    pub max_transfers_per_server: usize,
    /// Blocks to start copying per live server and tick
    /// (`dfs.namenode.replication.work.multiplier.per.iteration`).
    pub transfers_per_live_server: usize,
    /// A copy that was ordered and not reported is ordered anew after this
    /// (`dfs.namenode.reconstruction.pending.timeout-sec`).
    pub pending_timeout_ms: u64,
    /// Deletions in one answer to a heartbeat (`dfs.block.invalidate.limit`).
    pub invalidate_limit: usize,
    /// Skip servers with more than [`Config::load_factor`] times the mean number of open connections
    /// (`dfs.namenode.redundancy.considerLoad`).
    pub consider_load: bool,
    /// `dfs.namenode.redundancy.considerLoad.factor`.
    pub load_factor: f64,
    /// How often data servers say which others, and which of their disks, are slow (`dfs.datanode.outliers.report.interval`).
    pub slow_report_interval_ms: u64,
    /// Slow servers get no new replicas while others will do
    /// (`dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled`).
    pub exclude_slow: bool,
    /// Replicas on slow servers are read last (`dfs.namenode.avoid.read.slow.datanode`).
    pub read_slow_last: bool,
    /// Servers that may count as slow for that at a time (`dfs.namenode.max.slowpeer.collect.nodes`).
    pub slow_servers_max: usize,
    /// Full reports allowed at a time (`dfs.namenode.max.full.block.report.leases`).
    pub max_report_leases: usize,
    /// `dfs.namenode.full.block.report.lease.length.ms`.
    pub report_lease_ms: u64,
    /// Rack of a host name or address (`net.topology.table.file.name`); others are on
    /// [`crate::server::DEFAULT_RACK`].
    pub racks: BTreeMap<String, String>,
    /// A server that takes over from another one orders no copies for so many milliseconds. Data servers that are
    /// silent for the moment of the switch, and replicas that were just being reported, are so not taken for lost.
    pub takeover_grace_ms: u64,
    /// Servers that may be known at once, dead ones included: a bound against a flood of registrations.
    pub max_servers: usize,
    /// Reports about blocks that the namespace has not told of yet, kept until it does.
    pub max_postponed: usize,
    /// The share of a data server's replicas that may be deleted in a day because the namespace does not know their blocks.
    /// Deletions beyond that share are held back until an operator allows them.
    pub unknown_share: f64,
    /// The number of unknown replicas that may be deleted, whatever their share is.
    pub unknown_min: u64,
    /// Replicas whose deletion is held back are remembered one by one up to this number, and only counted beyond.
    pub max_held: usize,
    pub safe_mode: SafeModeConfig,
    /// All of them are kept, but in tests.
    pub rules: Rules,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            min_replication: 1,
            maintenance_replication: 1,
            default_replication: 3,
            heartbeat_interval_ms: 3_000,
            recheck_interval_ms: 300_000,
            stale_interval_ms: 30_000,
            max_transfers_per_server: 2,
            transfers_per_live_server: 2,
            pending_timeout_ms: 300_000,
            invalidate_limit: 1_000,
            consider_load: true,
            load_factor: 2.0,
            slow_report_interval_ms: 1_800_000,
            exclude_slow: false,
            read_slow_last: false,
            slow_servers_max: 5,
            max_report_leases: 6,
            report_lease_ms: 300_000,
            racks: BTreeMap::new(),
            takeover_grace_ms: 30_000,
            max_servers: 60_000,
            max_postponed: 1_000_000,
            unknown_share: 0.1,
            unknown_min: 100,
            max_held: 1_000_000,
            safe_mode: SafeModeConfig::default(),
            rules: Rules::default(),
        }
    }
}

impl Config {
    /// Silence after which a data server counts as dead: HDFS's rule of two rechecks and ten heartbeats.
    pub fn dead_after_ms(&self) -> u64 {
        2 * self.recheck_interval_ms + 10 * self.heartbeat_interval_ms
    }
}

/// When a starting server may begin to change things.
#[derive(Clone, Copy, Debug)]
pub struct SafeModeConfig {
    /// Share of blocks that must have the minimal number of replicas (`dfs.namenode.safemode.threshold-pct`).
    pub threshold: f32,
    /// `dfs.namenode.safemode.min.datanodes`.
    pub min_servers: usize,
    /// How long to stay on after the threshold is reached (`dfs.namenode.safemode.extension`).
    pub extension_ms: u64,
}

impl Default for SafeModeConfig {
    fn default() -> Self {
        Self { threshold: 0.999, min_servers: 0, extension_ms: 30_000 }
    }
}
