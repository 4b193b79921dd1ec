//! Data servers and disks that were reported as slow.
//!
//! A data server measures how long packets take to the next server of a pipeline, and how long its disks take. With some
//! of its heartbeats it says which of them are much slower than the others. A report counts for three times the interval
//! at which servers report; nothing says that a server is well again but that no further report comes. Reports come from
//! servers that may lie: their number is bounded, and what they can bring about is ([`crate::avoided`]).

use crate::{
    map::BlockMap,
    outliers::Outlier,
    server::DataServer,
    slow_reports::{PER_SERVER_MAX, Reporter, SlowDisk, SlowPeer, keep},
};
use base::Moment;
use std::{collections::BTreeMap, sync::Arc};

/// With more reports of peers, a heartbeat that brings some is not the time to go through all of them: the next tick is.
const AT_ONCE_MAX: usize = 1_024;
/// A report counts for so many intervals: one or two may not come.
const INTERVALS: u64 = 3;

/// A data server that others have reported as slow.
#[derive(Clone, Debug)]
pub struct SlowServer {
    pub server: Arc<DataServer>,
    /// The number of servers that say so.
    pub reporters: usize,
    /// The report with the highest latency.
    pub worst: Outlier,
    /// It is kept out of new pipelines and read from last, if the configuration says so.
    pub is_avoided: bool,
}

/// Servers by a port.
type Ports = BTreeMap<u16, u32>;

/// The reports about one data server.
#[derive(Default)]
pub(crate) struct Votes {
    pub reporters: usize,
    pub worst: Outlier,
}

impl BlockMap {
    fn slow_validity_ms(&self) -> u64 {
        self.config.slow_report_interval_ms.saturating_mul(INTERVALS)
    }

    /// Takes a server's word about its peers and its disks. What makes no sense is passed over, and what is beyond the limits.
    pub(crate) fn take_slow_reports(
        &mut self,
        index: u32,
        peers: &[SlowPeer],
        disks: &[SlowDisk],
        now: Moment,
    ) {
        if peers.is_empty() && disks.is_empty() {
            return;
        }
        let server = self.servers.get(index);
        let reporter = Reporter { uuid: server.face.uuid().clone(), is_newcomer: !server.trial.has_passed() };
        for peer in peers.iter().take(PER_SERVER_MAX).filter(|peer| peer.is_sound()) {
            keep(&mut self.slow.peers, &reporter, &peer.address, peer.outlier, now);
        }
        for disk in disks.iter().take(PER_SERVER_MAX).filter(|disk| disk.is_sound()) {
            keep(&mut self.slow.disks, &reporter, &disk.path, disk.clone(), now);
        }
        if self.slow.peers.len() <= AT_ONCE_MAX {
            self.choose_avoided(now);
        }
    }

    /// Looks at the reports anew as time passes.
    pub(crate) fn look_at_slow(&mut self, now: Moment) {
        self.slow.expire(self.slow_validity_ms(), now);
        if !self.slow.peers.is_empty() || self.slow.is_any_avoided {
            self.choose_avoided(now);
        }
    }

    /// The reports about each server that are not too old. No server is asked about itself; where `proved`, no newcomer is
    /// asked.
    pub(crate) fn votes(&self, proved: bool, now: Moment) -> BTreeMap<u32, Votes> {
        let validity_ms = self.slow_validity_ms();
        let mut votes: BTreeMap<u32, Votes> = BTreeMap::new();
        // A server that is called by several of its addresses is still called slow by one.
        let mut said = std::collections::BTreeSet::new();
        let mut hosts = BTreeMap::new();
        for ((reporter, address), (outlier, at)) in &self.slow.peers {
            let Some(by) = self.servers.find(reporter) else { continue };
            let is_old = now.ms_since(*at) >= validity_ms;
            if is_old || (proved && !self.servers.get(by).trial.has_passed()) {
                continue;
            }
            let Some(about) = self.server_at(address, &mut hosts).filter(|about| *about != by) else {
                continue;
            };
            let votes = votes.entry(about).or_default();
            votes.reporters += usize::from(said.insert((by, about)));
            if outlier.latency_ms > votes.worst.latency_ms {
                votes.worst = *outlier;
            }
        }
        votes
    }

    /// The server with this address. Hadoop's data servers name each other by the port of their web pages. A host with one
    /// data server is enough. `hosts` keeps what was found of a host: many may speak from one, and be named many times.
    fn server_at<'a>(&self, address: &'a str, hosts: &mut BTreeMap<&'a str, Ports>) -> Option<u32> {
        let (host, port) = address.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let there = self.servers.on_host(host);
        let ports = hosts.entry(host).or_insert_with(|| self.ports_of(there));
        match (ports.get(&port), there) {
            (Some(found), _) | (None, [found]) => Some(*found),
            _ => None,
        }
    }

    /// The servers of one host by each of their ports.
    fn ports_of(&self, there: &[u32]) -> Ports {
        let mut ports = Ports::new();
        for index in there {
            let it = &self.servers.get(*index).face.registration;
            let own = [it.info_port, it.info_secure_port, it.transfer_port, it.ipc_port];
            for port in own.into_iter().filter(|port| *port > 0) {
                ports.entry(port).or_insert(*index);
            }
        }
        ports
    }

    /// The servers that others have reported as slow: that of which most say so first, and of these the slowest.
    pub fn slow_servers(&self, now: Moment) -> Vec<SlowServer> {
        let told = |(index, votes): (u32, Votes)| {
            let server = self.servers.get(index);
            let Votes { reporters, worst } = votes;
            SlowServer { server: server.face.clone(), reporters, worst, is_avoided: server.is_avoided }
        };
        let mut slow: Vec<_> = self.votes(false, now).into_iter().map(told).collect();
        slow.sort_by(|one, other| {
            other
                .reporters
                .cmp(&one.reporters)
                .then(other.worst.latency_ms.total_cmp(&one.worst.latency_ms))
                .then_with(|| one.server.uuid().cmp(other.server.uuid()))
        });
        slow
    }

    /// The disks that their servers have reported as slow, the slowest first.
    pub fn slow_disks(&self, now: Moment) -> Vec<(Arc<DataServer>, SlowDisk)> {
        let validity_ms = self.slow_validity_ms();
        let told = |((reporter, _), (disk, at)): (&(Arc<str>, String), &(SlowDisk, Moment))| {
            let index = self.servers.find(reporter).filter(|_| now.ms_since(*at) < validity_ms)?;
            Some((self.servers.get(index).face.clone(), disk.clone()))
        };
        let mut slow: Vec<_> = self.slow.disks.iter().filter_map(told).collect();
        slow.sort_by(|(_, one), (_, other)| other.worst_ms().total_cmp(&one.worst_ms()));
        slow
    }
}
