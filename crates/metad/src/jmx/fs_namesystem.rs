//! `FSNamesystem`, `FSNamesystemState`, `ReplicatedBlocksState`, `ECBlockGroupsState` and `BlockStats`.

use super::{Look, activity::top_users, merged, percent};
use ::blocks::StorageState;
use base::AdminState;
use proto::bean;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use web::jmx::Bean;

pub fn beans(look: &Look<'_>) -> [Bean; 5] {
    [namesystem(look), state(look), replicated(look), erasure_coded(look), storage_types(look)]
}

/// The attributes that both beans have.
fn common(look: &Look<'_>) -> Value {
    let (stats, counts) = (&look.stats, &look.counts);
    let live = look.servers.iter().filter(|server| server.alive);
    let in_service = live.filter(|server| server.admin_state == AdminState::InService).count();
    let failed_volumes: u64 = look.servers.iter().map(|server| u64::from(server.failed_volumes)).sum();
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
        "EstimatedCapacityLostTotal": 0,
        "ProvidedCapacityTotal": 0,
        "VolumeFailuresTotal": failed_volumes,
        "TotalLoad": stats.xceivers,
        "TotalSyncCount": syncs.count(),
        "CurrentTokensCount": 0,
    })
}

fn namesystem(look: &Look<'_>) -> Bean {
    let (stats, counts) = (&look.stats, &look.counts);
    let gibibytes = |bytes: u64| json!((bytes as f64 / f64::from(1 << 30)).round());
    let committed = look.core.partition.commit.committed().0;
    let own = json!({
        "tag.Context": "dfs",
        "tag.HAState": look.state(),
        "tag.Hostname": look.process.host_name,
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
        "PendingDataNodeMessageCount": stats.postponed,
    });
    let all = [common(look), replicated_attributes(look), erasure_coded_attributes(), own];
    let attributes = all.into_iter().reduce(merged).unwrap_or_default();
    Bean::new(look.name("FSNamesystem"), "FSNamesystem", attributes)
}

fn state(look: &Look<'_>) -> Bean {
    let counts = &look.counts;
    let snapshots = json!({ "SnapshottableDirectories": counts.snapshottable_directories, "Snapshots": counts.snapshots });
    let own = json!({
        "FSState": if look.safe_mode.is_some() { "safeMode" } else { "Operational" },
        "SnapshotStats": snapshots.to_string(),
        "TopUserOpCounts": top_users(look).to_string(),
        "TotalSyncTimes": sync_times_ms(look),
        "NumStaleDataNodes": look.stats.stale_servers,
        "FsLockQueueLength": 0,
        "MaxObjects": 0,
    });
    Bean::new(look.name("FSNamesystemState"), bean::FS_NAMESYSTEM, merged(common(look), own))
}

/// The time that all flushes together took, in milliseconds, as HDFS has it: a text with a blank behind each journal's number.
fn sync_times_ms(look: &Look<'_>) -> String {
    format!("{} ", look.core.partition.member.flush_times().sum_ns / 1_000_000)
}

fn replicated_attributes(look: &Look<'_>) -> Value {
    let stats = &look.stats;
    json!({
        "LowRedundancyReplicatedBlocks": stats.under_replicated,
        "CorruptReplicatedBlocks": stats.corrupt,
        "MissingReplicatedBlocks": stats.missing,
        "MissingReplicationOneBlocks": stats.missing_with_replication_one,
        "BytesInFutureReplicatedBlocks": stats.future_bytes,
        "PendingDeletionReplicatedBlocks": stats.pending_deletions,
        "BadlyDistributedBlocks": stats.misplaced,
        "TotalReplicatedBlocks": look.counts.blocks,
        "HighestPriorityLowRedundancyReplicatedBlocks": stats.most_endangered,
    })
}

fn replicated(look: &Look<'_>) -> Bean {
    let mut attributes = replicated_attributes(look);
    attributes.as_object_mut().expect("made as one").remove("HighestPriorityLowRedundancyReplicatedBlocks");
    Bean::new(look.name("ReplicatedBlocksState"), bean::FS_NAMESYSTEM, attributes)
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
fn erasure_coded(look: &Look<'_>) -> Bean {
    let mut attributes = merged(erasure_coded_attributes(), json!({ "EnabledEcPolicies": "" }));
    attributes.as_object_mut().expect("made as one").remove("HighestPriorityLowRedundancyECBlocks");
    Bean::new(look.name("ECBlockGroupsState"), bean::FS_NAMESYSTEM, attributes)
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

fn storage_types(look: &Look<'_>) -> Bean {
    let mut types: BTreeMap<String, OfType> = BTreeMap::new();
    {
        let blocks = look.core.partition.blocks.lock();
        for server in look.servers.iter().filter(|server| server.alive) {
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
    let attributes = json!({ "StorageTypeStats": shown.collect::<Vec<_>>() });
    Bean::new(look.name("BlockStats"), bean::BLOCK_MANAGER, attributes)
}
