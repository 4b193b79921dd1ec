//! The beans of a DataNode, as HDFS's web pages and monitors read them from `/jmx`.
//!
//! Names and types are those of a Hadoop 3.5.0. An attribute that describes no part of Clover is left out, or tells the
//! number that is true: nothing is cached, and no block is erasure-coded.

use crate::{
    metadata::{handshake::SOFTWARE_VERSION, progress::Progress},
    state::State,
};
use blockstore::{StorageReport, scanner::figures::ScanFigures};
use env::ProcessFacts;
use measures::Figures;
use proto::bean;
use serde_json::{Map, Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::sync::watch;
use web::jmx::{Bean, BeanSource, process_beans};

/// The service that these beans are of.
const SERVICE: &str = "DataNode";

/// `progress`: how far this server has come with each metadata server of its configuration, in their order.
pub fn source(state: &Arc<State>, progress: &[watch::Receiver<Progress>]) -> BeanSource {
    let (state, progress) = (state.clone(), progress.to_vec());
    Arc::new(move || {
        let process = ProcessFacts::now();
        let reports = state.volumes.storage_reports();
        let mut beans = process_beans(SERVICE, &process);
        beans.push(info(&state, &reports, &progress));
        beans.extend(dataset(&state, &reports, &process));
        beans.push(activity(&state, &process));
        beans
    })
}

fn name(of: &str) -> String {
    format!("Hadoop:service={SERVICE},name={of}")
}

fn info(state: &State, reports: &[StorageReport], progress: &[watch::Receiver<Progress>]) -> Bean {
    let identity = &state.identity;
    let servers: Vec<(&String, Progress)> =
        state.config.metadata_servers.iter().zip(progress.iter().map(|seen| seen.borrow().clone())).collect();
    let actors = servers.iter().map(|(address, seen)| {
        json!({
            "NamenodeAddress": address,
            "ActorState": match seen {
                Progress::Serving => "RUNNING",
                Progress::Connecting => "CONNECTING",
                Progress::Refused(_) => "FAILED",
            },
        })
    });
    let pools: Vec<String> = state.pools().map(|pool| pool.id.to_string()).collect();
    let addresses: Map<String, Value> = servers
        .iter()
        .map(|(address, _)| {
            let host = address.rsplit_once(':').map_or(&***address, |(host, _)| host);
            (host.to_owned(), pools.join(",").into())
        })
        .collect();
    let started_ms = state.env.clock.timestamp().ms.saturating_sub(state.uptime_ms());
    let attributes = json!({
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
        "SendPacketDownstreamAvgInfo": null,
        "SlowDisks": null,
    });
    Bean::new(name("DataNodeInfo"), bean::DATA_NODE, attributes)
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

/// The two beans with the figures of all volumes: tools look for either.
fn dataset(state: &State, reports: &[StorageReport], process: &ProcessFacts) -> [Bean; 2] {
    let failed = state.volumes.failed_volumes();
    let directories: Vec<String> =
        reports.iter().map(|report| report.directory.display().to_string()).collect();
    let storage = format!("FSDataset{{dirpath='[{}]'}}", directories.join(", "));
    let common = json!({
        "Capacity": reports.iter().map(|report| report.capacity_bytes).sum::<u64>(),
        "DfsUsed": reports.iter().map(|report| report.used_bytes).sum::<u64>(),
        "Remaining": reports.iter().map(|report| report.remaining_bytes).sum::<u64>(),
        "NumFailedVolumes": failed.len(),
        "EstimatedCapacityLostTotal": 0,
        "CacheUsed": 0,
        "CacheCapacity": 0,
        "NumBlocksCached": 0,
        "NumBlocksFailedToCache": 0,
        "PendingAsyncDeletions": 0,
    });
    let with = |mut attributes: Value, others: Value| {
        if let (Some(attributes), Value::Object(others)) = (attributes.as_object_mut(), others) {
            attributes.extend(others);
        }
        attributes
    };
    let one = json!({
        "tag.Context": "FSDatasetState",
        "tag.Hostname": process.host_name,
        "tag.StorageInfo": storage,
        "NumBlocksFailedToUnCache": 0,
    });
    let other = json!({
        "StorageInfo": storage,
        "FailedStorageLocations": failed,
        "NumBlocksFailedToUncache": 0,
    });
    let of_server = name(&format!("FSDatasetState-{}", state.identity.uuid));
    [
        Bean::new(name("FSDatasetState"), "FSDatasetState", with(common.clone(), one)),
        Bean::new(of_server, bean::FS_DATASET, with(common, other)),
    ]
}

fn activity(state: &State, process: &ProcessFacts) -> Bean {
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
    let address = format!("{}-{}", state.identity.hostname, state.identity.transfer_addr.port());
    let bean = format!("DataNodeActivity-{address}");
    Bean::new(name(&bean), bean, Value::Object(attributes))
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

fn mean_ms(figures: &Figures) -> f64 {
    figures.mean_ns() as f64 / 1e6
}
