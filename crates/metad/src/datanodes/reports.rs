//! Data servers tell which replicas they have.

use super::{
    DatanodeSide,
    block_list::{self, BlockList, ListError},
    heartbeats::{register_command, storage_type_of},
    identity, refusal, wire,
};
use crate::{client_protocol::decode, partition::Partition};
use base::{FsError, FsResult};
use blocks::{Increment, ReportedReplica, ServerError, ServerId};
use proto::hdfs::{self as p, datanode as d};
use rpc::{Call, Replier};
use std::sync::Arc;

/// Rows taken under one lock of the block map: a fraction of a millisecond.
const SLICE_ROWS: usize = 2_000;
/// Reports with more rows than this go to a thread of their own, where they keep no other call waiting.
const INLINE_ROWS_MAX: u64 = 10_000;

impl DatanodeSide {
    pub(super) fn block_report(self: &Arc<Self>, call: &Call, reply: Replier) {
        let Some((request, reply)) = decode::<d::BlockReportRequestProto>(call, reply) else { return };
        let side = self.clone();
        let connection = call.connection;
        let work = move || match side.take_reports(connection, request) {
            Ok(cmd) => reply.ok(&d::BlockReportResponseProto { cmd }),
            Err(error) => reply.fs_error(&error),
        };
        if call.request.len() as u64 > INLINE_ROWS_MAX * ROW_BYTES_MIN {
            tokio::task::spawn_blocking(work);
        } else {
            work();
        }
    }

    fn take_reports(
        &self,
        connection: u64,
        request: d::BlockReportRequestProto,
    ) -> FsResult<Option<d::DatanodeCommandProto>> {
        let d::BlockReportRequestProto { registration, block_pool_id, reports, context } = request;
        let lease = context.and_then(|context| context.lease_id).unwrap_or(0);
        identity::check_cluster(&self.core.cluster, &registration)?;
        let id = identity::server_id(connection, &registration);
        let Some(partition) = self.partition_of(&registration, &block_pool_id) else {
            let rows = reports.iter().map(|report| report.number_of_blocks.unwrap_or(0).min(1 << 32)).sum();
            self.drop_rows(&self.core.partition, rows);
            return Ok(None);
        };
        for report in reports {
            match self.take_report(partition, id, report, lease) {
                Ok(()) => {}
                Err(ReportError::Server(
                    error @ (ServerError::NotRegistered(_) | ServerError::AnotherHolds { .. }),
                )) => {
                    tracing::warn!(%error, "block report refused");
                    return Ok(Some(register_command()));
                }
                Err(ReportError::Server(error)) => return Err(refusal("ProcessReport from ", &error)),
                Err(ReportError::List(error)) => {
                    tracing::warn!(server = %identity::describe(&registration), %error, "malformed block report");
                    return Err(FsError::Io(format!("The block report is malformed: {error}")));
                }
            }
        }
        Ok(None)
    }

    fn take_report(
        &self,
        partition: &Partition,
        id: ServerId<'_>,
        report: d::StorageBlockReportProto,
        lease: u64,
    ) -> Result<(), ReportError> {
        let storage = report.storage.clone();
        let mut list = BlockList::of(report);
        let claimed = list.claimed();
        let began = self.core.moment();
        let report = self.change_of(partition, |map, now| {
            map.begin_report(id, &storage.storage_uuid, storage_type_of(&storage), lease, now)
        })?;
        let mut rows: Vec<ReportedReplica> = Vec::with_capacity(SLICE_ROWS);
        let mut decoded = 0;
        // Once more than there are rows: the last reading finds the end.
        while decoded <= claimed {
            rows.clear();
            list.read(SLICE_ROWS, &mut rows)?;
            decoded += SLICE_ROWS as u64;
            self.change_of(partition, |map, now| map.report_slice(report, &rows, now))?;
        }
        let done = self.change_of(partition, |map, now| map.finish_report(report, now))?;
        self.drop_rows(partition, list.dropped());
        tracing::info!(
            server = id.uuid,
            storage = %storage.storage_uuid,
            rows = done.rows,
            dropped = list.dropped() + done.duplicates,
            unknown = done.unknown,
            corrupt = done.corrupt,
            took_ms = self.core.moment().ms_since(began),
            "block report"
        );
        if done.needs_sweep {
            self.wake_monitor();
        }
        Ok(())
    }

    pub(super) fn incremental_report(&self, call: &Call, reply: Replier) {
        let Some((request, reply)) = decode::<d::BlockReceivedAndDeletedRequestProto>(call, reply) else {
            return;
        };
        match self.take_increments(call.connection, &request) {
            Ok(()) => reply.ok(&d::BlockReceivedAndDeletedResponseProto {}),
            Err(error) => reply.fs_error(&error),
        }
    }

    #[allow(deprecated, reason = "servers that do not describe their storages name them here")]
    fn take_increments(
        &self,
        connection: u64,
        request: &d::BlockReceivedAndDeletedRequestProto,
    ) -> FsResult<()> {
        let registration = &request.registration;
        identity::check_cluster(&self.core.cluster, registration)?;
        let Some(partition) = self.partition_of(registration, &request.block_pool_id) else {
            let rows = request.blocks.iter().map(|storage| storage.blocks.len() as u64).sum();
            self.drop_rows(&self.core.partition, rows);
            return Ok(());
        };
        let id = identity::server_id(connection, registration);
        for report in &request.blocks {
            let storage = report.storage.as_ref();
            let name = storage.map_or(&report.storage_uuid, |storage| &storage.storage_uuid);
            let storage_type = storage.map_or_else(Default::default, storage_type_of);
            let increments: Vec<Increment> = report.blocks.iter().filter_map(increment_of).collect();
            self.drop_rows(partition, (report.blocks.len() - increments.len()) as u64);
            for slice in increments.chunks(SLICE_ROWS) {
                self.change_of(partition, |map, now| {
                    map.incremental_report(id, name, storage_type, slice, now)
                })
                .map_err(|error| refusal("Got incremental block report from ", &error))?;
            }
        }
        Ok(())
    }

    /// Taken by every member: a data server tells all of them, and a standby that takes over had better know.
    pub(super) fn report_bad_blocks(&self, call: &Call, reply: Replier) {
        let Some((request, reply)) = decode::<d::ReportBadBlocksRequestProto>(call, reply) else { return };
        for located in &request.blocks {
            let Some(partition) = self.core.partition_of_pool(&located.b.pool_id) else { continue };
            self.change_of(partition, |map, now| {
                let block = wire::block_of(&located.b);
                for (index, place) in located.locs.iter().enumerate() {
                    tracing::warn!(%block, server = %place.id.datanode_uuid, peer = %call.peer, "bad replica reported");
                    let storage = located.storage_i_ds.get(index).map(String::as_str);
                    map.report_bad(block, &place.id.datanode_uuid, storage, now);
                }
            });
        }
        reply.ok(&d::ReportBadBlocksResponseProto {});
    }

    pub(super) fn error_report(&self, call: &Call, reply: Replier) {
        let Some((request, reply)) = decode::<d::ErrorReportRequestProto>(call, reply) else { return };
        let registration = &request.registartion;
        if let Err(error) = identity::check_cluster(&self.core.cluster, registration) {
            return reply.fs_error(&error);
        }
        let server = identity::describe(registration);
        match d::error_report_request_proto::ErrorCode::try_from(request.error_code as i32) {
            Ok(d::error_report_request_proto::ErrorCode::FatalDiskError) => {
                tracing::error!(server, message = request.msg, "fatal disk error: the server is given up");
                let id = identity::server_id(call.connection, registration);
                if let Err(error) = self.change(|map, _| map.give_up_server(id)) {
                    tracing::warn!(%error, "it was not registered");
                }
            }
            Ok(d::error_report_request_proto::ErrorCode::DiskError) => {
                tracing::warn!(server, message = request.msg, "disk error");
            }
            _ => tracing::info!(server, code = request.error_code, message = request.msg, "error report"),
        }
        reply.ok(&d::ErrorReportResponseProto {});
    }

    /// Caching is not offered: a server reports an empty cache, and is thanked.
    pub(super) fn cache_report(&self, call: &Call, reply: Replier) {
        let Some((request, reply)) = decode::<d::CacheReportRequestProto>(call, reply) else { return };
        match identity::check_cluster(&self.core.cluster, &request.registration) {
            Ok(()) => reply.ok(&d::CacheReportResponseProto { cmd: None }),
            Err(error) => reply.fs_error(&error),
        }
    }

    /// The partition that a report is about, by the pool that it names.
    fn partition_of(
        &self,
        registration: &d::DatanodeRegistrationProto,
        pool: &str,
    ) -> Option<&Arc<Partition>> {
        let found = self.core.partition_of_pool(pool);
        if found.is_none() {
            tracing::warn!(server = %identity::describe(registration), pool, "report about a foreign block pool");
        }
        found
    }

    fn drop_rows(&self, partition: &Partition, rows: u64) {
        if rows > 0 {
            self.change_of(partition, |map, _| map.note_dropped_rows(rows));
        }
    }
}

/// The smallest row of a report has four varints of a byte each.
const ROW_BYTES_MIN: u64 = 4;

enum ReportError {
    Server(ServerError),
    List(ListError),
}

impl From<ServerError> for ReportError {
    fn from(error: ServerError) -> Self {
        Self::Server(error)
    }
}

impl From<ListError> for ReportError {
    fn from(error: ListError) -> Self {
        Self::List(error)
    }
}

/// `None` for a row that cannot be about a replica.
fn increment_of(row: &d::ReceivedDeletedBlockInfoProto) -> Option<Increment> {
    let p::BlockProto { block_id, gen_stamp, num_bytes } = row.block;
    let deleted = row.status == d::received_deleted_block_info_proto::BlockStatus::Deleted as i32;
    // A deleted replica's length means nothing, and may be one of Hadoop's markers.
    let length = if deleted { 0 } else { num_bytes.unwrap_or(0) };
    let block = block_list::block(block_id, gen_stamp, length)?;
    let hint = row.delete_hint.as_deref().filter(|hint| !hint.is_empty());
    Some(match d::received_deleted_block_info_proto::BlockStatus::try_from(row.status).ok()? {
        d::received_deleted_block_info_proto::BlockStatus::Receiving => Increment::Receiving(block),
        d::received_deleted_block_info_proto::BlockStatus::Received => {
            Increment::Received { block, delete_hint: hint.map(Into::into) }
        }
        d::received_deleted_block_info_proto::BlockStatus::Deleted => Increment::Deleted(block),
    })
}
