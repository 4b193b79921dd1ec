//! The RPC port of a data server: a few questions of clients and administrators, and block recovery.

use crate::{
    convert, disk_balancer, metadata::handshake::SOFTWARE_VERSION, pool::Pool, reconfigure, recovery,
    refusal::refuse, state::State,
};
use base::{ExtendedBlock, FsError};
use blockstore::BlockStore;
use proto::{
    exception,
    hdfs::{
        CancelPlanRequestProto, CancelPlanResponseProto, DatanodeLocalInfoProto, DatanodeVolumeInfoProto,
        DiskBalancerSettingRequestProto, DiskBalancerSettingResponseProto, GetBalancerBandwidthResponseProto,
        GetDatanodeInfoResponseProto, GetReplicaVisibleLengthRequestProto,
        GetReplicaVisibleLengthResponseProto, GetVolumeReportResponseProto,
        ListReconfigurablePropertiesResponseProto, RefreshNamenodesResponseProto,
        ShutdownDatanodeResponseProto, StartReconfigurationResponseProto, StorageTypeProto,
        SubmitDiskBalancerPlanRequestProto, SubmitDiskBalancerPlanResponseProto,
        TriggerBlockReportRequestProto, TriggerBlockReportResponseProto,
    },
    protocol::{CLIENT_DATANODE, INTER_DATANODE, RECONFIGURATION, VERSION},
};
use rpc::{Call, Replier, RpcError, Service};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

/// A server that is ordered to end goes on for so long, half as long as in HDFS, so that its answer goes out first.
const END_DELAY: Duration = Duration::from_millis(500);

/// Answers once the rest of the server stands: the port is bound before, since it is announced.
#[derive(Default)]
pub struct IpcService {
    state: OnceLock<Arc<State>>,
}

impl IpcService {
    pub fn attach(&self, state: Arc<State>) {
        let _ = self.state.set(state);
    }
}

impl Service for IpcService {
    fn protocols(&self) -> &[(&'static str, u64)] {
        &[(CLIENT_DATANODE, VERSION), (INTER_DATANODE, VERSION), (RECONFIGURATION, VERSION)]
    }

    fn call(&self, call: Call, reply: Replier) {
        let Some(state) = self.state.get() else {
            return reply.fs_error(&FsError::Retry("The data server is starting.".into()));
        };
        match call.protocol {
            INTER_DATANODE => recovery::answer(state, &call, reply),
            _ => answer_client(state, &call, reply),
        }
    }
}

fn answer_client(state: &Arc<State>, call: &Call, reply: Replier) {
    match call.method {
        "getReplicaVisibleLength" => reply.result(visible_length(state, call)),
        "getDatanodeInfo" => reply.ok(&GetDatanodeInfoResponseProto { local_info: local_info(state) }),
        "getVolumeReport" => {
            let state = state.clone();
            tokio::spawn(async move {
                let pools: Vec<_> = state.pools().cloned().collect();
                let reports = state.in_office(move |volumes| volume_report(volumes, &pools)).await;
                reply.ok(&GetVolumeReportResponseProto { volume_info: reports });
            });
        }
        "triggerBlockReport" => reply.result(trigger_report(state, call)),
        // The metadata servers stand in the configuration file.
        "refreshNamenodes" => {
            reply.result(require_owner(state, call).map(|()| RefreshNamenodesResponseProto {}))
        }
        "getBalancerBandwidth" => {
            reply.ok(&GetBalancerBandwidthResponseProto { bandwidth: state.moves.rate() })
        }
        "listReconfigurableProperties" => {
            reply.result(require_owner(state, call).map(|()| ListReconfigurablePropertiesResponseProto {
                name: reconfigure::PROPERTIES.map(String::from).to_vec(),
            }))
        }
        // A start of 0: Hadoop's clients say that no task was found.
        "getReconfigurationStatus" => {
            reply.result(require_owner(state, call).map(|()| state.reconfiguration.status()))
        }
        "startReconfiguration" => match require_owner(state, call) {
            Ok(()) => {
                tracing::info!(caller = %call.caller, "the configuration is to be read again");
                let state = state.clone();
                tokio::spawn(async move {
                    let started = reconfigure::start(&state).await;
                    reply.result(
                        started
                            .map(|()| StartReconfigurationResponseProto {})
                            .map_err(|error| RpcError::application(exception::IO, error)),
                    );
                });
            }
            Err(error) => reply.error(error),
        },
        "submitDiskBalancerPlan"
        | "cancelDiskBalancerPlan"
        | "queryDiskBalancerPlan"
        | "getDiskBalancerSetting" => balance_disks(state, call, reply),
        "shutdownDatanode" => match require_owner(state, call) {
            Ok(()) => {
                reply.ok(&ShutdownDatanodeResponseProto {});
                let (state, reason) = (state.clone(), format!("{} ordered it", call.caller));
                tokio::spawn(async move {
                    tokio::time::sleep(END_DELAY).await;
                    state.request_end(&reason);
                });
            }
            Err(error) => reply.error(error),
        },
        "getBlockLocalPathInfo" => reply.fs_error(&FsError::AccessDenied(
            "Can't continue with getBlockLocalPathInfo() authorization. The user is not configured in \
             dfs.block.local-path-access.user: this server gives its files to nobody"
                .into(),
        )),
        other => {
            reply.fs_error(&FsError::Unsupported(format!("{other} is not offered by this data server.")))
        }
    }
}

/// The calls of Hadoop's disk balancer. They look at the disks, which may hang.
fn balance_disks(state: &Arc<State>, call: &Call, reply: Replier) {
    let refused = |error: String| RpcError::application(exception::DISK_BALANCER, error);
    if let Err(error) = require_owner(state, call) {
        return reply.error(error);
    }
    let owned = state.clone();
    match call.method {
        "submitDiskBalancerPlan" => match call.decode::<SubmitDiskBalancerPlanRequestProto>() {
            Ok(request) => {
                tracing::info!(caller = %call.caller, plan = request.plan_id, "the disk balancer has a plan");
                tokio::spawn(async move {
                    let submitted = {
                        let state = owned.clone();
                        owned.in_office(move |_| disk_balancer::run::submit(&state, &request)).await
                    };
                    reply.result(submitted.map(|()| SubmitDiskBalancerPlanResponseProto {}).map_err(refused));
                });
            }
            Err(error) => reply.error(error),
        },
        "cancelDiskBalancerPlan" => {
            let cancelled = call
                .decode::<CancelPlanRequestProto>()
                .and_then(|request| state.disk_balancer.cancel(&request.plan_id).map_err(refused));
            reply.result(cancelled.map(|()| CancelPlanResponseProto {}));
        }
        "queryDiskBalancerPlan" => reply.ok(&state.disk_balancer.status()),
        _ => match call.decode::<DiskBalancerSettingRequestProto>() {
            Ok(request) => {
                tokio::spawn(async move {
                    let found = {
                        let state = owned.clone();
                        owned.in_office(move |_| disk_balancer::run::setting(&state, &request.key)).await
                    };
                    reply.result(
                        found.map(|value| DiskBalancerSettingResponseProto { value }).map_err(refused),
                    );
                });
            }
            Err(error) => reply.error(error),
        },
    }
}

fn visible_length(state: &State, call: &Call) -> Result<GetReplicaVisibleLengthResponseProto, RpcError> {
    let request: GetReplicaVisibleLengthRequestProto = call.decode()?;
    let block = convert::extended_from_proto(&request.block);
    visible_length_of(state, &block).map(|length| GetReplicaVisibleLengthResponseProto { length })
}

/// The bytes of the replica that every reader may see.
///
/// # Errors
/// There is no replica, or it has an older stamp.
pub(crate) fn visible_length_of(state: &State, block: &ExtendedBlock) -> Result<u64, RpcError> {
    let facts = state.pool(&block.pool).and_then(|pool| pool.store.facts(&pool.id, block.block.id));
    match facts {
        Ok(facts) if facts.block.generation_stamp >= block.block.generation_stamp => Ok(facts.visible_length),
        // The error is not "not found": a client that hears that from all places takes the block for empty.
        Ok(facts) => Err(RpcError::application(
            exception::IO,
            format!(
                "Replica generation stamp < block generation stamp, block={block}, replica={}",
                facts.block
            ),
        )),
        Err(error) => Err(refuse(&error)),
    }
}

/// Admits only the user that runs this server. The caller's name is believed.
fn require_owner(state: &State, call: &Call) -> Result<(), RpcError> {
    if *call.caller.user == *state.config.user {
        return Ok(());
    }
    let message = format!("Access denied for user {}. Superuser privilege is required", call.caller.user);
    Err(FsError::AccessDenied(message).into())
}

fn trigger_report(state: &State, call: &Call) -> Result<TriggerBlockReportResponseProto, RpcError> {
    require_owner(state, call)?;
    let request: TriggerBlockReportRequestProto = call.decode()?;
    for pool in state.pools() {
        match request.incremental {
            true => pool.reporter.flush(),
            false => pool.reporter.request_full_report(),
        }
    }
    Ok(TriggerBlockReportResponseProto {})
}

fn local_info(state: &State) -> DatanodeLocalInfoProto {
    DatanodeLocalInfoProto {
        software_version: SOFTWARE_VERSION.into(),
        config_version: "core-3.5.0,hdfs-3.5.0".into(),
        uptime: state.uptime_ms() / 1_000,
    }
}

fn volume_report(volumes: &BlockStore, pools: &[Arc<Pool>]) -> Vec<DatanodeVolumeInfoProto> {
    let counts: Vec<_> = pools.iter().flat_map(|pool| pool.store.block_reports()).collect();
    let mut reports = Vec::new();
    for report in volumes.storage_reports() {
        let here = counts.iter().filter(|volume| volume.storage_id == report.storage_id);
        reports.push(DatanodeVolumeInfoProto {
            path: report.directory.display().to_string(),
            storage_type: StorageTypeProto::from(report.storage_type) as i32,
            used_space: report.used_bytes,
            free_space: report.remaining_bytes,
            reserved_space: report.reserved_bytes,
            reserved_space_for_replicas: 0,
            num_blocks: here.map(|volume| volume.replicas.len() as u64).sum(),
        });
    }
    reports
}
