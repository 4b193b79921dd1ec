//! Addresses that data servers take from each other.
//!
//! Two data servers that register with different uuids from the same address and port cannot both be reached there. As in
//! HDFS the newer registration replaces the older one, and when the older server speaks again it is told to register, and replaces the
//! newer one: for ever, each time with all its replicas. A server that was made anew replaces its predecessor once. So an address
//! is *contested* when a server comes back to it that was replaced there a short while ago. Only a person can mend that.

use base::Moment;
use std::{collections::BTreeMap, sync::Arc};

/// After so long without another replacement the address is taken to be settled.
const SETTLED_AFTER_MS: u64 = 600_000;
/// Addresses that are remembered; beyond it the one that has been quiet for longest is forgotten.
const ADDRESSES_MAX: usize = 256;
/// Uuids that are remembered of an address, and named.
const UUIDS_MAX: usize = 8;

/// An address, and the data servers that take it from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contest {
    /// The address, as `ip:port`.
    pub address: String,
    /// The data servers of that address, in the order in which they were first seen there.
    pub uuids: Vec<Arc<str>>,
}

#[derive(Default)]
pub struct Contested(BTreeMap<(Arc<str>, u16), Seen>);

struct Seen {
    uuids: Vec<Arc<str>>,
    last: Moment,
    /// How many of the uuids an operator was told of; 0: none came back so far.
    told: usize,
}

impl Seen {
    fn is_settled(&self, now: Moment) -> bool {
        now.ms_since(self.last) > SETTLED_AFTER_MS
    }
}

impl Contested {
    /// A server has replaced another one at its address. The contest, if it is one that has not been told of yet.
    pub fn replaced(
        &mut self,
        (ip, port): (&Arc<str>, u16),
        old: &Arc<str>,
        new: &Arc<str>,
        now: Moment,
    ) -> Option<Contest> {
        let address = (ip.clone(), port);
        if self.0.len() >= ADDRESSES_MAX && !self.0.contains_key(&address) {
            let quietest =
                self.0.iter().min_by_key(|(_, seen)| seen.last).map(|(address, _)| address.clone());
            quietest.map(|quietest| self.0.remove(&quietest));
        }
        let blank = || Seen { uuids: Vec::new(), last: now, told: 0 };
        let seen = self.0.entry(address).or_insert_with(blank);
        if seen.is_settled(now) {
            *seen = blank();
        }
        seen.last = now;
        let is_back = seen.uuids.contains(new);
        for uuid in [old, new] {
            if !seen.uuids.contains(uuid) && seen.uuids.len() < UUIDS_MAX {
                seen.uuids.push(uuid.clone());
            }
        }
        if !is_back || seen.told == seen.uuids.len() {
            return None;
        }
        seen.told = seen.uuids.len();
        Some(Contest { address: format!("{ip}:{port}"), uuids: seen.uuids.clone() })
    }

    /// Whether an operator was told of this one, so that each further turn is no news.
    pub fn is_known(&self, ip: &Arc<str>, port: u16) -> bool {
        self.0.get(&(ip.clone(), port)).is_some_and(|seen| seen.told > 0)
    }

    /// The contests that still go on, sorted by address.
    pub fn list(&self, now: Moment) -> Vec<Contest> {
        let is_told = |(_, seen): &(&(Arc<str>, u16), &Seen)| seen.told > 0 && !seen.is_settled(now);
        let told = self.0.iter().filter(is_told);
        told.map(|((ip, port), seen)| Contest { address: format!("{ip}:{port}"), uuids: seen.uuids.clone() })
            .collect()
    }
}
