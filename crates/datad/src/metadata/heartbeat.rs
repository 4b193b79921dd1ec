//! "I am here, with so much room": and what is ordered in answer.

use super::actor::{Actor, Failure, Session};
use crate::{convert, pool::Pool};
use blocks::{Claim, Obeyed};
use blockstore::StorageReport;
use proto::hdfs::{
    StorageReportProto,
    datanode::{HeartbeatRequestProto, HeartbeatResponseProto, VolumeFailureSummaryProto},
    nnha_status_heartbeat_proto::State as HaState,
};
use std::{sync::atomic::Ordering, time::Duration};

/// How long a server may take to answer a heartbeat: three intervals, within these.
const PATIENCE_MIN: Duration = Duration::from_secs(5);
const PATIENCE_MAX: Duration = Duration::from_secs(60);

impl Actor {
    /// Sends one heartbeat and carries out, or sets off, what is ordered in answer. The number is the lease
    /// for a full block report, if one was asked for and given (0 otherwise).
    pub(super) async fn heartbeat(&self, session: &Session, wants_lease: bool) -> Result<u64, Failure> {
        let (reports, failures) =
            self.state.in_office(|volumes| (volumes.storage_reports(), volumes.volume_failures())).await;
        let now = self.state.env.clock.moment();
        let interval_ms = self.state.slowness.report_interval_ms();
        let is_due = session.slowness_told.lock().is_none_or(|at| now.ms_since(at) >= interval_ms);
        let (slow_peers, slow_disks) = match is_due {
            true => (self.state.slowness.slow_peers(now), self.state.slowness.slow_disks(&reports, now)),
            false => (Vec::new(), Vec::new()),
        };
        let request = HeartbeatRequestProto {
            registration: session.registration.clone(),
            reports: reports.iter().map(|report| storage_report(report, &session.pool)).collect(),
            xmits_in_progress: Some(self.state.copy_count() as u32),
            xceiver_count: Some(self.state.transfer_count() as u32),
            failed_volumes: Some(failures.as_ref().map_or(0, |failures| failures.directories.len()) as u32),
            cache_capacity: Some(0),
            cache_used: Some(0),
            volume_failure_summary: failures.map(|failures| VolumeFailureSummaryProto {
                failed_storage_locations: failures.directories,
                last_volume_failure_date: failures.last_ms,
                estimated_capacity_lost_total: failures.capacity_bytes,
            }),
            request_full_block_report_lease: Some(wants_lease),
            slow_peers,
            slow_disks,
        };
        self.talk.lock().heartbeat_sent = Some(now);
        let answer = self.send_heartbeat(&request).await?;
        if is_due {
            *session.slowness_told.lock() = Some(now);
        }
        let status = &answer.ha_status;
        {
            let mut talk = self.talk.lock();
            talk.heartbeat_answered = Some(self.state.env.clock.moment());
            talk.calls_slow = answer.is_slownode();
            talk.is_active = Some(status.state() == HaState::Active);
        }
        let claim = Claim { is_active: status.state() == HaState::Active, number: status.txid };
        let obeyed = session.pool.leadership.observe(session.place, claim);
        if let Some(Obeyed { mandate, is_new: true }) = obeyed {
            tracing::info!(server = %self.address, epoch = mandate.epoch(), "this is the active metadata server now");
            session.queue.request_full_report();
        }
        let keeps_deleted = keeps_deleted(&answer);
        if session.keeps_deleted.swap(keeps_deleted, Ordering::Relaxed) != keeps_deleted {
            match keeps_deleted {
                true => {
                    tracing::warn!(server = %self.address, "a rolling upgrade is under way: no replica is deleted until it is final")
                }
                false => {
                    tracing::info!(server = %self.address, "the rolling upgrade is over: replicas are deleted again")
                }
            }
        }
        for command in answer.cmds {
            self.obey(session, &command, obeyed.map(|obeyed| obeyed.mandate))?;
        }
        Ok(answer.full_block_report_lease_id.unwrap_or(0))
    }

    /// Hangs up on a server that does not answer: one that was cut off or frozen is spoken to on a new connection
    /// as soon as it can be.
    async fn send_heartbeat(
        &self,
        request: &HeartbeatRequestProto,
    ) -> Result<HeartbeatResponseProto, Failure> {
        let interval = Duration::from_millis(self.state.config.heartbeat_interval_ms);
        let patience = (interval * 3).clamp(PATIENCE_MIN, PATIENCE_MAX);
        let answer = self.client.call("sendHeartbeat", request);
        match tokio::time::timeout(patience, answer).await {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                self.client.disconnect();
                Err(Failure::Transient(format!("no answer to a heartbeat within {patience:?}")))
            }
        }
    }
}

/// Whether the metadata server, a Hadoop NameNode, is in a rolling upgrade: its way back needs the replicas that are deleted
/// meanwhile. A DataNode moves them to a trash. This server leaves them where they are; a NameNode that has gone back wants them, and any
/// other orders the deletion again after the next full report.
fn keeps_deleted(answer: &HeartbeatResponseProto) -> bool {
    // The second field tells also of an upgrade that is final; older DataNodes would misread that.
    let status = answer.rolling_upgrade_status_v2.as_ref().or(answer.rolling_upgrade_status.as_ref());
    status.is_some_and(|status| !status.finalized())
}

/// The figures are the volume's, on which all pools lie; only what the pool has there is told for itself.
#[allow(deprecated, reason = "storageUuid is required on the wire, though servers read storage.storageUuid")]
fn storage_report(report: &StorageReport, pool: &Pool) -> StorageReportProto {
    StorageReportProto {
        storage_uuid: report.storage_id.to_string(),
        failed: Some(false),
        capacity: Some(report.capacity_bytes),
        dfs_used: Some(report.used_bytes),
        remaining: Some(report.remaining_bytes),
        block_pool_used: Some(pool.store.used_bytes(report.volume)),
        storage: Some(convert::storage_to_proto(&report.storage_id, report.storage_type)),
        non_dfs_used: Some(report.non_dfs_used_bytes),
        mount: None,
    }
}
