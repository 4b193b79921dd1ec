//! A plan is checked and carried out, on a thread of its own.

use super::{
    book::{BANDWIDTH_PER_SECOND, Work},
    plan::{self, Plan, Step},
};
use crate::{disk_balancer::book::Progress, pool::Pool, shift, state::State};
use blockstore::StoreError;
use parking_lot::Mutex;
use proto::hdfs::SubmitDiskBalancerPlanRequestProto;
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Hadoop's default of `dfs.disk.balancer.plan.valid.interval`.
const PLAN_VALID_MS: u64 = 24 * 60 * 60 * 1_000;

/// The length of a plan's id: a SHA-1 in hexadecimal digits. It names the plan and is not computed again here.
const ID_CHARS: usize = 40;

/// A wait for the rate is broken off within this time.
const LOOK: Duration = Duration::from_millis(50);

/// Why a step has ended.
enum End {
    Reached,
    Stopped,
}

/// Begins to carry out a plan.
///
/// # Errors
/// Another plan runs, or this one is not for this server and its volumes as they are; the text is Hadoop's where it has one.
pub fn submit(state: &Arc<State>, request: &SubmitDiskBalancerPlanRequestProto) -> Result<(), String> {
    let plan = check(state, request)?;
    let work = plan.steps.into_iter().map(|step| work_of(state, step)).collect::<Result<Vec<_>, _>>()?;
    let stop = state.disk_balancer.begin(&request.plan_id, &request.plan_file, work.clone())?;
    let owned = state.clone();
    let started = std::thread::Builder::new().name("disk-balancer".into()).spawn(move || {
        work.iter().for_each(|work| work.run(&owned, &stop));
        owned.disk_balancer.ended(&stop);
    });
    started.map(drop).map_err(|error| {
        state.disk_balancer.give_up();
        format!("no thread can be started: {error}")
    })
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
            let storages = (state.volumes.storage_id(self.source), state.volumes.storage_id(self.target));
            let moved = moved.and_then(|()| shift::tell(pool, &named, storages));
            let mut progress = self.progress.lock();
            progress.seconds = pace.started.elapsed().as_secs();
            match moved {
                Ok(()) => {
                    state.moves.shifted.fetch_add(1, Ordering::Relaxed);
                    progress.bytes += block.length;
                    progress.blocks += 1;
                }
                _ if pace.is_stopped() => return End::Stopped,
                // The replica was changed or removed meanwhile. The step goes on with other replicas.
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
                    let is_too_much = progress.errors > self.error_count_max();
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
        // The bytes of earlier calls must have taken the time that the rate gives them.
        let due_us = u128::from(self.asked) * 1_000_000 / u128::from(self.work.rate());
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
