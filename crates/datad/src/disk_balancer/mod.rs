//! Replicas move between the volumes of this server until its disks are equally full: Hadoop's disk balancer.
//!
//! A plan says how many bytes go from which volume to which ([`plan`]); whoever makes it has looked at the volumes. One plan
//! runs at a time, on a thread of its own, at the rate that it asks for. Each replica is copied, checked and switched by
//! [`blockstore::PoolStore::move_to_volume`]; the metadata servers are told as of any move. After a restart no plan runs:
//! a new one is made of what is left.

pub mod plan;

use crate::{pool::Pool, state::State};
use blockstore::{StoreError, VolumeIndex};
use parking_lot::Mutex;
use plan::{Plan, Step};
use proto::hdfs::{QueryPlanStatusResponseProto, SubmitDiskBalancerPlanRequestProto};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Hadoop's defaults: `dfs.disk.balancer.max.disk.throughputInMBperSec`, `dfs.disk.balancer.max.disk.errors`,
/// `dfs.disk.balancer.block.tolerance.percent`, `dfs.disk.balancer.plan.valid.interval`.
const BANDWIDTH_PER_SECOND: u64 = 10;
const ERROR_COUNT_MAX: u64 = 5;
const TOLERANCE_PERCENT: u64 = 10;
const PLAN_VALID_MS: u64 = 24 * 60 * 60 * 1_000;

/// The length of a plan's id: a SHA-1 in hexadecimal digits. It names the plan and is not computed again here.
const ID_CHARS: usize = 40;

/// A wait for the rate is broken off within this time.
const LOOK: Duration = Duration::from_millis(50);

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
struct Work {
    step: Step,
    source: VolumeIndex,
    target: VolumeIndex,
    progress: Mutex<Progress>,
}

#[derive(Clone, Debug, Default)]
struct Progress {
    bytes: u64,
    blocks: u64,
    errors: u64,
    error: Option<String>,
    started_ms: u64,
    seconds: u64,
}

/// Why a step has ended.
enum End {
    Reached,
    Stopped,
}

impl DiskBalancer {
    /// Begins to carry out a plan.
    ///
    /// # Errors
    /// Another plan runs, or this one is not for this server and its volumes as they are; the text is Hadoop's where it has one.
    pub fn submit(
        &self,
        state: &Arc<State>,
        request: &SubmitDiskBalancerPlanRequestProto,
    ) -> Result<(), String> {
        let plan = check(state, request)?;
        let work = plan.steps.into_iter().map(|step| work_of(state, step)).collect::<Result<Vec<_>, _>>()?;
        let mut current = self.current.lock();
        if current.outcome == Outcome::UnderProgress {
            return Err("Executing another plan".into());
        }
        let stop = Arc::<AtomicBool>::default();
        *current = Current {
            outcome: Outcome::UnderProgress,
            id: request.plan_id.clone(),
            file: request.plan_file.clone(),
            work: work.clone(),
            stop: stop.clone(),
        };
        let owned = state.clone();
        let started = std::thread::Builder::new().name("disk-balancer".into()).spawn(move || {
            work.iter().for_each(|work| work.run(&owned, &stop));
            owned.disk_balancer.ended(&stop);
        });
        started.map(drop).map_err(|error| {
            *current = Current::default();
            format!("no thread can be started: {error}")
        })
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

    fn ended(&self, stop: &AtomicBool) {
        let mut current = self.current.lock();
        current.outcome = match stop.load(Ordering::Relaxed) {
            true => Outcome::Cancelled,
            false => Outcome::Done,
        };
        tracing::info!(plan = current.id, outcome = ?current.outcome, "the disk balancer has ended");
    }
}

/// An answer to `getDiskBalancerSetting`.
///
/// # Errors
/// There is no such setting.
pub fn setting(state: &State, key: &str) -> Result<String, String> {
    match key {
        "DiskBalancerVolumeName" => {
            let reports = state.volumes.storage_reports();
            let names: BTreeMap<_, _> = reports
                .iter()
                .map(|report| (report.storage_id.to_string(), report.directory.display().to_string()))
                .collect();
            Ok(json!(names).to_string())
        }
        "DiskBalancerBandwidth" => Ok(BANDWIDTH_PER_SECOND.to_string()),
        // Hadoop's command learns it from the metadata server.
        "CloverNodeUuid" => Ok(state.identity.uuid.to_string()),
        other => Err(format!("Disk Balancer - Unknown key in Disk Balancer setting: {other}")),
    }
}

fn check(state: &State, request: &SubmitDiskBalancerPlanRequestProto) -> Result<Plan, String> {
    if request.plan_version() != 1 {
        return Err("Invalid plan version.".into());
    }
    if request.plan.is_empty() {
        return Err("Invalid plan.".into());
    }
    if request.plan_id.len() != ID_CHARS || !request.plan_id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("Invalid or mis-matched hash.".into());
    }
    let plan = plan::parse(&request.plan).map_err(|error| format!("Parsing plan failed. {error}"))?;
    let age_ms = state.env.clock.timestamp().ms.saturating_sub(plan.made_ms);
    if !request.ignore_date_check() && age_ms > PLAN_VALID_MS {
        return Err("Plan was generated more than 1d ago".into());
    }
    if plan.node_uuid != *state.identity.uuid {
        return Err("Plan was generated for another node.".into());
    }
    Ok(plan)
}

fn work_of(state: &State, step: Step) -> Result<Arc<Work>, String> {
    if step.source == step.target {
        return Err(format!("Disk Balancer - Source and destination volumes are same: {}", step.source));
    }
    let reports = state.volumes.storage_reports();
    let find = |id: &str, path: &str| {
        let found = reports.iter().find(|report| *report.storage_id == *id);
        found.ok_or_else(|| format!("Disk Balancer - Unable to find volume: {path}. SubmitPlan failed."))
    };
    let source = find(&step.source, &step.source_path)?;
    let target = find(&step.target, &step.target_path)?;
    if source.storage_type != target.storage_type {
        return Err("Disk Balancer - Source and destination volumes are of different storage types.".into());
    }
    let (source_path, target_path) =
        (source.directory.display().to_string(), target.directory.display().to_string());
    let (source, target) = (source.volume, target.volume);
    let step = Step { source_path, target_path, ..step };
    Ok(Arc::new(Work { step, source, target, progress: Mutex::default() }))
}

impl Work {
    fn run(&self, state: &Arc<State>, stop: &AtomicBool) {
        let started = Instant::now();
        self.progress.lock().started_ms = state.env.clock.timestamp().ms;
        tracing::info!(
            from = self.step.source_path,
            to = self.step.target_path,
            bytes = self.step.bytes,
            "the disk balancer moves replicas"
        );
        for pool in state.pools() {
            let mut pace = Pace { work: self, stop, started, asked: 0 };
            if matches!(self.move_of_pool(state, pool, &mut pace), End::Stopped) {
                break;
            }
        }
        self.progress.lock().seconds = started.elapsed().as_secs();
        let Progress { bytes, blocks, errors, .. } = *self.progress.lock();
        tracing::info!(
            from = self.step.source_path,
            to = self.step.target_path,
            bytes,
            blocks,
            errors,
            "a step of the disk balancer has ended"
        );
    }

    fn move_of_pool(&self, state: &State, pool: &Arc<Pool>, pace: &mut Pace<'_>) -> End {
        for block in pool.store.finished_blocks(self.source) {
            if pace.is_stopped() || self.is_enough() {
                return End::Stopped;
            }
            if block.length > self.wanted() {
                continue;
            }
            let named = pool.extended(block);
            let moved = pool.store.move_to_volume(&named, self.target, &mut |bytes| pace.wait(bytes));
            let mut progress = self.progress.lock();
            progress.seconds = pace.started.elapsed().as_secs();
            match moved {
                Ok(()) => {
                    pool.reporter.notify_received(state.volumes.storage_id(self.target), block, None);
                    state.moves.shifted.fetch_add(1, Ordering::Relaxed);
                    progress.bytes += block.length;
                    progress.blocks += 1;
                }
                _ if pace.is_stopped() => return End::Stopped,
                // Somebody has changed or removed it: there are others.
                Err(
                    StoreError::State { .. } | StoreError::NotFound(_) | StoreError::GenerationStamp { .. },
                )
                | Err(StoreError::UnderRecovery { .. } | StoreError::Range(_)) => {}
                Err(error @ (StoreError::VolumeLost(_) | StoreError::OutOfSpace(_))) => {
                    progress.errors += 1;
                    progress.error = Some(error.to_string());
                    return End::Stopped;
                }
                Err(error) => {
                    tracing::warn!(block = %named, %error, "the disk balancer could not move a replica");
                    progress.errors += 1;
                    progress.error = Some(error.to_string());
                    let is_too_much = progress.errors > or(self.step.error_count_max, ERROR_COUNT_MAX);
                    drop(progress);
                    // Whether it is damaged, the scanner finds out.
                    state.suspect(pool, self.source, block.id);
                    if is_too_much {
                        self.progress.lock().error = Some("Error count exceeded.".into());
                        return End::Stopped;
                    }
                }
            }
        }
        End::Reached
    }

    fn tolerance(&self) -> u64 {
        or(self.step.tolerance_percent, TOLERANCE_PERCENT).min(100)
    }

    /// A replica that is longer would move too much, even with the tolerance.
    fn wanted(&self) -> u64 {
        let left = self.step.bytes.saturating_sub(self.progress.lock().bytes);
        left.saturating_add(left / 100 * self.tolerance())
    }

    /// Whether what was moved is near enough to what was to be moved.
    fn is_enough(&self) -> bool {
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

/// The rate of a step.
struct Pace<'a> {
    work: &'a Work,
    stop: &'a AtomicBool,
    started: Instant,
    /// Bytes that were copied or are about to be.
    asked: u64,
}

impl Pace<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until the bytes may be copied. `false` if the plan is to end.
    fn wait(&mut self, bytes: u64) -> bool {
        let rate = or(self.work.step.bandwidth_per_second, BANDWIDTH_PER_SECOND).saturating_mul(1 << 20);
        // What was asked for before must have taken its time.
        let due_us = u128::from(self.asked) * 1_000_000 / u128::from(rate);
        let due = Duration::from_micros(u64::try_from(due_us).unwrap_or(u64::MAX));
        self.asked = self.asked.saturating_add(bytes);
        while let Some(left) = due.checked_sub(self.started.elapsed()).filter(|left| !left.is_zero()) {
            if self.is_stopped() {
                return false;
            }
            std::thread::sleep(left.min(LOOK));
        }
        !self.is_stopped()
    }
}

/// The number, or another one where it is 0.
fn or(number: u64, default: u64) -> u64 {
    if number == 0 { default } else { number }
}
