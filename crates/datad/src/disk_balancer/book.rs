//! The plan that runs, or the last one, and how far it has come.

use super::plan::Step;
use blockstore::VolumeIndex;
use parking_lot::Mutex;
use proto::hdfs::QueryPlanStatusResponseProto;
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Hadoop's defaults: `dfs.disk.balancer.max.disk.throughputInMBperSec`, `dfs.disk.balancer.max.disk.errors`,
/// `dfs.disk.balancer.block.tolerance.percent`.
pub(crate) const BANDWIDTH_PER_SECOND: u64 = 10;
const ERROR_COUNT_MAX: u64 = 5;
const TOLERANCE_PERCENT: u64 = 10;

/// One for a server.
#[derive(Default)]
pub struct DiskBalancer {
    current: Mutex<Current>,
}

/// The plan that runs, or the last one.
#[derive(Default)]
struct Current {
    outcome: Outcome,
    id: String,
    file: String,
    work: Vec<Arc<Work>>,
    /// Set to end the thread of this plan.
    stop: Arc<AtomicBool>,
}

/// Numbers of Hadoop's `DiskBalancerWorkStatus.Result`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Outcome {
    #[default]
    NoPlan = 0,
    UnderProgress = 1,
    Done = 2,
    Cancelled = 3,
}

/// One step of a plan, and how far it has come.
pub(crate) struct Work {
    pub step: Step,
    pub source: VolumeIndex,
    pub target: VolumeIndex,
    pub progress: Mutex<Progress>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    pub bytes: u64,
    pub blocks: u64,
    pub errors: u64,
    pub error: Option<String>,
    pub started_ms: u64,
    pub seconds: u64,
}

impl DiskBalancer {
    /// Begins a plan. The answer is set when its thread is to end.
    ///
    /// # Errors
    /// Another plan runs; the text is Hadoop's.
    pub(crate) fn begin(
        &self,
        id: &str,
        file: &str,
        work: Vec<Arc<Work>>,
    ) -> Result<Arc<AtomicBool>, String> {
        let mut current = self.current.lock();
        if current.outcome == Outcome::UnderProgress {
            return Err("Executing another plan".into());
        }
        let stop = Arc::<AtomicBool>::default();
        let (id, file) = (id.to_owned(), file.to_owned());
        *current = Current { outcome: Outcome::UnderProgress, id, file, work, stop: stop.clone() };
        Ok(stop)
    }

    /// The plan could not be begun after all.
    pub(crate) fn give_up(&self) {
        *self.current.lock() = Current::default();
    }

    /// Ends a plan. The replica that is just being copied stays where it was.
    ///
    /// # Errors
    /// There is no such plan.
    pub fn cancel(&self, id: &str) -> Result<(), String> {
        let current = self.current.lock();
        if current.id.is_empty() || current.id != id {
            return Err("No such plan.".into());
        }
        current.stop.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the plan that runs, if one does.
    pub fn stop(&self) {
        self.current.lock().stop.store(true, Ordering::Relaxed);
    }

    /// How far the plan has come, as Hadoop's clients take it.
    pub fn status(&self) -> QueryPlanStatusResponseProto {
        let current = self.current.lock();
        let entries: Vec<_> = current.work.iter().map(|work| work.to_json()).collect();
        QueryPlanStatusResponseProto {
            result: Some(current.outcome as u32),
            plan_id: Some(current.id.clone()),
            current_status: Some(serde_json::Value::from(entries).to_string()),
            plan_file: Some(current.file.clone()),
        }
    }

    /// The thread of the plan has ended.
    pub(crate) fn ended(&self, stop: &AtomicBool) {
        let mut current = self.current.lock();
        current.outcome = match stop.load(Ordering::Relaxed) {
            true => Outcome::Cancelled,
            false => Outcome::Done,
        };
        tracing::info!(plan = current.id, outcome = ?current.outcome, "the disk balancer has ended");
    }
}

impl Work {
    /// In percent.
    fn tolerance(&self) -> u64 {
        or(self.step.tolerance_percent, TOLERANCE_PERCENT).min(100)
    }

    /// In bytes.
    pub fn rate(&self) -> u64 {
        or(self.step.bandwidth_per_second, BANDWIDTH_PER_SECOND).saturating_mul(1 << 20)
    }

    pub fn error_count_max(&self) -> u64 {
        or(self.step.error_count_max, ERROR_COUNT_MAX)
    }

    /// A replica that is longer would move too much, even with the tolerance.
    pub fn wanted(&self) -> u64 {
        let left = self.step.bytes.saturating_sub(self.progress.lock().bytes);
        left.saturating_add(left / 100 * self.tolerance())
    }

    /// Whether what was moved is near enough to what was to be moved.
    pub fn is_enough(&self) -> bool {
        let bytes = self.progress.lock().bytes;
        bytes.saturating_add(bytes / 100 * self.tolerance()) > self.step.bytes
    }

    fn to_json(&self) -> serde_json::Value {
        let progress = self.progress.lock().clone();
        json!({
            "sourcePath": self.step.source_path,
            "destPath": self.step.target_path,
            "workItem": {
                "startTime": progress.started_ms,
                "secondsElapsed": progress.seconds,
                "bytesToCopy": self.step.bytes,
                "bytesCopied": progress.bytes,
                "errorCount": progress.errors,
                "errMsg": progress.error,
                "blocksCopied": progress.blocks,
                "maxDiskErrors": or(self.step.error_count_max, ERROR_COUNT_MAX),
                "tolerancePercent": self.tolerance(),
                "bandwidth": or(self.step.bandwidth_per_second, BANDWIDTH_PER_SECOND),
            },
        })
    }
}

/// The number, or another one where it is 0.
fn or(number: u64, default: u64) -> u64 {
    if number == 0 { default } else { number }
}
