//! The rack of each host.

use crate::server::DEFAULT_RACK;
use std::{collections::BTreeMap, sync::Arc};

pub struct Racks {
    table: BTreeMap<String, Arc<str>>,
    default: Arc<str>,
}

impl Racks {
    pub fn new(table: &BTreeMap<String, String>) -> Self {
        let table = table.iter().map(|(host, rack)| (host.clone(), Arc::from(normal(rack)))).collect();
        Self { table, default: DEFAULT_RACK.into() }
    }

    /// The rack of the first of these names that the table has.
    pub fn of(&self, names: &[&str]) -> Arc<str> {
        names.iter().find_map(|name| self.table.get(*name)).unwrap_or(&self.default).clone()
    }
}

/// A network location begins with one slash and does not end with one.
fn normal(rack: &str) -> String {
    format!("/{}", rack.trim_matches('/'))
}
