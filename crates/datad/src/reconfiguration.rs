//! Settings that change while the server runs: the configuration is read again, and what can be changed is.
//!
//! The words are those of Hadoop's `ReconfigurableBase`: one task at a time, whose outcome is asked for later. Properties have
//! Hadoop's names. A directory whose disk has failed counts as one that is not there: if the configuration still names it, it is
//! opened anew.

use crate::{config::DataConfig, state::State};
use blockstore::VolumeConfig;
use parking_lot::Mutex;
use proto::hdfs::{GetReconfigurationStatusConfigChangeProto, GetReconfigurationStatusResponseProto};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

pub const DATA_DIRS: &str = "dfs.datanode.data.dir";
const MOVE_RATE: &str = "dfs.datanode.balance.bandwidthPerSec";
const MOVE_COUNT: &str = "dfs.datanode.balance.max.concurrent.moves";

/// The properties that can be changed, sorted.
pub const PROPERTIES: [&str; 3] = [MOVE_RATE, MOVE_COUNT, DATA_DIRS];

/// Longer than a transfer connection may be idle, so that those who read from a removed disk have gone.
const PATIENCE_BEYOND_TRANSFERS: Duration = Duration::from_secs(10);

/// Reads the configuration again. The error is what is wrong with it.
pub type Reload = Box<dyn Fn() -> Result<DataConfig, String> + Send + Sync>;

/// One for a server.
pub struct Reconfiguration {
    reload: OnceLock<Reload>,
    /// The settings as the last task has left them.
    current: Mutex<DataConfig>,
    task: Mutex<Task>,
}

/// The task that runs, or the last one.
#[derive(Default)]
struct Task {
    is_running: bool,
    /// Milliseconds since 1970; 0 if there was none.
    started_ms: u64,
    ended_ms: u64,
    changes: Vec<Change>,
}

/// What has become of one property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub property: &'static str,
    pub old: String,
    pub new: String,
    /// Why it was not changed, or not wholly.
    pub error: Option<String>,
}

impl Reconfiguration {
    pub(crate) fn new(config: &DataConfig) -> Self {
        Self { reload: OnceLock::new(), current: Mutex::new(config.clone()), task: Mutex::default() }
    }

    /// Says how the configuration is read again. Only the first word counts.
    pub fn set_reload(&self, reload: Reload) {
        let _ = self.reload.set(reload);
    }

    /// The outcome of the last task, as Hadoop's clients take it.
    pub fn status(&self) -> GetReconfigurationStatusResponseProto {
        let task = self.task.lock();
        let change = |change: &Change| GetReconfigurationStatusConfigChangeProto {
            name: change.property.into(),
            old_value: change.old.clone(),
            new_value: Some(change.new.clone()),
            error_message: change.error.clone(),
        };
        GetReconfigurationStatusResponseProto {
            start_time: task.started_ms as i64,
            end_time: (task.started_ms > 0 && !task.is_running).then_some(task.ended_ms as i64),
            // While the task runs nobody knows how it ends.
            changes: if task.is_running { Vec::new() } else { task.changes.iter().map(change).collect() },
        }
    }
}

/// Reads the configuration and begins to change what differs.
///
/// # Errors
/// Another task runs, or the configuration cannot be read; the text says so.
pub async fn start(state: &Arc<State>) -> Result<(), String> {
    let reconfiguration = &state.reconfiguration;
    {
        let mut task = reconfiguration.task.lock();
        if task.is_running {
            return Err("Another reconfiguration task is running.".into());
        }
        task.is_running = true;
    }
    let reader = state.clone();
    let read = state.apart(move |_| match reader.reconfiguration.reload.get() {
        Some(reload) => reload(),
        None => Err("This server has no configuration that could be read again.".into()),
    });
    match read.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(wanted) => {
            let now_ms = state.env.clock.timestamp().ms;
            let mut task = reconfiguration.task.lock();
            (task.started_ms, task.ended_ms) = (now_ms, 0);
            task.changes.clear();
            drop(task);
            tokio::spawn(run(state.clone(), wanted));
            Ok(())
        }
        Err(error) => {
            reconfiguration.task.lock().is_running = false;
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
    let mut task = state.reconfiguration.task.lock();
    task.changes = changes;
    task.ended_ms = state.env.clock.timestamp().ms;
    task.is_running = false;
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
