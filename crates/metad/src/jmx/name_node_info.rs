//! `NameNodeInfo`, `NameNodeStatus` and `SnapshotInfo`.

use super::{Look, merged, percent, slow};
use crate::checkpoint;
use ::blocks::DataServer;
use base::{AdminState, BlockId};
use namespace::reads::get_snapshot_listing::{get, snapshottable};
use proto::bean;
use serde_json::{Map, Value, json};
use web::jmx::{Beans, Counters, Record};

/// The release whose protocols and beans are spoken.
const SOFTWARE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The record with the state of the server as a number.
const NAME_NODE: Record = Record { name: "NameNode", counters: Counters::Only(&[]) };
const ACTIVE: u8 = 1;
const STANDBY: u8 = 2;

pub fn put(look: &Look<'_>, beans: &mut Beans<'_>) {
    beans.put(look.name("NameNodeInfo"), bean::FS_NAMESYSTEM, || info(look));
    beans.put_record(look.name("NameNode"), NAME_NODE, "NameNode", || name_node(look));
    beans.put(look.name("NameNodeStatus"), bean::NAME_NODE, || status(look));
    beans.put(look.name("SnapshotInfo"), bean::SNAPSHOT_MANAGER, || snapshots(look));
}

fn info(look: &Look<'_>) -> Value {
    let (core, stats) = (look.core, look.stats());
    let partition = &core.partition;
    let directory = core.config.name_directory.display().to_string();
    let committed = partition.commit.committed().0;
    let versions: std::collections::BTreeMap<&str, u64> = look
        .servers()
        .iter()
        .filter(|server| server.alive)
        .fold(Default::default(), |mut versions, server| {
            *versions.entry(&*server.registration.software_version).or_default() += 1;
            versions
        });
    let lost = lost_files(look);
    let level = partition.tree().namespace.group_level().level;
    // Some attributes are JSON inside a text, as in Hadoop.
    let whole = json!({
        "Version": SOFTWARE_VERSION,
        "SoftwareVersion": SOFTWARE_VERSION,
        "CompileInfo": compiled(look),
        "ClusterId": core.cluster.cluster_id,
        "BlockPoolId": &*core.cluster.block_pool,
        "UpgradeFinalized": level == base::Level::NEWEST,
        "RollingUpgradeStatus": null,
        "Safemode": look.safe_mode().map(|why| format!("Safe mode is ON. {why}")).unwrap_or_default(),
        "Threads": look.process().threads,
        "NNStartedTimeInMillis": look.started_ms(),
        "Total": stats.capacity,
        "Used": stats.dfs_used,
        "Free": stats.remaining,
        "NonDfsUsedSpace": stats.non_dfs_used,
        "BlockPoolUsedSpace": stats.block_pool_used,
        "PercentUsed": percent(stats.dfs_used, stats.capacity),
        "PercentRemaining": percent(stats.remaining, stats.capacity),
        "PercentBlockPoolUsed": percent(stats.block_pool_used, stats.capacity),
        "ProvidedCapacity": 0,
    });
    let blocks = json!({
        "CacheCapacity": 0,
        "CacheUsed": 0,
        "TotalBlocks": look.counts().blocks,
        "NumberOfMissingBlocks": stats.missing,
        "NumberOfMissingBlocksWithReplicationFactorOne": stats.missing_with_replication_one,
        "NumberOfBadlyDistributedBlocks": stats.misplaced,
        "HighestPriorityLowRedundancyReplicatedBlocks": stats.most_endangered,
        "HighestPriorityLowRedundancyECBlocks": 0,
        "CorruptFiles": text(json!(lost)),
        "CorruptFilesCount": lost.len(),
        "NumberOfSnapshottableDirs": look.counts().snapshottable_directories,
        "DistinctVersionCount": versions.len(),
        "DistinctVersions": versions.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect::<Vec<_>>(),
    });
    let servers = json!({
        "LiveNodes": text(live(look)),
        "DeadNodes": text(dead(look)),
        "DecomNodes": text(leaving(look, AdminState::DecommissionInProgress)),
        "EnteringMaintenanceNodes": text(leaving(look, AdminState::EnteringMaintenance)),
        "NodeUsage": text(json!({ "nodeUsage": usage(look) })),
        "NameDirStatuses": text(json!({ "active": { &*directory: "IMAGE_AND_EDITS" }, "failed": {} })),
        "NameJournalStatus": text(json!([{
            "manager": format!("Clover({directory})"),
            "stream": "the journal of this member",
            "disabled": "false",
            "required": "true",
        }])),
        "JournalTransactionInfo": text(json!({
            "LastAppliedOrWrittenTxId": committed.to_string(),
            "MostRecentCheckpointTxId": checkpoint::newest_image(partition).0.to_string(),
        })),
        "VerifyECWithTopologyResult": text(json!({
            "isSupported": "true",
            "resultMessage": "No erasure coding policy is given.",
        })),
    });
    merged(merged(whole, blocks), servers)
}

/// The time of the program's file, and the release, in the words that HDFS's page takes apart.
fn compiled(look: &Look<'_>) -> String {
    let made = jiff::Timestamp::from_millisecond(look.process().program_ms as i64).unwrap_or_default();
    format!("{} by Clover {SOFTWARE_VERSION}", made.strftime("%Y-%m-%dT%H:%MZ"))
}

fn text(value: Value) -> Value {
    value.to_string().into()
}

/// The first files that lack a block, as HDFS shows so many of them.
fn lost_files(look: &Look<'_>) -> Vec<String> {
    const FILES_MAX: usize = 100;
    let partition = &look.core.partition;
    let tree = partition.tree();
    let blocks = partition.blocks.lock();
    let lost = blocks.files_of_lost_blocks(BlockId(0)).take(FILES_MAX);
    lost.filter_map(|(_, inode)| tree.namespace.path_of(inode?)).collect()
}

/// The name under which a server stands in these lists.
fn key(server: &DataServer) -> String {
    format!("{}:{}", server.registration.host_name, server.registration.transfer_port)
}

fn silent_s(look: &Look<'_>, server: &DataServer) -> u64 {
    look.core.moment().ms_since(server.last_heartbeat) / 1_000
}

fn state(of: AdminState) -> &'static str {
    match of {
        AdminState::InService => "In Service",
        AdminState::DecommissionInProgress => "Decommission In Progress",
        AdminState::Decommissioned => "Decommissioned",
        AdminState::EnteringMaintenance => "Entering Maintenance",
        AdminState::InMaintenance => "In Maintenance",
    }
}

fn live(look: &Look<'_>) -> Value {
    let entries = look.servers().iter().filter(|server| server.alive).map(|server| {
        let registration = &server.registration;
        let failures = server.volume_failures.as_deref();
        let minutes = look.core.moment().ms_since(server.last_report) / 60_000;
        let mut shown = json!({
            "infoAddr": format!("{}:{}", registration.ip, registration.info_port),
            "infoSecureAddr": format!("{}:{}", registration.ip, registration.info_secure_port),
            "xferaddr": registration.transfer_address(),
            "location": &*server.rack,
            "uuid": &*registration.uuid,
            "lastContact": silent_s(look, server),
            "usedSpace": server.dfs_used,
            "used": server.dfs_used,
            "adminState": state(server.admin_state),
            "nonDfsUsedSpace": server.non_dfs_used,
            "capacity": server.capacity,
            "numBlocks": server.blocks,
            "version": &*registration.software_version,
            "remaining": server.remaining,
            "blockScheduled": server.blocks_scheduled,
            "blockPoolUsed": server.block_pool_used,
            "blockPoolUsedPercent": percent(server.block_pool_used, server.capacity),
            "volfails": server.failed_volumes,
            "lastBlockReport": minutes,
            "blockPoolUsedPercentStdDev": deviation(&pool_shares(look, server)),
        });
        // Hadoop tells these of a server that has lost a volume only.
        if let Some(failures) = failures {
            shown["failedStorageIDs"] = failures.locations.clone().into();
            shown["lastVolumeFailureDate"] = failures.last_ms.into();
            shown["estimatedCapacityLostTotal"] = failures.capacity_lost.into();
        }
        (key(server), shown)
    });
    Value::Object(entries.collect::<Map<_, _>>())
}

fn dead(look: &Look<'_>) -> Value {
    let entries = look.servers().iter().filter(|server| !server.alive).map(|server| {
        let shown = json!({
            "lastContact": silent_s(look, server),
            "decommissioned": server.admin_state == AdminState::Decommissioned,
            "adminState": state(server.admin_state),
            "xferaddr": server.registration.transfer_address(),
            "location": &*server.rack,
            "uuid": &*server.registration.uuid,
        });
        (key(server), shown)
    });
    Value::Object(entries.collect::<Map<_, _>>())
}

/// The servers on their way out of service, with the blocks that still need them.
fn leaving(look: &Look<'_>, which: AdminState) -> Value {
    // Hadoop's names differ by the way out.
    let (alone, duration) = match which {
        AdminState::DecommissionInProgress => ("decommissionOnlyReplicas", "decommissionDuration"),
        _ => ("maintenanceOnlyReplicas", "maintenanceDuration"),
    };
    let entries = look.servers().iter().filter(|server| server.admin_state == which).map(|server| {
        let mut shown = json!({
            "xferaddr": server.registration.transfer_address(),
            "location": &*server.rack,
            "uuid": &*server.registration.uuid,
            "underReplicatedBlocks": server.blocks_in_need,
            duration: look.core.moment().ms_since(server.admin_state_since),
        });
        if let Some((without_others, of_open_files)) = needed_from(look, server) {
            shown[alone] = without_others.into();
            shown["underReplicateInOpenFiles"] = of_open_files.into();
        }
        (key(server), shown)
    });
    Value::Object(entries.collect::<Map<_, _>>())
}

/// Of the blocks that need the server: those without a replica in service, and those of files that are being written. `None` if these are more than a look
/// at a page should cost.
fn needed_from(look: &Look<'_>, server: &DataServer) -> Option<(usize, usize)> {
    const LOOKS_MAX: usize = 10_000;
    let partition = &look.core.partition;
    let tree = partition.tree();
    let needed = partition.blocks.lock().needed_from(server.uuid(), LOOKS_MAX)?;
    let without_others = needed.iter().filter(|(_, has_others)| !has_others).count();
    let open = needed.iter().filter(|(file, _)| file.is_some_and(|file| tree.namespace.is_open(file)));
    Some((without_others, open.count()))
}

/// How differently full the live servers are.
fn usage(look: &Look<'_>) -> Value {
    let live =
        look.servers().iter().filter(|server| server.alive && server.admin_state == AdminState::InService);
    let mut shares: Vec<f64> =
        live.map(|server| f64::from(percent(server.dfs_used, server.capacity))).collect();
    shares.sort_by(f64::total_cmp);
    let shown = |share: f64| format!("{share:.2}%");
    let (Some(least), Some(most)) = (shares.first(), shares.last()) else {
        return json!({ "min": shown(0.0), "median": shown(0.0), "max": shown(0.0), "stdDev": shown(0.0) });
    };
    let median = shares[shares.len() / 2];
    json!({ "min": shown(*least), "median": shown(median), "max": shown(*most), "stdDev": shown(deviation(&shares)) })
}

/// How far these numbers are from their mean.
fn deviation(numbers: &[f64]) -> f64 {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    (numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// The share of each volume that the pool has used, in percent.
fn pool_shares(look: &Look<'_>, server: &DataServer) -> Vec<f64> {
    let blocks = look.core.partition.blocks.lock();
    let storages = blocks.storages(server.uuid());
    let reports = storages.iter().map(|storage| &storage.report);
    reports.map(|report| f64::from(percent(report.block_pool_used, report.capacity))).collect()
}

fn name_node(look: &Look<'_>) -> Value {
    json!({
        "tag.Context": "dfs",
        "tag.Hostname": look.process().host_name,
        "NameNodeState": if super::is_active(look.core) { ACTIVE } else { STANDBY },
    })
}

fn status(look: &Look<'_>) -> Value {
    json!({
        "NNRole": "NameNode",
        "State": look.state(),
        "HostAndPort": format!("{}:{}", look.process().host_name, look.port),
        "SecurityEnabled": false,
        "LastHATransitionTime": last_transition_ms(look),
        "BytesWithFutureGenerationStamps": look.stats().future_bytes,
        "SlowPeersReport": slow::peers(look),
        "SlowDisksReport": slow::disks(look),
    })
}

/// When this member last began to lead, since 1970; 0 if it has not.
fn last_transition_ms(look: &Look<'_>) -> u64 {
    let me = look.core.partition.member.me().member.0;
    let takeovers = look.core.partition.chronicle.takeovers();
    takeovers
        .iter()
        .rev()
        .find(|takeover| takeover.member == Some(me))
        .and_then(|last| last.ended_at_ms)
        .unwrap_or(0)
}

fn snapshots(look: &Look<'_>) -> Value {
    // The namespace is looked at meanwhile: more are not worth the wait of others.
    const SHOWN_MAX: usize = 10_000;
    let partition = &look.core.partition;
    let caller = partition.service_caller();
    let tree = partition.tree();
    let context = partition.context(&caller, None);
    let mut directories = Vec::new();
    let mut taken = Vec::new();
    for directory in snapshottable(&tree.namespace, &context).unwrap_or_default() {
        let name = String::from_utf8_lossy(directory.status.name);
        let parent = directory.parent.trim_end_matches('/');
        let path = if directory.parent.is_empty() { "/".to_owned() } else { format!("{parent}/{name}") };
        let room = SHOWN_MAX.saturating_sub(taken.len());
        let of_directory = match room {
            0 => Vec::new(),
            _ => get(&tree.namespace, &context, &path).unwrap_or_default(),
        };
        taken.extend(of_directory.iter().take(room).map(|snapshot| {
            let name = String::from_utf8_lossy(snapshot.status.name);
            json!({
                "snapshotID": snapshot.id.0,
                "snapshotDirectory": format!("{}/.snapshot/{name}", path.trim_end_matches('/')),
                "modificationTime": snapshot.status.modified.ms,
                "status": "ACTIVE",
            })
        }));
        directories.push(json!({
            "path": path,
            "snapshotNumber": directory.snapshots,
            "snapshotQuota": directory.quota,
            "modificationTime": directory.status.modified.ms,
            "permission": octal_as_decimal(directory.status.permission.into()),
            "owner": directory.status.owner,
            "group": directory.status.group,
        }));
    }
    json!({ "SnapshottableDirectories": directories, "Snapshots": taken })
}

/// Hadoop shows the rights 0o755 as the number 755.
fn octal_as_decimal(mode: u32) -> u32 {
    format!("{:o}", mode & 0o1777).parse().unwrap_or_default()
}
