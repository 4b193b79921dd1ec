//! The rack of each host, and the racks of several.

use crate::server::DEFAULT_RACK;
use std::{collections::BTreeMap, sync::Arc};

/// Hosts whose racks were learned last and are remembered. Most are clients, and any host may be one. As many again are
/// remembered of those before them.
const LEARNED_MAX: usize = 100_000;

pub struct Racks {
    table: BTreeMap<String, Arc<str>>,
    /// Racks that a script has told.
    learned: BTreeMap<String, Arc<str>>,
    /// Racks that it has told before, until so many new ones have come again.
    learned_before: BTreeMap<String, Arc<str>>,
    default: Arc<str>,
    /// The racks that servers have been on, with a number for each.
    numbers: BTreeMap<Arc<str>, u32>,
}

impl Racks {
    pub fn new(table: &BTreeMap<String, String>) -> Self {
        let table = table.iter().map(|(host, rack)| (host.clone(), Arc::from(normal(rack)))).collect();
        Self {
            table,
            learned: BTreeMap::new(),
            learned_before: BTreeMap::new(),
            default: DEFAULT_RACK.into(),
            numbers: BTreeMap::new(),
        }
    }

    /// A number for the rack, the same each time.
    pub fn number(&mut self, rack: &Arc<str>) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(rack.clone()).or_insert(next)
    }

    /// The rack of the first of these names that the table has; else of the first whose rack was learned.
    pub fn of(&self, names: &[&str]) -> Arc<str> {
        let in_table = names.iter().find_map(|name| self.table.get(*name));
        let known = in_table.or_else(|| names.iter().find_map(|name| self.learned(name)));
        known.unwrap_or(&self.default).clone()
    }

    fn learned(&self, host: &str) -> Option<&Arc<str>> {
        self.learned.get(host).or_else(|| self.learned_before.get(host))
    }

    /// The rack of a host was found out. The hosts that were learned last are never forgotten for the sake of this one: among
    /// them may be a data server that is about to register.
    pub fn learn(&mut self, host: &str, rack: &str) {
        if self.learned.len() >= LEARNED_MAX && !self.learned.contains_key(host) {
            self.learned_before = std::mem::take(&mut self.learned);
        }
        self.learned.insert(host.to_owned(), normal(rack).into());
    }
}

/// A network location begins with one slash and does not end with one.
fn normal(rack: &str) -> String {
    format!("/{}", rack.trim_matches('/'))
}

/// The racks on which some replicas of a block are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    #[default]
    Nowhere,
    /// All on the rack of this number.
    On(u32),
    Several,
}

impl Spread {
    /// A further replica is on this rack.
    pub fn add(&mut self, rack: u32) {
        *self = match *self {
            Self::Nowhere => Self::On(rack),
            Self::On(other) if other == rack => Self::On(rack),
            _ => Self::Several,
        };
    }
}
