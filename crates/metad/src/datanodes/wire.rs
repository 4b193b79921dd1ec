//! Blocks, places and data servers as Hadoop's messages spell them.

use super::Expected;
use crate::Cluster;
use ::blocks::{DataServer, Located, Location, StorageState, StorageStats};
use base::{Block, BlockId, GenerationStamp, Moment, Timestamp};
use proto::{
    answers::{LocatedBlock, Place},
    common, hdfs as p,
};

/// The namespace layout of Hadoop 3.5: what a data server and a balancer compare with their own.
pub use proto::fsimage::LAYOUT_VERSION as NAMESPACE_LAYOUT_VERSION;
/// The release whose protocols are spoken; data servers refuse to talk to a much older one.
pub const SOFTWARE_VERSION: &str = "3.5.0";
/// `STORAGE_BLOCK_REPORT_BUFFERS`: block reports may come as encoded buffers.
const CAPABILITIES: u64 = 1;

/// The state of a member for peers that know only active and standby.
pub fn ha_state(is_active: bool) -> p::nnha_status_heartbeat_proto::State {
    match is_active {
        true => p::nnha_status_heartbeat_proto::State::Active,
        false => p::nnha_status_heartbeat_proto::State::Standby,
    }
}

pub fn namespace_info(cluster: &Cluster, is_active: bool) -> p::NamespaceInfoProto {
    p::NamespaceInfoProto {
        build_version: concat!("clover-", env!("CARGO_PKG_VERSION")).to_owned(),
        unused: 0,
        block_pool_id: cluster.block_pool.to_string(),
        storage_info: storage_info(cluster),
        software_version: SOFTWARE_VERSION.to_owned(),
        capabilities: Some(CAPABILITIES),
        state: Some(ha_state(is_active) as i32),
    }
}

pub fn storage_info(cluster: &Cluster) -> p::StorageInfoProto {
    p::StorageInfoProto {
        // Negative numbers travel in an unsigned field.
        layout_version: NAMESPACE_LAYOUT_VERSION as u32,
        namespce_id: cluster.namespace_id,
        cluster_id: cluster.cluster_id.clone(),
        c_time: cluster.created_ms,
    }
}

pub fn extended_block(pool: &str, block: Block) -> p::ExtendedBlockProto {
    p::ExtendedBlockProto {
        pool_id: pool.to_owned(),
        block_id: block.id.0,
        generation_stamp: block.generation_stamp.0,
        num_bytes: Some(block.length),
    }
}

pub fn block(block: Block) -> p::BlockProto {
    p::BlockProto { block_id: block.id.0, gen_stamp: block.generation_stamp.0, num_bytes: Some(block.length) }
}

pub fn block_of(proto: &p::ExtendedBlockProto) -> Block {
    Block {
        id: BlockId(proto.block_id),
        generation_stamp: GenerationStamp(proto.generation_stamp),
        length: proto.num_bytes.unwrap_or(0),
    }
}

/// Block tokens are not in use: an empty one, as Hadoop sends without security.
pub fn no_token() -> common::TokenProto {
    common::TokenProto::default()
}

/// A block with the places that were chosen for it, as clients are told.
pub fn placed<'a>(
    pool: &'a str,
    block: Block,
    offset: u64,
    places: &'a [Location],
) -> LocatedBlock<'a, impl ExactSizeIterator<Item = Place<'a>> + Clone> {
    LocatedBlock {
        pool,
        id: block.id.0,
        generation_stamp: block.generation_stamp.0,
        length: block.length,
        offset,
        corrupt: false,
        places: places.iter().map(place),
    }
}

/// A block of a file and where it can be read. `located` is `None` when the block map does not know it.
pub fn found<'a>(
    pool: &'a str,
    block: Block,
    offset: u64,
    located: Option<&'a Located>,
) -> LocatedBlock<'a, impl ExactSizeIterator<Item = Place<'a>> + Clone> {
    let places = located.map_or(&[][..], |located| &located.locations);
    let corrupt = located.is_some_and(|located| located.corrupt);
    LocatedBlock { corrupt, ..placed(pool, block, offset, places) }
}

fn place(location: &Location) -> Place<'_> {
    let server = &*location.server;
    let registration = &*server.registration;
    Place {
        ip: &registration.ip,
        host_name: &registration.host_name,
        uuid: &registration.uuid,
        transfer_port: registration.transfer_port,
        info_port: registration.info_port,
        ipc_port: registration.ipc_port,
        info_secure_port: registration.info_secure_port,
        capacity: server.capacity,
        dfs_used: server.dfs_used,
        remaining: server.remaining,
        block_pool_used: server.block_pool_used,
        xceivers: server.xceivers,
        rack: &server.rack,
        non_dfs_used: server.non_dfs_used,
        cache_capacity: server.cache_capacity,
        cache_used: server.cache_used,
        blocks: server.blocks as u32,
        software_version: &registration.software_version,
        admin_state: server.admin_state.into(),
        storage: &location.storage,
        storage_type: location.storage_type.into(),
    }
}

/// A block with its locations, as part of a command to a data server.
pub fn located_at(pool: &str, block: Block, offset: u64, places: &[Location]) -> p::LocatedBlockProto {
    p::LocatedBlockProto {
        b: extended_block(pool, block),
        offset,
        // Readers and writers take addresses from here; the server's own figures do not matter here.
        locs: places.iter().map(|place| place_info(&place.server)).collect(),
        corrupt: false,
        block_token: no_token(),
        is_cached: vec![false; places.len()],
        storage_types: places
            .iter()
            .map(|place| p::StorageTypeProto::from(place.storage_type) as i32)
            .collect(),
        storage_i_ds: places.iter().map(|place| place.storage.to_string()).collect(),
        block_indices: None,
        block_tokens: Vec::new(),
    }
}

fn datanode_id(server: &DataServer) -> p::DatanodeIdProto {
    let registration = &server.registration;
    p::DatanodeIdProto {
        ip_addr: registration.ip.to_string(),
        host_name: registration.host_name.to_string(),
        datanode_uuid: registration.uuid.to_string(),
        xfer_port: registration.transfer_port.into(),
        info_port: registration.info_port.into(),
        ipc_port: registration.ipc_port.into(),
        info_secure_port: Some(registration.info_secure_port.into()),
    }
}

/// The addresses and the rack of a server, for clients and servers that will talk to it.
pub fn place_info(server: &DataServer) -> p::DatanodeInfoProto {
    p::DatanodeInfoProto {
        id: datanode_id(server),
        capacity: Some(server.capacity),
        dfs_used: Some(server.dfs_used),
        remaining: Some(server.remaining),
        block_pool_used: Some(server.block_pool_used),
        last_update: None,
        xceiver_count: Some(server.xceivers),
        location: Some(server.rack.to_string()),
        non_dfs_used: Some(server.non_dfs_used),
        admin_state: Some(p::datanode_info_proto::AdminState::from(server.admin_state) as i32),
        cache_capacity: Some(server.cache_capacity),
        cache_used: Some(server.cache_used),
        last_update_monotonic: None,
        upgrade_domain: None,
        last_block_report_time: None,
        last_block_report_monotonic: None,
        num_blocks: Some(server.blocks as u32),
        software_version: Some(server.registration.software_version.to_string()),
    }
}

/// A server that a list names and that has not been heard of. The ports are Hadoop's, where the list says none.
pub fn missing_info(server: &Expected) -> p::DatanodeInfoProto {
    let state = match server.leaves {
        true => p::datanode_info_proto::AdminState::Decommissioned,
        false => p::datanode_info_proto::AdminState::Normal,
    };
    p::DatanodeInfoProto {
        id: p::DatanodeIdProto {
            ip_addr: server.addresses.first().map(ToString::to_string).unwrap_or_default(),
            host_name: server.host.clone(),
            xfer_port: server.port.unwrap_or(9866),
            info_port: 9864,
            ipc_port: 9867,
            info_secure_port: Some(9865),
            ..p::DatanodeIdProto::default()
        },
        location: Some(::blocks::server::DEFAULT_RACK.to_owned()),
        admin_state: Some(state as i32),
        last_update: Some(0),
        last_update_monotonic: Some(0),
        ..p::DatanodeInfoProto::default()
    }
}

/// Everything about a server, for reports to people. `now` and `moment` are the same time on both clocks.
pub fn datanode_info(server: &DataServer, now: Timestamp, moment: Moment) -> p::DatanodeInfoProto {
    let wall = |at: Moment| (at != Moment::default()).then(|| now.ms.saturating_sub(moment.ms_since(at)));
    p::DatanodeInfoProto {
        last_update: wall(server.last_heartbeat),
        last_update_monotonic: Some(server.last_heartbeat.ms()),
        last_block_report_time: wall(server.last_report),
        last_block_report_monotonic: Some(server.last_report.ms()),
        ..place_info(server)
    }
}

#[allow(deprecated, reason = "storageUuid is required on the wire, though clients read storage.storageUuid")]
pub fn storage_report(stats: &StorageStats) -> p::StorageReportProto {
    let report = &stats.report;
    let state = match report.state {
        StorageState::ReadOnlyShared => p::datanode_storage_proto::StorageState::ReadOnlyShared,
        StorageState::Normal | StorageState::Failed => p::datanode_storage_proto::StorageState::Normal,
    };
    p::StorageReportProto {
        storage_uuid: report.id.to_string(),
        failed: Some(report.state == StorageState::Failed),
        capacity: Some(report.capacity),
        dfs_used: Some(report.dfs_used),
        remaining: Some(report.remaining),
        block_pool_used: Some(report.block_pool_used),
        storage: Some(p::DatanodeStorageProto {
            storage_uuid: report.id.to_string(),
            state: Some(state as i32),
            storage_type: Some(p::StorageTypeProto::from(report.storage_type) as i32),
        }),
        non_dfs_used: Some(report.non_dfs_used),
        mount: None,
    }
}

#[cfg(test)]
#[path = "wire/tests.rs"]
mod tests;
