//! The newest reports of slow peers and slow disks from each data server, bounded in number.

use crate::outliers::Outlier;
use base::Moment;
use std::{collections::BTreeMap, sync::Arc};

/// Reports of one data server that are kept: of peers, and of its disks.
pub const PER_SERVER_MAX: usize = 256;
/// Reports of all data servers that are kept, of each kind.
const REPORTS_MAX: usize = 16_384;
/// With so many reports of a kind those of newcomers are not kept. Anybody can be a newcomer, and as many as they like.
const REPORTS_WITH_NEWCOMERS_MAX: usize = REPORTS_MAX / 2;
/// The longest address of a peer, and the longest path of a disk, in bytes.
const ADDRESS_BYTES_MAX: usize = 300;
const PATH_BYTES_MAX: usize = 1_024;

/// A data server's word that another one is slow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlowPeer {
    /// `ip:port` with any port of the slow server.
    pub address: String,
    pub outlier: Outlier,
}

/// A data server's word that one of its disks is slow. The latencies are milliseconds; `None` where it is not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlowDisk {
    /// The directory of the disk.
    pub path: String,
    pub metadata_ms: Option<f64>,
    pub read_ms: Option<f64>,
    pub write_ms: Option<f64>,
}

impl SlowPeer {
    pub(crate) fn is_sound(&self) -> bool {
        (1..=ADDRESS_BYTES_MAX).contains(&self.address.len()) && self.outlier.is_sound()
    }
}

impl SlowDisk {
    pub(crate) fn is_sound(&self) -> bool {
        let latencies = [self.metadata_ms, self.read_ms, self.write_ms];
        let sound = |latency: &f64| latency.is_finite() && *latency >= 0.0;
        // The path is shown to people.
        (1..=PATH_BYTES_MAX).contains(&self.path.len())
            && !self.path.chars().any(char::is_control)
            && latencies.iter().any(Option::is_some)
            && latencies.iter().flatten().all(sound)
    }

    /// The highest of its latencies.
    pub fn worst_ms(&self) -> f64 {
        [self.metadata_ms, self.read_ms, self.write_ms].into_iter().flatten().fold(0.0, f64::max)
    }
}

/// Reports by the uuid of the server that made them, and by what they are about.
pub(crate) type Kept<T> = BTreeMap<(Arc<str>, String), (T, Moment)>;

#[derive(Default)]
pub(crate) struct SlowReports {
    pub peers: Kept<Outlier>,
    pub disks: Kept<SlowDisk>,
    /// How many servers were reported as slow when the reports were last looked at.
    pub server_count: usize,
    /// See [`crate::avoided`].
    pub is_any_avoided: bool,
}

impl SlowReports {
    /// Disks that are told as slow.
    pub fn disk_count(&self) -> usize {
        self.disks.len()
    }

    /// Forgets reports that are too old.
    pub fn expire(&mut self, validity_ms: u64, now: Moment) {
        self.peers.retain(|_, (_, at)| now.ms_since(*at) < validity_ms);
        self.disks.retain(|_, (_, at)| now.ms_since(*at) < validity_ms);
    }
}

/// The server that reports.
pub(crate) struct Reporter {
    pub uuid: Arc<str>,
    pub is_newcomer: bool,
}

/// Keeps a report, in place of an earlier one of the same, if there is room for it.
pub(crate) fn keep<T>(kept: &mut Kept<T>, reporter: &Reporter, about: &str, report: T, now: Moment) {
    let key = (reporter.uuid.clone(), about.to_owned());
    let limit = if reporter.is_newcomer { REPORTS_WITH_NEWCOMERS_MAX } else { REPORTS_MAX };
    let has_room = || kept.len() < limit && reports_of(kept, &reporter.uuid).count() < PER_SERVER_MAX;
    if kept.contains_key(&key) || has_room() {
        kept.insert(key, (report, now));
    }
}

/// The reports that one server has made.
pub(crate) fn reports_of<'a, T>(kept: &'a Kept<T>, uuid: &'a Arc<str>) -> impl Iterator<Item = &'a T> {
    let from = kept.range((uuid.clone(), String::new())..);
    from.take_while(move |((by, _), _)| by == uuid).map(|(_, (report, _))| report)
}
