//! `FSNamesystem`, `FSNamesystemState`, `ReplicatedBlocksState`, `ECBlockGroupsState` and `BlockStats`.

use super::{Look, activity::top_users, merged, percent};
use crate::checkpoint;
use ::blocks::StorageState;
use base::AdminState;
use proto::bean;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use web::jmx::{Beans, Counters, Record};

/// The record of metrics that `FSNamesystem` is made from.
const NAMESYSTEM: Record = Record { name: "FSNamesystem", counters: Counters::Only(&[]) };

pub fn put(look: &Look<'_>, beans: &mut Beans<'_>) {
    let own = "FSNamesystem";
    beans.put_record(look.name(own), NAMESYSTEM, own, || namesystem(look));
    beans.put(look.name("FSNamesystemState"), bean::FS_NAMESYSTEM, || state(look));
    beans.put(look.name("ReplicatedBlocksState"), bean::FS_NAMESYSTEM, || replicated(look));
    beans.put(look.name("ECBlockGroupsState"), bean::FS_NAMESYSTEM, erasure_coded);
    beans.put(look.name("BlockStats"), bean::BLOCK_MANAGER, || storage_types(look));
}

/// The attributes that both beans have.
fn common(look: &Look<'_>) -> Value {
    let (stats, counts) = (look.stats(), look.counts());
    let live = look.servers().iter().filter(|server| server.alive);
    let in_service = live.filter(|server| server.admin_state == AdminState::InService).count();
    let failed_volumes: u64 = look.servers().iter().map(|server| u64::from(server.failed_volumes)).sum();
    let failures = look.servers().iter().filter_map(|server| server.volume_failures.as_ref());
    let capacity_lost = failures.fold(0, |sum: u64, of| sum.saturating_add(of.capacity_lost));
    let syncs = look.core.partition.member.flush_times();
    json!({
        "FilesTotal": counts.files + counts.directories,
        "BlocksTotal": counts.blocks,
        "CapacityTotal": stats.capacity,
        "CapacityUsed": stats.dfs_used,
        "CapacityRemaining": stats.remaining,
        "LowRedundancyBlocks": stats.under_replicated,
        "UnderReplicatedBlocks": stats.under_replicated,
        "PendingReplicationBlocks": stats.pending_transfers,
        "PendingReconstructionBlocks": stats.pending_transfers,
        "ScheduledReplicationBlocks": stats.pending_transfers,
        "PendingDeletionBlocks": stats.pending_deletions,
        "NumEncryptionZones": 0,
        "PendingSPSPaths": look.core.partition.tree().namespace.waiting_for_policies(),
        "ReconstructionQueuesInitProgress": 1.0,
        "NumLiveDataNodes": stats.live_servers,
        "NumDeadDataNodes": stats.dead_servers,
        "NumInServiceLiveDataNodes": in_service,
        "NumDecommissioningDataNodes": stats.decommission_in_progress,
        "NumDecomLiveDataNodes": stats.decommissioned_live,
        "NumDecomDeadDataNodes": stats.decommissioned_dead,
        "NumEnteringMaintenanceDataNodes": stats.entering_maintenance,
        "NumInMaintenanceLiveDataNodes": stats.in_maintenance_live,
        "NumInMaintenanceDeadDataNodes": stats.in_maintenance_dead,
        "NumStaleStorages": stats.stale_storages,
        "EstimatedCapacityLostTotal": capacity_lost,
        "ProvidedCapacityTotal": 0,
        "VolumeFailuresTotal": failed_volumes,
        "TotalLoad": stats.xceivers,
        "TotalSyncCount": syncs.count(),
        "CurrentTokensCount": 0,
    })
}

fn namesystem(look: &Look<'_>) -> Value {
    let (stats, counts) = (look.stats(), look.counts());
    let gibibytes = |bytes: u64| json!((bytes as f64 / f64::from(1 << 30)).round());
    let partition = &look.core.partition;
    let committed = partition.commit.committed().0;
    let newest_image = checkpoint::newest_image(partition).0;
    let segments = partition.member.journal().segment_starts();
    let rolled = segments.last().map_or(0, |first| first.0.saturating_sub(1));
    let own = json!({
        "tag.Context": "dfs",
        "tag.HAState": look.state(),
        "tag.Hostname": look.process().host_name,
        "tag.EnabledEcPolicies": "",
        "tag.TotalSyncTimes": sync_times_ms(look),
        "MissingBlocks": stats.missing,
        "MissingReplOneBlocks": stats.missing_with_replication_one,
        "CorruptBlocks": stats.corrupt,
        "BadlyDistBlocks": stats.misplaced,
        "ExcessBlocks": stats.excess,
        "PostponedMisreplicatedBlocks": stats.postponed,
        "SnapshottableDirectories": counts.snapshottable_directories,
        "Snapshots": counts.snapshots,
        "NumFilesUnderConstruction": counts.files_under_construction,
        "StaleDataNodes": stats.stale_servers,
        "CapacityUsedNonDFS": stats.non_dfs_used,
        "CapacityTotalGB": gibibytes(stats.capacity),
        "CapacityUsedGB": gibibytes(stats.dfs_used),
        "CapacityRemainingGB": gibibytes(stats.remaining),
        "LastWrittenTransactionId": committed,
        "LastCheckpointTime": image_time_ms(look),
        "TransactionsSinceLastCheckpoint": committed.saturating_sub(newest_image),
        "TransactionsSinceLastLogRoll": committed.saturating_sub(rolled),
        "PendingDataNodeMessageCount": stats.postponed,
    });
    let all = [common(look), replicated_attributes(look), erasure_coded_attributes(), own];
    all.into_iter().reduce(merged).unwrap_or_default()
}

fn state(look: &Look<'_>) -> Value {
    let counts = look.counts();
    let snapshots = json!({ "SnapshottableDirectories": counts.snapshottable_directories, "Snapshots": counts.snapshots });
    let own = json!({
        "FSState": if look.safe_mode().is_some() { "safeMode" } else { "Operational" },
        "SnapshotStats": snapshots.to_string(),
        "TopUserOpCounts": top_users(look).to_string(),
        "TotalSyncTimes": sync_times_ms(look),
        "NumStaleDataNodes": look.stats().stale_servers,
        // Replicas are deleted from the start on.
        "BlockDeletionStartTime": look.started_ms(),
        "FsLockQueueLength": 0,
        "MaxObjects": 0,
    });
    merged(common(look), own)
}

/// When the newest image was written, since 1970. Before the first one it is the time at which the cluster was made.
fn image_time_ms(look: &Look<'_>) -> u64 {
    let core = look.core;
    let images = core.partition.member.journal().images();
    let file = images.last().map(|image| core.partition.start.images.join(image.file_name()));
    let written = file.and_then(|file| core.env.disk.modified(&file).ok());
    written.map_or(core.cluster.created_ms, |at| at.ms)
}

/// The time that all flushes together took, in milliseconds, as HDFS has it: a text with a blank behind each journal's number.
fn sync_times_ms(look: &Look<'_>) -> String {
    format!("{} ", look.core.partition.member.flush_times().sum_ns / 1_000_000)
}

fn replicated_attributes(look: &Look<'_>) -> Value {
    let stats = look.stats();
    json!({
        "LowRedundancyReplicatedBlocks": stats.under_replicated,
        "CorruptReplicatedBlocks": stats.corrupt,
        "MissingReplicatedBlocks": stats.missing,
        "MissingReplicationOneBlocks": stats.missing_with_replication_one,
        "BytesInFutureReplicatedBlocks": stats.future_bytes,
        "PendingDeletionReplicatedBlocks": stats.pending_deletions,
        "BadlyDistributedBlocks": stats.misplaced,
        "TotalReplicatedBlocks": look.counts().blocks,
        "HighestPriorityLowRedundancyReplicatedBlocks": stats.most_endangered,
    })
}

fn replicated(look: &Look<'_>) -> Value {
    let mut attributes = replicated_attributes(look);
    attributes.as_object_mut().expect("made as one").remove("HighestPriorityLowRedundancyReplicatedBlocks");
    attributes
}

fn erasure_coded_attributes() -> Value {
    json!({
        "LowRedundancyECBlockGroups": 0,
        "CorruptECBlockGroups": 0,
        "MissingECBlockGroups": 0,
        "BytesInFutureECBlockGroups": 0,
        "PendingDeletionECBlocks": 0,
        "TotalECBlockGroups": 0,
        "HighestPriorityLowRedundancyECBlocks": 0,
    })
}

/// No block is erasure-coded.
fn erasure_coded() -> Value {
    let mut attributes = merged(erasure_coded_attributes(), json!({ "EnabledEcPolicies": "" }));
    attributes.as_object_mut().expect("made as one").remove("HighestPriorityLowRedundancyECBlocks");
    attributes
}

#[derive(Default)]
struct OfType {
    capacity: u64,
    used: u64,
    non_dfs: u64,
    remaining: u64,
    pool: u64,
    servers: u64,
    xceivers: u64,
}

fn storage_types(look: &Look<'_>) -> Value {
    let mut types: BTreeMap<String, OfType> = BTreeMap::new();
    // They are looked up before the lock is taken, because looking them up takes it too.
    let servers = look.servers();
    {
        let blocks = look.core.partition.blocks.lock();
        for server in servers.iter().filter(|server| server.alive) {
            let mut seen = Vec::new();
            for storage in blocks.storages(server.uuid()) {
                let report = &storage.report;
                if report.state == StorageState::Failed {
                    continue;
                }
                let name = report.storage_type.name().to_owned();
                let sum = types.entry(name.clone()).or_default();
                sum.capacity += report.capacity;
                sum.used += report.dfs_used;
                sum.non_dfs += report.non_dfs_used;
                sum.remaining += report.remaining;
                sum.pool += report.block_pool_used;
                if !seen.contains(&name) && server.admin_state == AdminState::InService {
                    sum.servers += 1;
                    sum.xceivers += u64::from(server.xceivers);
                    seen.push(name);
                }
            }
        }
    }
    let shown = types.into_iter().map(|(key, of)| {
        let value = json!({
            "capacityTotal": of.capacity,
            "capacityUsed": of.used,
            "capacityNonDfsUsed": of.non_dfs,
            "capacityRemaining": of.remaining,
            "blockPoolUsed": of.pool,
            "nodesInService": of.servers,
            "nodesInServiceXceiverCount": of.xceivers,
            "percentUsed": percent(of.used, of.capacity),
            "percentRemaining": percent(of.remaining, of.capacity),
            "percentBlockPoolUsed": percent(of.pool, of.capacity),
        });
        json!({ "key": key, "value": value })
    });
    json!({ "StorageTypeStats": shown.collect::<Vec<_>>() })
}
