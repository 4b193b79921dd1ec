//! `/health` and `/metrics` of a metadata server: numbers looked up when they are asked for.

use crate::core::Core;
use ::blocks::ServerFilter;
use std::{io, net::SocketAddr, sync::Arc};
use web::{
    Health, Web,
    prometheus_client::{
        collector::Collector,
        encoding::{DescriptorEncoder, EncodeMetric},
        metrics::{counter::ConstCounter, gauge::ConstGauge},
        registry::Registry,
    },
};

pub async fn serve(core: &Arc<Core>, address: SocketAddr) -> io::Result<Web> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Numbers { core: core.clone() }));
    let asked = core.clone();
    Web::bind(address, Arc::new(registry), Arc::new(move || health(&asked))).await
}

fn health(core: &Core) -> Health {
    let (safe_mode, live) = {
        let blocks = core.blocks.lock();
        (blocks.in_safe_mode(), blocks.servers(ServerFilter::Live).len())
    };
    let failure = core.commit.failure();
    let state = match (&failure, safe_mode) {
        (Some(_), _) => "failed",
        (None, true) => "safe mode",
        (None, false) => "active",
    };
    let mut details = std::collections::BTreeMap::from([
        ("role".to_owned(), "metadata".to_owned()),
        ("cluster".to_owned(), core.cluster.cluster_id.clone()),
        ("epoch".to_owned(), core.replica.epoch().to_string()),
        ("committed_sn".to_owned(), core.commit.committed().to_string()),
        ("live_data_servers".to_owned(), live.to_string()),
    ]);
    if let Some(reason) = &failure {
        details.insert("reason".to_owned(), reason.clone());
    }
    Health { ok: failure.is_none(), state: state.to_owned(), details }
}

struct Numbers {
    core: Arc<Core>,
}

impl std::fmt::Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Numbers")
    }
}

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let (counts, memory) = {
            let tree = self.core.tree();
            (tree.namespace.counts(), tree.namespace.memory())
        };
        let (stats, safe_mode, block_map_bytes) = {
            let blocks = self.core.blocks.lock();
            (blocks.stats(), blocks.in_safe_mode(), blocks.bytes_allocated())
        };
        let namespace_bytes = memory.inodes
            + memory.names
            + memory.children
            + memory.blocks
            + memory.index
            + memory.attributes
            + memory.leases;
        let gauges: [(&str, &str, u64); 20] = [
            ("clover_files", "Files in the namespace", counts.files),
            ("clover_directories", "Directories in the namespace", counts.directories),
            ("clover_blocks", "Blocks in the namespace", counts.blocks),
            ("clover_files_under_construction", "Files open for writing", counts.files_under_construction),
            (
                "clover_retry_cache_entries",
                "Calls remembered for clients that repeat them",
                counts.retry_entries,
            ),
            ("clover_namespace_bytes", "Memory of the namespace", namespace_bytes as u64),
            ("clover_retry_cache_bytes", "Memory of the retry cache", memory.retry_cache as u64),
            ("clover_block_map_bytes", "Memory of the block map", block_map_bytes as u64),
            ("clover_safe_mode", "1 while nothing may be changed", safe_mode.into()),
            ("clover_epoch", "Epoch of the active", self.core.replica.epoch().0),
            ("clover_data_servers_live", "Data servers that answer", stats.live_servers),
            ("clover_data_servers_dead", "Data servers that do not", stats.dead_servers),
            ("clover_data_servers_stale", "Data servers that are silent for a while", stats.stale_servers),
            ("clover_capacity_bytes", "Capacity of all data servers", stats.capacity),
            ("clover_used_bytes", "Bytes used by blocks", stats.dfs_used),
            ("clover_remaining_bytes", "Bytes free for blocks", stats.remaining),
            ("clover_blocks_under_replicated", "Blocks with too few replicas", stats.under_replicated),
            ("clover_blocks_corrupt", "Blocks whose replicas are all damaged", stats.corrupt),
            ("clover_blocks_missing", "Blocks without a replica", stats.missing),
            ("clover_transfers_pending", "Copies under way between data servers", stats.pending_transfers),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value as i64);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let committed = ConstCounter::new(self.core.commit.committed().0);
        committed.encode(encoder.encode_descriptor(
            "clover_committed_edits",
            "Entries of the log that have committed",
            None,
            committed.metric_type(),
        )?)
    }
}
