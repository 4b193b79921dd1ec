//! The beans of a DataNode, as HDFS's web pages and monitors read them from `/jmx`.
//!
//! Names and types are those of a Hadoop 3.5.0. An attribute that describes no part of Clover is left out, or tells the
//! number that is true: nothing is cached, and no block is erasure-coded.

use crate::{
    metadata::{
        handshake::SOFTWARE_VERSION,
        progress::Progress,
        talk::{SharedTalk, Talk},
    },
    state::{RpcCalls, State},
};
use base::Moment;
use blockstore::{StorageReport, scanner::figures::ScanFigures};
use env::ProcessFacts;
use proto::bean;
use serde_json::{Map, Value, json};
use std::{
    cell::LazyCell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::watch;
use web::jmx::{BeanSource, Beans, Counters, Record, RpcPort, mean_ms, put_process_beans, put_rpc_port};

/// The service that these beans are of.
const SERVICE: &str = "DataNode";

/// `progress`: how far this server has come with each metadata server of its configuration, in their order. `talks`: what was said last, likewise.
pub fn source(
    state: &Arc<State>,
    progress: &[watch::Receiver<Progress>],
    talks: &[SharedTalk],
) -> BeanSource {
    let (state, progress, talks) = (state.clone(), progress.to_vec(), talks.to_vec());
    Arc::new(move |beans| put_beans(&state, &progress, &talks, beans))
}

/// The record of metrics that `DataNodeActivity` is made from. A number of things that are there now is no counter.
const ACTIVITY: Record =
    Record { name: "datanode", counters: Counters::AllBut(&["DataNodeActiveXceiversCount"]) };
const DATASET: Record = Record { name: bean::FS_DATASET, counters: Counters::Only(&[]) };

fn put_beans(
    state: &State,
    progress: &[watch::Receiver<Progress>],
    talks: &[SharedTalk],
    beans: &mut Beans<'_>,
) {
    // A fact that no bean needs is not looked up.
    let process = LazyCell::new(ProcessFacts::now);
    let reports = LazyCell::new(|| state.volumes.storage_reports());
    put_process_beans(beans, SERVICE, || process.clone());
    beans.put(name("DataNodeInfo"), bean::DATA_NODE, || info(state, &reports, progress, talks));
    let of_server = name(&format!("FSDatasetState-{}", state.identity.uuid));
    beans.put_record(name("FSDatasetState"), DATASET, "FSDatasetState", || {
        dataset_state(state, &reports, &process)
    });
    beans.put(of_server, bean::FS_DATASET, || dataset(state, &reports));
    let address = format!("{}-{}", state.identity.hostname, state.identity.transfer_addr.port());
    let of_activity = format!("DataNodeActivity-{address}");
    beans.put_record(name(&of_activity), ACTIVITY, of_activity, || activity(state, &process));
    let Some(RpcCalls { calls, load }) = state.rpc.get() else { return };
    let methods = LazyCell::new(|| calls.methods());
    put_rpc_port(beans, SERVICE, state.identity.ipc_port, || {
        let (received_bytes, sent_bytes) = load.traffic();
        RpcPort {
            port: state.identity.ipc_port,
            server_name: "ClientDatanodeProtocol",
            host_name: &process.host_name,
            methods: &methods,
            connections: load.connections(),
            received_bytes,
            sent_bytes,
            dropped: state.env.descriptors.refused(),
        }
    });
}

fn name(of: &str) -> String {
    format!("Hadoop:service={SERVICE},name={of}")
}

fn info(
    state: &State,
    reports: &[StorageReport],
    progress: &[watch::Receiver<Progress>],
    talks: &[SharedTalk],
) -> Value {
    let identity = &state.identity;
    let servers: Vec<(&String, Progress)> =
        state.config.metadata_servers.iter().zip(progress.iter().map(|seen| seen.borrow().clone())).collect();
    let now = state.env.clock.moment();
    let actors =
        servers.iter().zip(talks).map(|((address, seen), talk)| actor(address, seen, &talk.lock(), now));
    let pools: Vec<String> = state.pools().map(|pool| pool.id.to_string()).collect();
    let addresses: Map<String, Value> = servers
        .iter()
        .map(|(address, _)| {
            let host = address.rsplit_once(':').map_or(&***address, |(host, _)| host);
            (host.to_owned(), pools.join(",").into())
        })
        .collect();
    let started_ms = state.env.clock.timestamp().ms.saturating_sub(state.uptime_ms());
    json!({
        "Version": env!("CARGO_PKG_VERSION"),
        "SoftwareVersion": SOFTWARE_VERSION,
        "SecurityEnabled": false,
        "ClusterId": state.pools().next().map(|pool| pool.store.info().cluster.to_string()).unwrap_or_default(),
        "DatanodeHostname": &*identity.hostname,
        "DataPort": identity.transfer_addr.port().to_string(),
        "RpcPort": identity.ipc_port.to_string(),
        "HttpPort": identity.http_port.to_string(),
        "DNStartedTimeInMillis": started_ms,
        "XceiverCount": state.transfer_count(),
        "ActiveTransferThreadCount": state.transfer_count(),
        "XmitsInProgress": state.copy_count(),
        "DatanodeNetworkCounts": [],
        "NamenodeAddresses": Value::Object(addresses).to_string(),
        "BPServiceActorInfo": Value::Array(actors.collect()).to_string(),
        "VolumeInfo": volumes(state, reports).to_string(),
        "SendPacketDownstreamAvgInfo": downstream(state, now),
        "SlowDisks": slow_disks(state, reports, now),
    })
}

/// How this server stands with a metadata server. What has not happened yet is left out.
fn actor(address: &str, seen: &Progress, talk: &Talk, now: Moment) -> Value {
    // That of this server's own port, as in Hadoop.
    let longest = rpc::Limits::default().frame_bytes_max;
    let mut shown = json!({
        "NamenodeAddress": address,
        "ActorState": match seen {
            Progress::Serving => "RUNNING",
            Progress::Connecting => "CONNECTING",
            Progress::Refused(_) => "FAILED",
        },
        "isSlownode": talk.calls_slow.to_string(),
        "maxBlockReportSize": talk.report_bytes_max.to_string(),
        "maxDataLength": longest.to_string(),
    });
    let state = |is_active| if is_active { "active" } else { "standby" };
    let since = |at: Option<Moment>| at.map(|at| (now.ms_since(at) / 1_000).to_string());
    let known = [
        ("NamenodeHaState", talk.is_active.map(|is_active| state(is_active).to_owned())),
        ("BlockPoolID", talk.pool.as_ref().map(ToString::to_string)),
        ("LastHeartbeat", since(talk.heartbeat_sent)),
        ("LastHeartbeatResponseTime", since(talk.heartbeat_answered)),
        ("LastBlockReport", since(talk.reported)),
    ];
    for (name, value) in known {
        if let Some(value) = value {
            shown[name] = value.into();
        }
    }
    shown
}

/// The mean times of packets to other servers, as a JSON object in a text; `null` if they are not measured.
fn downstream(state: &State, now: Moment) -> Value {
    state.slowness.peer_means(now).map_or(Value::Null, |means| {
        let shown: Map<String, Value> = means
            .into_iter()
            .map(|(peer, mean_ms)| (format!("[{peer}]RollingAvgTime"), mean_ms.into()))
            .collect();
        Value::Object(shown).to_string().into()
    })
}

/// The directories of the disks that are slow now, as a JSON list in a text; `null` if disks are not measured.
fn slow_disks(state: &State, reports: &[StorageReport], now: Moment) -> Value {
    if !state.slowness.measures_disks() {
        return Value::Null;
    }
    let slow = state.slowness.slow_disks(reports, now);
    let paths: Vec<&str> = slow.iter().filter_map(|disk| disk.base_path.as_deref()).collect();
    json!(paths).to_string().into()
}

fn volumes(state: &State, reports: &[StorageReport]) -> Value {
    let counts: Vec<_> = state.pools().map(|pool| pool.store.replica_counts()).collect();
    let shown = reports.iter().map(|report| {
        let replicas: u64 = counts.iter().filter_map(|count| count.get(report.volume.0 as usize)).sum();
        let value = json!({
            "numBlocks": replicas,
            "usedSpace": report.used_bytes,
            "freeSpace": report.remaining_bytes,
            "reservedSpace": report.reserved_bytes,
            "reservedSpaceForReplicas": 0,
            "storageType": report.storage_type.name(),
        });
        (report.directory.display().to_string(), value)
    });
    Value::Object(shown.collect())
}

/// The attributes that both beans of the volumes have: tools look for either.
fn both_datasets(state: &State, reports: &[StorageReport]) -> Value {
    let failures = state.volumes.volume_failures().unwrap_or_default();
    json!({
        "Capacity": reports.iter().map(|report| report.capacity_bytes).sum::<u64>(),
        "DfsUsed": reports.iter().map(|report| report.used_bytes).sum::<u64>(),
        "Remaining": reports.iter().map(|report| report.remaining_bytes).sum::<u64>(),
        "NumFailedVolumes": failures.directories.len(),
        "LastVolumeFailureDate": failures.last_ms,
        "EstimatedCapacityLostTotal": failures.capacity_bytes,
        "CacheUsed": 0,
        "CacheCapacity": 0,
        "NumBlocksCached": 0,
        "NumBlocksFailedToCache": 0,
        "PendingAsyncDeletions": 0,
    })
}

/// The volumes, as Hadoop writes them in one text.
fn storage_info(reports: &[StorageReport]) -> String {
    let directories: Vec<String> =
        reports.iter().map(|report| report.directory.display().to_string()).collect();
    format!("FSDataset{{dirpath='[{}]'}}", directories.join(", "))
}

fn dataset_state(state: &State, reports: &[StorageReport], process: &ProcessFacts) -> Value {
    let mut attributes = both_datasets(state, reports);
    attributes["tag.Context"] = "FSDatasetState".into();
    attributes["tag.Hostname"] = process.host_name.clone().into();
    attributes["tag.StorageInfo"] = storage_info(reports).into();
    attributes["NumBlocksFailedToUnCache"] = 0.into();
    attributes
}

fn dataset(state: &State, reports: &[StorageReport]) -> Value {
    let mut attributes = both_datasets(state, reports);
    attributes["StorageInfo"] = storage_info(reports).into();
    attributes["FailedStorageLocations"] = state.volumes.failed_volumes().into();
    attributes["NumBlocksFailedToUncache"] = 0.into();
    attributes
}

fn activity(state: &State, process: &ProcessFacts) -> Value {
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (counters, local) = (&state.counters, &state.short_circuit.figures);
    let mut attributes = Map::from_iter([
        ("tag.SessionId".to_owned(), Value::Null),
        ("tag.Context".to_owned(), "dfs".into()),
        ("tag.Hostname".to_owned(), process.host_name.clone().into()),
        ("BytesRead".to_owned(), of(&counters.bytes_read).into()),
        ("BytesWritten".to_owned(), of(&counters.bytes_written).into()),
        ("BlocksRead".to_owned(), of(&counters.blocks_read).into()),
        ("BlocksWritten".to_owned(), of(&counters.blocks_written).into()),
        ("BlocksGetLocalPathInfo".to_owned(), of(&local.granted).into()),
        ("DataNodeActiveXceiversCount".to_owned(), state.transfer_count().into()),
        ("DatanodeNetworkErrors".to_owned(), of(&counters.transfer_errors).into()),
        ("VolumeFailures".to_owned(), state.volumes.failed_volumes().len().into()),
    ]);
    if let Some(figures) = state.scanners.get().map(|scanners| scanners.figures()) {
        let ScanFigures { blocks, damaged, .. } = figures;
        attributes.insert("BlocksVerified".into(), of(blocks).into());
        attributes.insert("BlockVerificationFailures".into(), of(damaged).into());
    }
    for (operation, figures) in state.counters.operation_figures() {
        let Some(its_name) = hadoops_name(operation) else { continue };
        attributes.insert(format!("{its_name}NumOps"), figures.count().into());
        attributes.insert(format!("{its_name}AvgTime"), mean_ms(&figures).into());
    }
    Value::Object(attributes)
}

/// Hadoop's name of the numbers of an operation; it does not count `transfer`.
fn hadoops_name(operation: &str) -> Option<&'static str> {
    Some(match operation {
        "read" => "ReadBlockOp",
        "write" => "WriteBlockOp",
        "checksum" => "BlockChecksumOp",
        "copy" => "CopyBlockOp",
        "replace" => "ReplaceBlockOp",
        _ => return None,
    })
}
