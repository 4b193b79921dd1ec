//! How long packets take to other data servers, and how long the disks take; and which of them are slow.
//!
//! A packet's time is that of handing it to the connection to the last server of a pipeline, as in HDFS: it is long when
//! that server, or the network to it, takes no more. The last server alone is blamed, because one before it may wait for
//! others. A disk's time is that of one packet's bytes to or from its file, or of making or ending a replica. Nothing is
//! measured before the configuration says so.

mod rolling;

use base::{Moment, StorageType};
use blocks::outliers::Rule;
use blockstore::{StorageReport, VolumeIndex};
use env::{Clock, Env};
use parking_lot::{Mutex, RwLock};
use proto::hdfs::{
    DatanodeIdProto,
    datanode::{SlowDiskReportProto, SlowPeerReportProto},
};
use rolling::{Measured, Rolling};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// Peers that are measured at a time. Clients name them, so their number is bounded.
const PEERS_MAX: usize = 4_096;
/// Reports of one kind in a heartbeat; no metadata server keeps more.
const REPORTS_MAX: usize = blocks::SLOW_REPORTS_PER_SERVER;

/// Settings: which packets and disk operations a data server measures, and when it calls a peer or a disk slow.
/// The keys in brackets are Hadoop's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlownessConfig {
    /// Whether packets to other data servers are measured (`dfs.datanode.peer.stats.enabled`).
    pub measures_peers: bool,
    /// A peer with no more packets is not judged (`dfs.datanode.peer.metrics.min.outlier.detection.samples`).
    pub peer_packets_min: u64,
    /// With fewer peers none is judged (`dfs.datanode.min.outlier.detection.nodes`).
    pub peer_count_min: usize,
    /// A peer whose packets take no longer is not slow (`dfs.datanode.slowpeer.low.threshold.ms`).
    pub peer_threshold_ms: u64,
    /// How many of a hundred disk operations are measured (`dfs.datanode.fileio.profiling.sampling.percentage`).
    pub disk_percent: u32,
    /// With fewer disks of a medium none is judged (`dfs.datanode.min.outlier.detection.disks`).
    pub disk_count_min: usize,
    /// A disk whose operations take no longer is not slow (`dfs.datanode.slowdisk.low.threshold.ms`).
    pub disk_threshold_ms: u64,
    /// How often the slow ones are reported (`dfs.datanode.outliers.report.interval`).
    pub report_interval_ms: u64,
    /// Measurements count for so long.
    pub memory_ms: u64,
}

impl Default for SlownessConfig {
    fn default() -> Self {
        Self {
            measures_peers: false,
            peer_packets_min: 1_000,
            peer_count_min: 10,
            peer_threshold_ms: 5,
            disk_percent: 0,
            disk_count_min: 5,
            disk_threshold_ms: 20,
            report_interval_ms: 30 * 60 * 1_000,
            memory_ms: 3 * 60 * 60 * 1_000,
        }
    }
}

/// The operations on disks that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskOp {
    /// A replica is made, opened or ended.
    Metadata,
    Read,
    Write,
}

/// One for a server.
pub struct Slowness {
    config: RwLock<SlownessConfig>,
    /// By the address under which they are reported.
    peers: Mutex<BTreeMap<Arc<str>, Arc<PeerTimes>>>,
    disks: Mutex<BTreeMap<(VolumeIndex, DiskOp), Rolling>>,
    /// A copy of the configuration's, which each operation on a disk looks at.
    disk_percent: AtomicU32,
    operations: AtomicU32,
}

/// The times of packets to one peer.
#[derive(Debug)]
pub struct PeerTimes(Mutex<Rolling>);

impl PeerTimes {
    /// A packet was handed over between `begun` and now.
    pub fn note(&self, begun: Moment, clock: &dyn Clock) {
        let now = clock.moment();
        self.0.lock().add(now.ns.saturating_sub(begun.ns), 1, now);
    }
}

/// An operation on a disk that is under way; it is empty where that one is not measured.
#[must_use]
pub struct Timer {
    begun: Option<Moment>,
}

impl Slowness {
    pub fn new(config: SlownessConfig) -> Self {
        Self {
            disk_percent: AtomicU32::new(config.disk_percent),
            config: RwLock::new(config),
            peers: Mutex::default(),
            disks: Mutex::default(),
            operations: AtomicU32::new(0),
        }
    }

    /// Measures by new settings from now on, and forgets all earlier measurements.
    pub fn set_config(&self, config: SlownessConfig) {
        self.disk_percent.store(config.disk_percent, Ordering::Relaxed);
        *self.config.write() = config;
        self.peers.lock().clear();
        self.disks.lock().clear();
    }

    pub fn report_interval_ms(&self) -> u64 {
        self.config.read().report_interval_ms
    }

    /// Where the times of packets to a peer are noted; `None` if they are not measured.
    pub fn peer(&self, id: &DatanodeIdProto, now: Moment) -> Option<Arc<PeerTimes>> {
        let memory_ms = {
            let config = self.config.read();
            config.measures_peers.then_some(config.memory_ms)?
        };
        let name = name_of(id);
        let mut peers = self.peers.lock();
        if let Some(known) = peers.get(&*name) {
            return Some(known.clone());
        }
        if peers.len() >= PEERS_MAX {
            peers.retain(|_, times| Arc::strong_count(times) > 1 || times.0.lock().measured(now).count > 0);
            if peers.len() >= PEERS_MAX {
                return None;
            }
        }
        let times = Arc::new(PeerTimes(Mutex::new(Rolling::new(memory_ms))));
        peers.insert(name.into(), times.clone());
        Some(times)
    }

    /// An operation on some disk begins.
    pub fn begin(&self, env: &Env) -> Timer {
        let percent = self.disk_percent.load(Ordering::Relaxed);
        let is_sampled = percent > 0
            && self.operations.fetch_add(1, Ordering::Relaxed).wrapping_mul(percent) % 100 < percent;
        Timer { begun: is_sampled.then(|| env.clock.moment()) }
    }

    /// The operation has ended, and was that of so many packets on this volume.
    pub fn end(&self, timer: &Timer, env: &Env, (volume, op): (VolumeIndex, DiskOp), packets: u64) {
        let Some(begun) = timer.begun.filter(|_| packets > 0) else { return };
        let now = env.clock.moment();
        let memory_ms = self.config.read().memory_ms;
        let mut disks = self.disks.lock();
        let times = disks.entry((volume, op)).or_insert_with(|| Rolling::new(memory_ms));
        times.add(now.ns.saturating_sub(begun.ns), packets, now);
    }

    /// The mean time of a packet to each peer, in milliseconds; `None` if they are not measured.
    pub fn peer_means(&self, now: Moment) -> Option<BTreeMap<Arc<str>, f64>> {
        if !self.config.read().measures_peers {
            return None;
        }
        let peers: Vec<_> =
            self.peers.lock().iter().map(|(name, times)| (name.clone(), times.clone())).collect();
        let means = peers.into_iter().filter_map(|(name, times)| {
            let Measured { count, mean_ms } = times.0.lock().measured(now);
            (count > 0).then_some((name, mean_ms))
        });
        Some(means.collect())
    }

    /// Whether operations on disks are measured.
    pub fn measures_disks(&self) -> bool {
        self.config.read().disk_percent > 0
    }

    /// The peers that are slow now, the slowest first.
    pub fn slow_peers(&self, now: Moment) -> Vec<SlowPeerReportProto> {
        let config = self.config.read().clone();
        if !config.measures_peers {
            return Vec::new();
        }
        let rule = rule(config.peer_count_min, config.peer_threshold_ms);
        let peers: Vec<_> =
            self.peers.lock().iter().map(|(name, times)| (name.clone(), times.clone())).collect();
        let judged = peers.into_iter().filter_map(|(name, times)| {
            let Measured { count, mean_ms } = times.0.lock().measured(now);
            (count > config.peer_packets_min).then_some((name, mean_ms))
        });
        let mut slow: Vec<_> = rule.outliers(&judged.collect()).into_iter().collect();
        slow.sort_by(|(_, one), (_, other)| other.latency_ms.total_cmp(&one.latency_ms));
        let told = slow.into_iter().take(REPORTS_MAX).map(|(name, outlier)| SlowPeerReportProto {
            data_node_id: Some(name.to_string()),
            aggregate_latency: Some(outlier.latency_ms),
            median: Some(outlier.median_ms),
            mad: Some(outlier.deviation_ms),
            upper_limit_latency: Some(outlier.limit_ms),
        });
        told.collect()
    }

    /// Which of these volumes are slow now. Those of one medium are compared with each other.
    pub fn slow_disks(&self, volumes: &[StorageReport], now: Moment) -> Vec<SlowDiskReportProto> {
        let config = self.config.read().clone();
        if config.disk_percent == 0 {
            return Vec::new();
        }
        let rule = rule(config.disk_count_min, config.disk_threshold_ms);
        let mut told: BTreeMap<VolumeIndex, SlowDiskReportProto> = BTreeMap::new();
        for op in [DiskOp::Metadata, DiskOp::Read, DiskOp::Write] {
            for means in self.means(op, volumes, now).into_values() {
                for (volume, outlier) in rule.outliers(&means) {
                    let report = told.entry(volume).or_default();
                    *match op {
                        DiskOp::Metadata => &mut report.mean_metadata_op_latency,
                        DiskOp::Read => &mut report.mean_read_io_latency,
                        DiskOp::Write => &mut report.mean_write_io_latency,
                    } = Some(outlier.latency_ms);
                }
            }
        }
        let path = |volume| {
            let of = volumes.iter().find(|report| report.volume == volume);
            of.map(|report| report.directory.display().to_string())
        };
        let told = told
            .into_iter()
            .map(|(volume, report)| SlowDiskReportProto { base_path: path(volume), ..report });
        told.take(REPORTS_MAX).collect()
    }

    /// All packets whose times count.
    #[cfg(test)]
    pub(crate) fn packets_measured(&self) -> u64 {
        let now = env::SystemClock.moment();
        self.peers.lock().values().map(|times| times.0.lock().measured(now).count).sum()
    }

    /// All operations of a kind whose times count.
    #[cfg(test)]
    pub(crate) fn operations_measured(&self, op: DiskOp) -> u64 {
        let now = env::SystemClock.moment();
        let mut disks = self.disks.lock();
        disks.iter_mut().filter(|((_, of), _)| *of == op).map(|(_, times)| times.measured(now).count).sum()
    }

    /// The mean of one operation on each volume where it was measured, in milliseconds.
    fn means(
        &self,
        op: DiskOp,
        volumes: &[StorageReport],
        now: Moment,
    ) -> BTreeMap<StorageType, BTreeMap<VolumeIndex, f64>> {
        let mut means: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        let mut disks = self.disks.lock();
        for volume in volumes {
            let Some(times) = disks.get_mut(&(volume.volume, op)) else { continue };
            let Measured { count, mean_ms } = times.measured(now);
            if count > 0 {
                means.entry(volume.storage_type).or_default().insert(volume.volume, mean_ms);
            }
        }
        means
    }
}

fn rule(count_min: usize, threshold_ms: u64) -> Rule {
    Rule { count_min, low_threshold_ms: threshold_ms as f64 }
}

/// The name under which Hadoop's data servers report each other: the address of the web pages.
fn name_of(id: &DatanodeIdProto) -> String {
    let port = id.info_secure_port.filter(|port| *port != 0).unwrap_or(id.info_port);
    format!("{}:{port}", id.ip_addr)
}

#[cfg(test)]
mod tests;
