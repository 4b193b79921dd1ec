//! "I am here, with so much room": and what is ordered in answer.

use super::actor::{Actor, Failure, Session};
use crate::convert;
use blockstore::StorageReport;
use proto::hdfs::{
    StorageReportProto,
    datanode::{HeartbeatRequestProto, HeartbeatResponseProto, VolumeFailureSummaryProto},
    nnha_status_heartbeat_proto::State as HaState,
};

impl Actor {
    /// Sends one heartbeat and carries out, or sets off, what is ordered in answer. The number is the lease
    /// for a full block report, if one was asked for and given (0 otherwise).
    pub(super) async fn heartbeat(&self, session: &Session, wants_lease: bool) -> Result<u64, Failure> {
        let (reports, failed) =
            self.state.in_office(|store| (store.storage_reports(), store.failed_volumes())).await;
        let request = HeartbeatRequestProto {
            registration: session.registration.clone(),
            reports: reports.iter().map(storage_report).collect(),
            xmits_in_progress: Some(self.state.copy_count() as u32),
            xceiver_count: Some(self.state.transfer_count() as u32),
            failed_volumes: Some(failed.len() as u32),
            cache_capacity: Some(0),
            cache_used: Some(0),
            volume_failure_summary: (!failed.is_empty()).then_some(VolumeFailureSummaryProto {
                failed_storage_locations: failed,
                last_volume_failure_date: 0,
                estimated_capacity_lost_total: 0,
            }),
            request_full_block_report_lease: Some(wants_lease),
            slow_peers: Vec::new(),
            slow_disks: Vec::new(),
        };
        let answer: HeartbeatResponseProto = self.client.call("sendHeartbeat", &request).await?;
        let is_active = answer.ha_status.state() == HaState::Active;
        let is_obeyed = self.state.leadership.observe(self.index, is_active, answer.ha_status.txid);
        for command in answer.cmds {
            self.obey(&command, is_obeyed)?;
        }
        Ok(answer.full_block_report_lease_id.unwrap_or(0))
    }
}

#[allow(deprecated, reason = "storageUuid is required on the wire, though servers read storage.storageUuid")]
fn storage_report(report: &StorageReport) -> StorageReportProto {
    StorageReportProto {
        storage_uuid: report.storage_id.to_string(),
        failed: Some(false),
        capacity: Some(report.capacity_bytes),
        dfs_used: Some(report.used_bytes),
        remaining: Some(report.remaining_bytes),
        block_pool_used: Some(report.used_bytes),
        storage: Some(convert::storage_to_proto(&report.storage_id, report.storage_type)),
        non_dfs_used: Some(report.non_dfs_used_bytes),
        mount: None,
    }
}
