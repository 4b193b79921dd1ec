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
    slow_reports::{PER_SERVER_MAX, Reporter, SlowDisk, SlowPeer, keep, reports_of},
};
use base::Moment;
use std::{collections::BTreeMap, sync::Arc};

/// With more reports of peers, a change does not lead to a look at all of them: the next tick does.
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

/// All reports about one address that are not too old.
#[derive(Clone, Debug)]
pub struct Suspicion {
    /// The address as the reporters name it.
    pub address: String,
    /// The servers that have made the reports, and what they have measured.
    pub reports: Vec<(Arc<DataServer>, Outlier)>,
}

/// Servers by a port.
type Ports = BTreeMap<u16, u32>;

/// The servers that report one data server as slow, and their report with the highest latency.
#[derive(Default)]
pub(crate) struct Votes {
    pub reporters: usize,
    pub worst: Outlier,
}

/// The reports about one data server: those of all servers, and those of servers that are no newcomers.
#[derive(Default)]
pub(crate) struct Reported {
    pub by_all: Votes,
    pub by_proved: Votes,
}

impl Votes {
    fn add(&mut self, is_first_of_reporter: bool, outlier: &Outlier) {
        self.reporters += usize::from(is_first_of_reporter);
        if outlier.latency_ms > self.worst.latency_ms {
            self.worst = *outlier;
        }
    }
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
        self.choose_avoided_at_once(now);
    }

    /// A server is no newcomer any more: its word about its peers counts from now on.
    pub(crate) fn count_slow_reports_of(&mut self, index: u32) {
        if reports_of(&self.slow.peers, self.servers.get(index).face.uuid()).next().is_some() {
            self.choose_avoided_at_once(self.latest);
        }
    }

    fn choose_avoided_at_once(&mut self, now: Moment) {
        if self.slow.peers.len() <= AT_ONCE_MAX {
            self.choose_avoided(now);
        }
    }

    /// Looks at the reports anew as time passes.
    pub(crate) fn look_at_slow(&mut self, now: Moment) {
        self.slow.expire(self.slow_validity_ms(), now);
        if !self.slow.peers.is_empty() || self.slow.server_count > 0 {
            self.choose_avoided(now);
        }
    }

    /// The reports about each server that are not too old. No server is asked about itself.
    pub(crate) fn reported_as_slow(&self, now: Moment) -> BTreeMap<u32, Reported> {
        let validity_ms = self.slow_validity_ms();
        let mut reported: BTreeMap<u32, Reported> = BTreeMap::new();
        // A server that is called by several of its addresses is still called slow by one.
        let mut said = std::collections::BTreeSet::new();
        let mut hosts = BTreeMap::new();
        for ((reporter, address), (outlier, at)) in &self.slow.peers {
            let Some(by) = self.servers.find(reporter) else { continue };
            if now.ms_since(*at) >= validity_ms {
                continue;
            }
            let Some(about) = self.server_at(address, &mut hosts).filter(|about| *about != by) else {
                continue;
            };
            let is_first = said.insert((by, about));
            let Reported { by_all, by_proved } = reported.entry(about).or_default();
            by_all.add(is_first, outlier);
            if self.servers.get(by).trial.has_passed() {
                by_proved.add(is_first, outlier);
            }
        }
        reported
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
        let told = |(index, reported): (u32, Reported)| {
            let server = self.servers.get(index);
            let Votes { reporters, worst } = reported.by_all;
            SlowServer { server: server.face.clone(), reporters, worst, is_avoided: server.is_avoided }
        };
        let mut slow: Vec<_> = self.reported_as_slow(now).into_iter().map(told).collect();
        slow.sort_by(|one, other| {
            other
                .reporters
                .cmp(&one.reporters)
                .then(other.worst.latency_ms.total_cmp(&one.worst.latency_ms))
                .then_with(|| one.server.uuid().cmp(other.server.uuid()))
        });
        slow
    }

    /// The reports of slow servers by the address that they name: first the one that most servers report. Unlike
    /// [`BlockMap::slow_servers`] it also has reports about addresses of no known server.
    pub fn suspicions(&self, now: Moment) -> Vec<Suspicion> {
        let validity_ms = self.slow_validity_ms();
        let mut reports: BTreeMap<&str, Vec<(Arc<DataServer>, Outlier)>> = BTreeMap::new();
        for ((reporter, address), (outlier, at)) in &self.slow.peers {
            if let Some(index) = self.servers.find(reporter)
                && now.ms_since(*at) < validity_ms
            {
                let by = self.servers.get(index).face.clone();
                reports.entry(address).or_default().push((by, *outlier));
            }
        }
        let suspicion = |(address, reports): (&str, _)| Suspicion { address: address.to_owned(), reports };
        let mut suspicions: Vec<_> = reports.into_iter().map(suspicion).collect();
        suspicions.sort_by_key(|suspicion| std::cmp::Reverse(suspicion.reports.len()));
        suspicions
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
