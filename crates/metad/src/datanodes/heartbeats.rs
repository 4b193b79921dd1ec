//! Data servers register, say that they live, and get their orders.

use super::{DatanodeSide, identity, orders, refusal, slow, wire};
use crate::{client_protocol::decode, partition::Partition};
use base::{FsError, FsResult};
use blocks::{
    Claim, Command, Heartbeat, Recovery, SessionKey, StorageReport, StorageState, StorageType, Terms,
    Transfer, VolumeFailures,
};
use group::Role;
use proto::hdfs::{self as p, datanode as d};
use rpc::{Call, Replier};
use std::{net::IpAddr, sync::Arc};

impl DatanodeSide {
    pub(super) fn version_request(&self, reply: Replier) {
        let is_active = self.core.partition.member.standing().is_serving();
        reply.ok(&p::VersionResponseProto { info: wire::namespace_info(&self.core.cluster, is_active) });
    }

    pub(super) fn register(self: &Arc<Self>, call: Call, reply: Replier) {
        let Some(answered) = self.core.racks.ask(call.peer.ip()) else {
            return self.register_now(&call, reply);
        };
        // A script runs, for as long as that takes. No thread waits: there may be a thousand data servers.
        let side = self.clone();
        tokio::spawn(async move {
            let _ = answered.await;
            side.register_now(&call, reply);
        });
    }

    fn register_now(&self, call: &Call, reply: Replier) {
        let Some((request, reply)) = decode::<d::RegisterDatanodeRequestProto>(call, reply) else { return };
        match self.try_register(call, request.registration) {
            Ok(registration) => reply.ok(&d::RegisterDatanodeResponseProto { registration }),
            Err(error) => {
                tracing::warn!(peer = %call.peer, %error, "data server refused");
                reply.fs_error(&error);
            }
        }
    }

    fn try_register(
        &self,
        call: &Call,
        mut registration: d::DatanodeRegistrationProto,
    ) -> FsResult<d::DatanodeRegistrationProto> {
        identity::check_registration(&self.core.cluster, &registration)?;
        let known = identity::registration_of(&registration, call.peer.ip())?;
        self.check_admission(call.peer.ip(), &registration)?;
        let session = self.new_session();
        let named = known.host_name.clone();
        let port = known.transfer_port;
        let server = self
            .change(|map, now| map.register(known, session, now))
            .map_err(|error| FsError::Io(error.to_string()))?;
        orders::give_newest(&self.core, &server, call.peer.ip(), port);
        let known = &server.registration;
        if known.host_name != named {
            tracing::warn!(
                peer = %call.peer, host_name = %named,
                "a live data server at another address has this host name: the new one is known by its address only"
            );
        }
        registration.datanode_id.ip_addr = known.ip.to_string();
        registration.keys = identity::keys_with(&session);
        Ok(registration)
    }

    fn new_session(&self) -> SessionKey {
        let mut key = [0; SessionKey::BYTES];
        self.core.env.random.fill(&mut key);
        SessionKey(key)
    }

    fn check_admission(&self, ip: IpAddr, registration: &d::DatanodeRegistrationProto) -> FsResult<()> {
        let id = &registration.datanode_id;
        if self.core.admission.admits(ip, id.xfer_port) {
            return Ok(());
        }
        Err(FsError::DisallowedDatanode(format!(
            "Datanode denied communication with namenode because the host is not in the include-list: {}",
            identity::describe(registration)
        )))
    }

    pub(super) fn heartbeat(&self, call: &Call, reply: Replier) {
        let Some((request, reply)) = decode::<d::HeartbeatRequestProto>(call, reply) else { return };
        match self.try_heartbeat(call, &request) {
            Ok(response) => reply.ok(&response),
            Err(error) => reply.fs_error(&error),
        }
    }

    fn try_heartbeat(
        &self,
        call: &Call,
        request: &d::HeartbeatRequestProto,
    ) -> FsResult<d::HeartbeatResponseProto> {
        identity::check_cluster(&self.core.cluster, &request.registration)?;
        let id = identity::server_id(call.connection, &request.registration);
        let known = self.change(|map, _| map.registration_of(id));
        let ip = known.ok().and_then(|known| known.ip.parse().ok()).unwrap_or(call.peer.ip());
        if let Err(error) = self.check_admission(ip, &request.registration) {
            // Its replicas count no longer. A server that is not known here has been told to register already.
            let _ = self.change(|map, _| map.give_up_server(id));
            return Err(error);
        }
        let heartbeat = heartbeat_of(request);
        let claim = claim_of(&self.core.partition);
        // Tested before orders are taken out of their queue, and again before they go out.
        let is_sure = self.core.partition.member.may_answer();
        let wants_lease = request.request_full_block_report_lease.unwrap_or(false);
        let terms = Terms { claim, is_sure, wants_lease };
        let mut answer = self
            .change(|map, now| map.answer_heartbeat(id, &heartbeat, terms, now))
            .map_err(|error| refusal("Heartbeat from ", &error))?;
        if !self.core.partition.member.may_answer() {
            answer.withdraw_orders();
        }
        let pool = &self.core.partition.cluster.block_pool;
        Ok(d::HeartbeatResponseProto {
            cmds: answer.commands.into_iter().map(|command| command_of(pool, command)).collect(),
            ha_status: claim_to_proto(answer.claim),
            rolling_upgrade_status: None,
            rolling_upgrade_status_v2: None,
            full_block_report_lease_id: Some(answer.lease),
            is_slownode: Some(answer.is_slow),
        })
    }

    pub(super) fn lifeline(&self, call: &Call, reply: Replier) {
        let Some((request, reply)) = decode::<d::HeartbeatRequestProto>(call, reply) else { return };
        let taken = identity::check_cluster(&self.core.cluster, &request.registration).and_then(|()| {
            let id = identity::server_id(call.connection, &request.registration);
            let heartbeat = heartbeat_of(&request);
            let taken = self.change(|map, now| map.take_lifeline(id, &heartbeat, now));
            taken.map_err(|error| refusal("Lifeline from ", &error))
        });
        match taken {
            Ok(()) => reply.ok(&p::datanodelifeline::LifelineResponseProto {}),
            Err(error) => reply.fs_error(&error),
        }
    }
}

/// This metadata server's claim to data servers.
fn claim_of(partition: &Partition) -> Claim {
    let serves_in = match partition.member.standing().role {
        Role::Serving { epoch } => Some(epoch),
        _ => None,
    };
    Claim::of(serves_in, partition.commit.committed())
}

fn claim_to_proto(claim: Claim) -> p::NnhaStatusHeartbeatProto {
    let state = wire::ha_state(claim.is_active) as i32;
    p::NnhaStatusHeartbeatProto { state, txid: claim.number }
}

fn heartbeat_of(request: &d::HeartbeatRequestProto) -> Heartbeat {
    Heartbeat {
        storages: request.reports.iter().map(storage_report_of).collect(),
        cache_capacity: request.cache_capacity.unwrap_or(0),
        cache_used: request.cache_used.unwrap_or(0),
        xceivers: request.xceiver_count.unwrap_or(0),
        transfers_in_progress: request.xmits_in_progress.unwrap_or(0),
        failed_volumes: request.failed_volumes.unwrap_or(0),
        volume_failures: request.volume_failure_summary.as_ref().map(volume_failures_of),
        slow_peers: slow::peers_of(&request.slow_peers),
        slow_disks: slow::disks_of(&request.slow_disks),
    }
}

/// The first locations; no server has so many volumes in earnest.
fn volume_failures_of(told: &d::VolumeFailureSummaryProto) -> VolumeFailures {
    let is_short = |location: &&String| location.len() <= VolumeFailures::LOCATION_BYTES_MAX;
    let locations = told.failed_storage_locations.iter().take(VolumeFailures::LOCATIONS_MAX);
    VolumeFailures {
        locations: locations.filter(is_short).cloned().collect(),
        last_ms: told.last_volume_failure_date,
        capacity_lost: told.estimated_capacity_lost_total,
    }
}

#[allow(deprecated, reason = "servers that do not describe their storages name them here")]
fn storage_report_of(report: &p::StorageReportProto) -> StorageReport {
    let storage = report.storage.as_ref();
    let id = storage.map_or(&report.storage_uuid, |storage| &storage.storage_uuid);
    let shared = p::datanode_storage_proto::StorageState::ReadOnlyShared as i32;
    StorageReport {
        id: id.as_str().into(),
        storage_type: storage.map_or(StorageType::Disk, storage_type_of),
        state: match storage.and_then(|storage| storage.state) {
            _ if report.failed == Some(true) => StorageState::Failed,
            Some(state) if state == shared => StorageState::ReadOnlyShared,
            _ => StorageState::Normal,
        },
        capacity: report.capacity.unwrap_or(0),
        dfs_used: report.dfs_used.unwrap_or(0),
        remaining: report.remaining.unwrap_or(0),
        block_pool_used: report.block_pool_used.unwrap_or(0),
        non_dfs_used: report.non_dfs_used.unwrap_or(0),
    }
}

/// The medium of a storage; a disk where none is named that is known.
pub(super) fn storage_type_of(storage: &p::DatanodeStorageProto) -> StorageType {
    let named = storage.storage_type.and_then(|number| p::StorageTypeProto::try_from(number).ok());
    named.map_or(StorageType::Disk, StorageType::from)
}

pub(super) fn register_command() -> d::DatanodeCommandProto {
    d::DatanodeCommandProto {
        cmd_type: d::datanode_command_proto::Type::RegisterCommand as i32,
        register_cmd: Some(d::RegisterCommandProto {}),
        ..d::DatanodeCommandProto::default()
    }
}

fn command_of(pool: &str, command: Command) -> d::DatanodeCommandProto {
    let blocks = match command {
        Command::Register => return register_command(),
        Command::Recover(recoveries) => return recovery_command(pool, &recoveries),
        Command::BalancingRate(bandwidth) => return balancing_rate_command(bandwidth),
        Command::Transfer(transfers) => transfer_command(pool, transfers),
        Command::Invalidate(blocks) => d::BlockCommandProto {
            action: d::block_command_proto::Action::Invalidate as i32,
            block_pool_id: pool.to_owned(),
            blocks: blocks.into_iter().map(wire::block).collect(),
            ..d::BlockCommandProto::default()
        },
    };
    d::DatanodeCommandProto {
        cmd_type: d::datanode_command_proto::Type::BlockCommand as i32,
        blk_cmd: Some(blocks),
        ..d::DatanodeCommandProto::default()
    }
}

fn balancing_rate_command(bandwidth: u64) -> d::DatanodeCommandProto {
    d::DatanodeCommandProto {
        cmd_type: d::datanode_command_proto::Type::BalancerBandwidthCommand as i32,
        balancer_cmd: Some(d::BalancerBandwidthCommandProto { bandwidth }),
        ..d::DatanodeCommandProto::default()
    }
}

fn recovery_command(pool: &str, recoveries: &[Recovery]) -> d::DatanodeCommandProto {
    let blocks = recoveries.iter().map(|recovery| p::RecoveringBlockProto {
        new_gen_stamp: recovery.stamp.0,
        block: wire::located_at(pool, recovery.block, 0, &recovery.places),
        truncate_block: recovery.truncation.map(wire::block),
        ..p::RecoveringBlockProto::default()
    });
    d::DatanodeCommandProto {
        cmd_type: d::datanode_command_proto::Type::BlockRecoveryCommand as i32,
        recovery_cmd: Some(d::BlockRecoveryCommandProto { blocks: blocks.collect() }),
        ..d::DatanodeCommandProto::default()
    }
}

fn transfer_command(pool: &str, transfers: Vec<Transfer>) -> d::BlockCommandProto {
    let mut command = d::BlockCommandProto {
        action: d::block_command_proto::Action::Transfer as i32,
        block_pool_id: pool.to_owned(),
        ..d::BlockCommandProto::default()
    };
    for Transfer { block, targets } in transfers {
        command.blocks.push(wire::block(block));
        let datanodes = targets.iter().map(|target| wire::place_info(&target.server)).collect();
        command.targets.push(p::DatanodeInfosProto { datanodes });
        let storage_uuids = targets.iter().map(|target| target.storage.to_string()).collect();
        command.target_storage_uuids.push(p::StorageUuidsProto { storage_uuids });
        let storage_types =
            targets.iter().map(|target| p::StorageTypeProto::from(target.storage_type) as i32).collect();
        command.target_storage_types.push(p::StorageTypesProto { storage_types });
    }
    command
}
