//! The replicas of blocks, for a check of the file system: also those of which clients are not told.

use super::orders::pass_on;
use crate::{
    client_protocol::{
        calls::{self, decode},
        meta_save::reason_name,
        require_superuser,
    },
    core::Core,
    partition::Partition,
};
use base::{AdminState, BlockId, FsError};
use blocks::{BlockStandings, BlockState, Standing, StandingReplica};
use namespace::{Privileged, Sight};
use proto::{
    clover::admin::{self as p, ReplicaStandingProto as Wire},
    hdfs::StorageTypeProto,
};
use rpc::{Call, Replier};
use std::sync::Arc;

const BLOCKS_MAX: usize = proto::REPLICAS_BLOCKS_MAX;
/// Blocks that are looked at under one lock.
const SLICE: usize = 50;

pub fn list(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::GetReplicasRequestProto>(&call, reply) else { return };
    if !core.partition.member.is_serving() {
        return pass_on(core, call, reply);
    }
    if let Err(error) = require_superuser(core, &call, Privileged::GetReplicas) {
        return reply.fs_error(&error);
    }
    let asked = request.block_ids.len();
    if asked > BLOCKS_MAX {
        let message = format!("{asked} blocks are asked for at once; {BLOCKS_MAX} are the most");
        return reply.fs_error(&FsError::InvalidArgument(message));
    }
    let answer = answer(&core.partition, &request);
    calls::once_certain(core, &call, reply, Sight::Everything, || Ok(answer));
}

fn answer(partition: &Partition, request: &p::GetReplicasRequestProto) -> p::GetReplicasResponseProto {
    let now = partition.moment();
    let mut found: Vec<BlockStandings> = Vec::with_capacity(request.block_ids.len());
    for slice in request.block_ids.chunks(SLICE) {
        let map = partition.blocks.lock();
        found.extend(slice.iter().filter_map(|id| map.standings(BlockId(*id), now)));
    }
    let path = |block: &BlockStandings| match request.with_paths() {
        true => partition.tree().namespace.path_of(block.inode),
        false => None,
    };
    p::GetReplicasResponseProto {
        group: partition.cluster.group.0,
        block_pool: partition.cluster.block_pool.to_string(),
        min_replication: partition.config.limits.replication_min.into(),
        blocks: found.iter().map(|block| told(block, path(block))).collect(),
    }
}

fn told(block: &BlockStandings, path: Option<String>) -> p::BlockReplicasProto {
    p::BlockReplicasProto {
        block_id: block.block.id.0,
        generation_stamp: block.block.generation_stamp.0,
        num_bytes: block.block.length,
        is_complete: block.state == BlockState::Complete,
        replication: block.replication.into(),
        is_queued: block.is_queued.then_some(true),
        path,
        replicas: block.replicas.iter().map(replica).collect(),
    }
}

fn replica(replica: &StandingReplica) -> p::ReplicaProto {
    let standing = match replica.standing {
        Standing::Corrupt(_) => Wire::ReplicaCorrupt,
        Standing::Excess => Wire::ReplicaExcess,
        Standing::Doubted => Wire::ReplicaDoubted,
        Standing::Live | Standing::OutOfService(AdminState::InService) => Wire::ReplicaLive,
        Standing::OutOfService(AdminState::DecommissionInProgress) => Wire::ReplicaDecommissioning,
        Standing::OutOfService(AdminState::Decommissioned) => Wire::ReplicaDecommissioned,
        Standing::OutOfService(AdminState::EnteringMaintenance) => Wire::ReplicaEnteringMaintenance,
        Standing::OutOfService(AdminState::InMaintenance) => Wire::ReplicaInMaintenance,
    };
    let reason = match replica.standing {
        Standing::Corrupt(reason) => Some(reason_name(reason).to_owned()),
        _ => None,
    };
    let kind = StorageTypeProto::from(replica.location.storage_type);
    p::ReplicaProto {
        server_uuid: replica.location.server.uuid().to_string(),
        storage_uuid: replica.location.storage.to_string(),
        storage_type: kind.as_str_name().to_owned(),
        standing: standing.into(),
        corrupt_reason: reason,
        is_storage_stale: replica.is_storage_stale.then_some(true),
        is_server_stale: replica.is_server_stale.then_some(true),
    }
}
