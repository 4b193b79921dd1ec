//! Reads the configuration again, and changes the settings that can be changed while the server runs.

use crate::{config::DataConfig, reconfiguration::Change, state::State};
use blockstore::VolumeConfig;
use std::{sync::Arc, time::Duration};

pub const DATA_DIRS: &str = "dfs.datanode.data.dir";
const MOVE_RATE: &str = "dfs.datanode.balance.bandwidthPerSec";
const MOVE_COUNT: &str = "dfs.datanode.balance.max.concurrent.moves";

/// The properties that can be changed, sorted.
pub const PROPERTIES: [&str; 3] = [MOVE_RATE, MOVE_COUNT, DATA_DIRS];

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
