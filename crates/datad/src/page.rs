//! What the page at `/` tells of this server.

use crate::{metadata::progress::Progress, state::State};
use std::sync::Arc;
use tokio::sync::watch;
use web::data_node::{DataNode, DataNodeSource, Volume};

/// `progress`: how far this server has come with each metadata server of its configuration, in their order.
pub fn source(state: &Arc<State>, progress: &[watch::Receiver<Progress>]) -> DataNodeSource {
    let (state, progress) = (state.clone(), progress.to_vec());
    Arc::new(move || facts(&state, &progress))
}

fn facts(state: &State, progress: &[watch::Receiver<Progress>]) -> DataNode {
    let identity = &state.identity;
    let counts: Vec<_> = state.pools().map(|pool| pool.store.replica_counts()).collect();
    let volumes = state.volumes.storage_reports().into_iter().map(|report| Volume {
        directory: report.directory.display().to_string(),
        storage_type: report.storage_type.name(),
        replicas: counts.iter().filter_map(|count| count.get(report.volume.0 as usize)).sum(),
        capacity_bytes: report.capacity_bytes,
        used_bytes: report.used_bytes,
        free_bytes: report.remaining_bytes,
    });
    let standing = |progress: &Progress| match progress {
        Progress::Serving => "has this server and its report".to_owned(),
        Progress::Connecting => "does not have this server now; it is called again and again".to_owned(),
        Progress::Refused(reason) => format!("refuses this server: {reason}"),
    };
    let servers = state.config.metadata_servers.iter().zip(progress);
    DataNode {
        name: format!("{}:{}", identity.hostname, identity.transfer_addr.port()),
        uuid: identity.uuid.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_ms: state.uptime_ms(),
        volumes: volumes.collect(),
        failed: state.volumes.failed_volumes(),
        metadata_servers: servers
            .map(|(address, seen)| (address.clone(), standing(&seen.borrow())))
            .collect(),
    }
}
