//! The configuration of a Prometheus.

use crate::{admin::servers::Servers, status::ask};
use anyhow::bail;
use std::collections::BTreeMap;

/// The HTTP addresses of a cluster.
pub struct Targets {
    /// Of metadata servers, by their groups.
    pub meta: BTreeMap<u32, Vec<String>>,
    pub data: Vec<String>,
}

impl Targets {
    /// Asks the cluster. Servers that do not answer are listed by what others know of them.
    ///
    /// # Errors
    /// No metadata server tells an HTTP address.
    pub async fn of(servers: &Servers) -> anyhow::Result<Self> {
        let facts = ask::everybody(servers).await;
        let mut targets = Self { meta: BTreeMap::new(), data: Vec::new() };
        for group in &facts.groups {
            let members = group.members.iter().filter_map(|member| member.http_address.clone());
            targets.meta.entry(group.number).or_default().extend(members);
            let data = group.data.iter().flat_map(|data| &data.servers);
            targets.data.extend(data.filter_map(|server| server.http_address.clone()));
        }
        targets.meta.retain(|_, addresses| !addresses.is_empty());
        targets.data.sort();
        targets.data.dedup();
        if targets.meta.is_empty() {
            let told = facts.unanswered.iter().map(|one| format!("{}: {}", one.address, one.reason));
            bail!(
                "no metadata server has told its HTTP address ({}); `--meta HOST:PORT` names one",
                told.collect::<Vec<_>>().join("; ")
            );
        }
        Ok(targets)
    }
}

pub fn text(targets: &Targets, rules: &str) -> String {
    let quoted = |addresses: &[String]| {
        // JSON's strings are YAML's.
        serde_json::to_string(addresses).expect("strings have a JSON form")
    };
    let mut text = super::heading("A Prometheus that reads all servers of a cluster");
    text += "global:\n  # How often the rules are looked at. Prometheus's own minute is longer than some of them wait.\n  \
             evaluation_interval: 5s\n";
    text += &format!("rule_files: [{}]\n", serde_json::json!(rules));
    text += "scrape_configs:\n  - job_name: clover-meta\n    scrape_interval: 5s\n    static_configs:\n";
    for (group, addresses) in &targets.meta {
        text += &format!("      - targets: {}\n", quoted(addresses));
        if targets.meta.len() > 1 {
            text += &format!("        labels: {{metadata_group: \"{group}\"}}\n");
        }
    }
    if !targets.data.is_empty() {
        text += "  - job_name: clover-data\n    scrape_interval: 15s\n    static_configs:\n";
        text += &format!("      - targets: {}\n", quoted(&targets.data));
    }
    text
}
