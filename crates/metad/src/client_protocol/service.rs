//! Questions about the service itself.

use super::calls::{self, decode};
use crate::{core::Core, datanodes::wire, partition::Partition, standby_reads};
use ::blocks::{DataServer, ServerFilter};
use base::FsResult;
use group::Role;
use namespace::{Privileged, Sight};
use proto::{common::HaServiceStateProto, hdfs as p};
use rpc::{Call, Replier};
use std::{net::IpAddr, sync::Arc};

pub fn get_server_defaults(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetServerDefaultsRequestProto>(&call, reply) else { return };
    let defaults = &core.config.defaults;
    reply.ok(&p::GetServerDefaultsResponseProto {
        server_defaults: p::FsServerDefaultsProto {
            block_size: defaults.block_size,
            bytes_per_checksum: defaults.bytes_per_checksum,
            write_packet_size: defaults.write_packet_size,
            replication: u32::from(defaults.replication),
            file_buffer_size: defaults.file_buffer_size,
            encrypt_data_transfer: Some(false),
            trash_interval: Some(defaults.trash_interval_minutes),
            checksum_type: Some(p::ChecksumTypeProto::ChecksumCrc32c as i32),
            key_provider_uri: Some(String::new()),
            policy_id: Some(base::StoragePolicy::DEFAULT.into()),
            snapshot_trash_root_enabled: Some(false),
        },
    });
}

pub fn get_fs_stats(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetFsStatusRequestProto>(&call, reply) else { return };
    let stats = core.partition.blocks.lock().stats();
    reply.ok(&p::GetFsStatsResponseProto {
        capacity: stats.capacity,
        used: stats.dfs_used,
        remaining: stats.remaining,
        under_replicated: stats.under_replicated,
        corrupt_blocks: stats.corrupt,
        missing_blocks: stats.missing,
        missing_repl_one_blocks: Some(stats.missing_with_replication_one),
        blocks_in_future: Some(stats.future_bytes),
        pending_deletion_blocks: Some(stats.pending_deletions),
    });
}

pub fn get_fs_replicated_block_stats(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetFsReplicatedBlockStatsRequestProto>(&call, reply) else { return };
    let stats = core.partition.blocks.lock().stats();
    reply.ok(&p::GetFsReplicatedBlockStatsResponseProto {
        low_redundancy: stats.under_replicated,
        corrupt_blocks: stats.corrupt,
        missing_blocks: stats.missing,
        missing_repl_one_blocks: stats.missing_with_replication_one,
        blocks_in_future: stats.future_bytes,
        pending_deletion_blocks: stats.pending_deletions,
        highest_prio_low_redundancy_blocks: Some(stats.most_endangered),
        badly_distributed_blocks: Some(stats.misplaced),
    });
}

/// There are no erasure-coded blocks.
pub fn get_fs_ec_block_group_stats(_: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetFsEcBlockGroupStatsRequestProto>(&call, reply) else { return };
    reply.ok(&p::GetFsEcBlockGroupStatsResponseProto {
        highest_prio_low_redundancy_blocks: Some(0),
        badly_distributed_blocks: Some(0),
        ..p::GetFsEcBlockGroupStatsResponseProto::default()
    });
}

fn filter_of(kind: p::DatanodeReportTypeProto) -> ServerFilter {
    match kind {
        p::DatanodeReportTypeProto::All => ServerFilter::All,
        p::DatanodeReportTypeProto::Live => ServerFilter::Live,
        p::DatanodeReportTypeProto::Dead => ServerFilter::Dead,
        p::DatanodeReportTypeProto::Decommissioning => ServerFilter::DecommissionInProgress,
        p::DatanodeReportTypeProto::EnteringMaintenance => ServerFilter::EnteringMaintenance,
        p::DatanodeReportTypeProto::InMaintenance => ServerFilter::InMaintenance,
    }
}

pub fn get_datanode_report(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetDatanodeReportRequestProto>(&call, reply) else { return };
    if let Err(error) = require_superuser(core, &call, Privileged::DatanodeReport) {
        return reply.fs_error(&error);
    }
    let (now, moment) = (core.env.clock.timestamp(), core.moment());
    let filter = filter_of(request.r#type());
    let (servers, missing) = {
        let map = core.partition.blocks.lock();
        let missing = match filter {
            ServerFilter::All | ServerFilter::Dead => missing(core, &map.servers(ServerFilter::All)),
            _ => Vec::new(),
        };
        (map.servers(filter), missing)
    };
    // The block map still knows data servers that were taken off the operator's list. The report leaves them out.
    let listed = servers
        .iter()
        .filter(|server| address(server).is_none_or(|(ip, port)| core.admission.admits(ip, port)));
    let di = listed.map(|server| wire::datanode_info(server, now, moment)).chain(missing).collect();
    reply.ok(&p::GetDatanodeReportResponseProto { di });
}

/// The address of a data server, and the port of its data transfer.
fn address(server: &DataServer) -> Option<(IpAddr, u32)> {
    let registration = &server.registration;
    Some((registration.ip.parse().ok()?, registration.transfer_port.into()))
}

/// Servers that the list of those that may take part names, and that were not heard of since the start: they are among the dead, as in HDFS.
fn missing(core: &Core, known: &[Arc<DataServer>]) -> Vec<p::DatanodeInfoProto> {
    let known: Vec<_> = known.iter().filter_map(|server| address(server)).collect();
    core.admission.missing(&known).iter().map(wire::missing_info).collect()
}

pub fn get_datanode_storage_report(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetDatanodeStorageReportRequestProto>(&call, reply) else {
        return;
    };
    if let Err(error) = require_superuser(core, &call, Privileged::GetDatanodeStorageReport) {
        return reply.fs_error(&error);
    }
    let (now, moment) = (core.env.clock.timestamp(), core.moment());
    let map = core.partition.blocks.lock();
    let servers = map.servers(filter_of(request.r#type()));
    let datanode_storage_reports = servers
        .iter()
        .map(|server| p::DatanodeStorageReportProto {
            datanode_info: wire::datanode_info(server, now, moment),
            storage_reports: map.storages(server.uuid()).iter().map(wire::storage_report).collect(),
        })
        .collect();
    drop(map);
    reply.ok(&p::GetDatanodeStorageReportResponseProto { datanode_storage_reports });
}

/// Refuses a call whose caller may not ask for this operation.
pub fn require_superuser(core: &Core, call: &Call, operation: Privileged) -> FsResult<()> {
    operation.check(&core.config.limits.access, &call.caller)
}

/// Answers once everything that was acknowledged before is visible here: on the active it always is.
pub fn msync(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::MsyncRequestProto>(&call, reply) else { return };
    calls::once_certain(core, &call, reply, Sight::Everything, || Ok(p::MsyncResponseProto {}));
}

pub fn get_ha_service_state(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::HaServiceStateRequestProto>(&call, reply) else { return };
    let state = match ha_state(&core.partition) {
        // Clients that send their reads to observers send them here. Tools ask by another protocol, and are told what the member is to its group.
        HaServiceStateProto::Standby if standby_reads::are_answered(&core.partition) => {
            HaServiceStateProto::Observer
        }
        state => state,
    };
    reply.ok(&p::HaServiceStateResponseProto { state: state as i32 });
}

/// Lists the slow data servers. Any user may ask, as in HDFS.
pub fn get_slow_datanode_report(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((_, reply)) = decode::<p::GetSlowDatanodeReportRequestProto>(&call, reply) else { return };
    let (now, moment) = (core.env.clock.timestamp(), core.moment());
    let slow = core.partition.blocks.lock().slow_servers(moment);
    let datanode_info_proto =
        slow.iter().map(|slow| wire::datanode_info(&slow.server, now, moment)).collect();
    reply.ok(&p::GetSlowDatanodeReportResponseProto { datanode_info_proto });
}

/// The state by Hadoop's name.
pub fn ha_state(partition: &Partition) -> HaServiceStateProto {
    match partition.member.standing().role {
        Role::Serving { .. } | Role::Reading { .. } => HaServiceStateProto::Active,
        Role::Stopped { .. } => HaServiceStateProto::Initializing,
        Role::Following | Role::Claiming | Role::Starting { .. } | Role::HandingOver { .. } => {
            HaServiceStateProto::Standby
        }
    }
}
