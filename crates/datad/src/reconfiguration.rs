//! Settings that change while the server runs: where the configuration is read from, the task that runs, and its outcome.
//!
//! The words are those of Hadoop's `ReconfigurableBase`: one task at a time, whose outcome is asked for later. Properties have
//! Hadoop's names. A directory whose disk has failed counts as one that is not there: if the configuration still names it, it is
//! opened anew.

use crate::config::DataConfig;
use parking_lot::Mutex;
use proto::hdfs::{GetReconfigurationStatusConfigChangeProto, GetReconfigurationStatusResponseProto};
use std::sync::OnceLock;

/// Reads the configuration again. The error is a text that says why the configuration cannot be used.
pub type Reload = Box<dyn Fn() -> Result<DataConfig, String> + Send + Sync>;

/// One for a server.
pub struct Reconfiguration {
    reload: OnceLock<Reload>,
    /// The settings as the last task has left them.
    pub(crate) current: Mutex<DataConfig>,
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

/// The outcome for one property.
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

    /// Begins a task, unless another one runs.
    ///
    /// # Errors
    /// Another one runs; the text is Hadoop's.
    pub(crate) fn begin(&self) -> Result<(), String> {
        let mut task = self.task.lock();
        match std::mem::replace(&mut task.is_running, true) {
            true => Err("Another reconfiguration task is running.".into()),
            false => Ok(()),
        }
    }

    /// The configuration as it is now.
    ///
    /// # Errors
    /// There is none that could be read again, or it is wrong.
    pub(crate) fn read(&self) -> Result<DataConfig, String> {
        match self.reload.get() {
            Some(reload) => reload(),
            None => Err("This server has no configuration that could be read again.".into()),
        }
    }

    /// The task changes settings from now on.
    pub(crate) fn started(&self, now_ms: u64) {
        let mut task = self.task.lock();
        (task.started_ms, task.ended_ms) = (now_ms, 0);
        task.changes.clear();
    }

    /// The task could not be started: the one before is the last one.
    pub(crate) fn give_up(&self) {
        self.task.lock().is_running = false;
    }

    pub(crate) fn ended(&self, changes: Vec<Change>, now_ms: u64) {
        let mut task = self.task.lock();
        task.changes = changes;
        task.ended_ms = now_ms;
        task.is_running = false;
    }
}
