//! Reads the configuration again, and changes the settings that can be changed while the server runs.

use crate::{config::DataConfig, reconfiguration::Change, slowness::SlownessConfig, state::State};
use blockstore::VolumeConfig;
use std::{sync::Arc, time::Duration};

pub const DATA_DIRS: &str = "dfs.datanode.data.dir";
const MOVE_RATE: &str = "dfs.datanode.balance.bandwidthPerSec";
const MOVE_COUNT: &str = "dfs.datanode.balance.max.concurrent.moves";

const PEER_STATS: &str = "dfs.datanode.peer.stats.enabled";
const PEER_PACKETS: &str = "dfs.datanode.peer.metrics.min.outlier.detection.samples";
const PEER_COUNT: &str = "dfs.datanode.min.outlier.detection.nodes";
const PEER_THRESHOLD: &str = "dfs.datanode.slowpeer.low.threshold.ms";
const DISK_PERCENT: &str = "dfs.datanode.fileio.profiling.sampling.percentage";
const DISK_COUNT: &str = "dfs.datanode.min.outlier.detection.disks";
const DISK_THRESHOLD: &str = "dfs.datanode.slowdisk.low.threshold.ms";
const REPORT_INTERVAL: &str = "dfs.datanode.outliers.report.interval";

/// The properties that can be changed, sorted.
pub const PROPERTIES: [&str; 11] = [
    MOVE_RATE,
    MOVE_COUNT,
    DATA_DIRS,
    DISK_PERCENT,
    DISK_COUNT,
    PEER_COUNT,
    REPORT_INTERVAL,
    PEER_PACKETS,
    PEER_STATS,
    DISK_THRESHOLD,
    PEER_THRESHOLD,
];

/// Longer than a transfer connection may be idle, so that those who read from a removed disk have gone.
const PATIENCE_BEYOND_TRANSFERS: Duration = Duration::from_secs(10);

/// Reads the configuration and begins to change what differs.
///
/// # Errors
/// Another task runs, or the configuration cannot be read; the text says so.
pub async fn start(state: &Arc<State>) -> Result<(), String> {
    let reconfiguration = &state.reconfiguration;
    reconfiguration.begin()?;
    let reader = state.clone();
    let read = state.apart(move |_| reader.reconfiguration.read());
    match read.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(wanted) => {
            reconfiguration.started(state.env.clock.timestamp().ms);
            tokio::spawn(run(state.clone(), wanted));
            Ok(())
        }
        Err(error) => {
            reconfiguration.give_up();
            Err(error)
        }
    }
}

async fn run(state: Arc<State>, wanted: DataConfig) {
    let mut changes = Vec::new();
    change_moves(&state, &wanted, &mut changes);
    change_slowness(&state, &wanted.slowness, &mut changes);
    change_volumes(&state, &wanted.store.volumes, &mut changes).await;
    tell_others(&state, &wanted);
    for Change { property, old, new, error } in &changes {
        match error {
            None => tracing::info!(property, old, new, "changed"),
            Some(error) => tracing::error!(property, old, new, error, "not changed as ordered"),
        }
    }
    state.reconfiguration.ended(changes, state.env.clock.timestamp().ms);
}

fn change_moves(state: &State, wanted: &DataConfig, changes: &mut Vec<Change>) {
    let mut current = state.reconfiguration.current.lock();
    let mut note = |property, old: String, new: String| {
        changes.push(Change { property, old, new, error: None });
    };
    let (old, new) = (current.move_bytes_per_second, wanted.move_bytes_per_second);
    if old != new {
        state.moves.set_rate(new);
        current.move_bytes_per_second = new;
        note(MOVE_RATE, old.to_string(), new.to_string());
    }
    let (old, new) = (current.move_count_max, wanted.move_count_max);
    if old != new {
        state.moves.set_count_max(new);
        current.move_count_max = new;
        note(MOVE_COUNT, old.to_string(), new.to_string());
    }
}

/// Takes over the settings for slow peers and disks. If one of them changes, all earlier measurements are forgotten.
fn change_slowness(state: &State, wanted: &SlownessConfig, changes: &mut Vec<Change>) {
    let mut current = state.reconfiguration.current.lock();
    let wanted = SlownessConfig { memory_ms: current.slowness.memory_ms, ..wanted.clone() };
    let old = std::mem::replace(&mut current.slowness, wanted);
    let new = &current.slowness;
    if old == *new {
        return;
    }
    state.slowness.set_config(new.clone());
    let values = |it: &SlownessConfig| {
        [
            (PEER_STATS, it.measures_peers.to_string()),
            (PEER_PACKETS, it.peer_packets_min.to_string()),
            (PEER_COUNT, it.peer_count_min.to_string()),
            (PEER_THRESHOLD, it.peer_threshold_ms.to_string()),
            (DISK_PERCENT, it.disk_percent.to_string()),
            (DISK_COUNT, it.disk_count_min.to_string()),
            (DISK_THRESHOLD, it.disk_threshold_ms.to_string()),
            (REPORT_INTERVAL, it.report_interval_ms.to_string()),
        ]
    };
    for ((property, old), (_, new)) in values(&old).into_iter().zip(values(new)) {
        if old != new {
            changes.push(Change { property, old, new, error: None });
        }
    }
}

async fn change_volumes(state: &Arc<State>, wanted: &[VolumeConfig], changes: &mut Vec<Change>) {
    let old = state.volumes.living_volumes();
    if sorted(&old) == sorted(wanted) && !state.volumes.has_unfinished_removal() {
        return;
    }
    let directories = wanted.to_vec();
    let patience = Duration::from_millis(state.config.transfer_timeout_ms) + PATIENCE_BEYOND_TRANSFERS;
    let swapped = state.apart(move |volumes| volumes.swap_volumes(&directories, patience)).await;
    let error = match swapped {
        Err(error) => Some(error.to_string()),
        Ok(Err(error)) => Some(error.to_string()),
        Ok(Ok(swap)) => {
            state.reconfiguration.current.lock().store.volumes = swap.effective;
            let failures: Vec<_> = swap.failures.iter().map(ToString::to_string).collect();
            (!failures.is_empty()).then(|| failures.join("\n"))
        }
    };
    let followed = state.scanners.get().map_or(Ok(()), |scanners| scanners.follow(&state.volumes));
    let error = match followed {
        Ok(()) => error,
        Err(failed) => {
            let failed = format!("The scanners of a new directory could not be started: {failed}");
            Some(error.into_iter().chain([failed]).collect::<Vec<_>>().join("\n"))
        }
    };
    // So the metadata servers know the new storages' replicas. Those of removed ones were told one by one.
    state.pools().for_each(|pool| pool.reporter.request_full_report());
    changes.push(Change { property: DATA_DIRS, old: listed(&old), new: listed(wanted), error });
}

/// Other settings wait for the next start. People who have changed one want to know.
fn tell_others(state: &State, wanted: &DataConfig) {
    let mut current = state.reconfiguration.current.lock().clone();
    let mut wanted = wanted.clone();
    for config in [&mut current, &mut wanted] {
        config.store.volumes.clear();
        (config.move_bytes_per_second, config.move_count_max) = (0, 0);
        config.slowness =
            SlownessConfig { memory_ms: config.slowness.memory_ms, ..SlownessConfig::default() };
    }
    if current != wanted {
        tracing::warn!(
            changeable = PROPERTIES.join(", "),
            "the configuration has other changes, which count from the next start on"
        );
    }
}

fn sorted(volumes: &[VolumeConfig]) -> Vec<String> {
    let mut names: Vec<_> = volumes.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    names
}

/// The directories as they stand in a configuration.
fn listed(volumes: &[VolumeConfig]) -> String {
    volumes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
