//! The data servers and disks that were reported as slow, as `NameNodeStatus` has them: JSON inside a text.

use super::Look;
use ::blocks::{DataServer, SlowDisk, Suspicion};
use serde_json::{Map, Value, json};

/// So many are told, as in Hadoop without `dfs.datanode.max.nodes.to.report`.
const SHOWN_MAX: usize = 5;

/// The address by which Hadoop's reports name the server that has made them.
fn ipc_address(server: &DataServer) -> String {
    format!("{}:{}", server.registration.ip, server.registration.ipc_port)
}

/// `null` while there are no reports.
pub fn peers(look: &Look<'_>) -> Value {
    let suspicions = look.core.partition.blocks.lock().suspicions(look.core.moment());
    let shown: Vec<Value> = suspicions.iter().take(SHOWN_MAX).map(suspicion).collect();
    as_text(shown)
}

fn suspicion(suspicion: &Suspicion) -> Value {
    let mut reports: Vec<(String, Value)> = suspicion
        .reports
        .iter()
        .map(|(by, outlier)| {
            let by = ipc_address(by);
            let report = json!({
                "ReportingNode": by,
                "ReportedLatency": outlier.latency_ms,
                "MedianLatency": outlier.median_ms,
                "MadLatency": outlier.deviation_ms,
                "UpperLimitLatency": outlier.limit_ms,
            });
            (by, report)
        })
        .collect();
    reports.sort_by(|(one, _), (other, _)| one.cmp(other));
    let reports: Vec<Value> = reports.into_iter().map(|(_, report)| report).collect();
    json!({ "SlowNode": suspicion.address, "SlowPeerLatencyWithReportingNodes": reports })
}

/// `null` while there are no reports.
pub fn disks(look: &Look<'_>) -> Value {
    let slow = look.core.partition.blocks.lock().slow_disks(look.core.moment());
    as_text(slow.iter().take(SHOWN_MAX).map(|(server, of)| disk(server, of)).collect())
}

fn disk(server: &DataServer, disk: &SlowDisk) -> Value {
    let latencies = [("METADATA", disk.metadata_ms), ("READ", disk.read_ms), ("WRITE", disk.write_ms)];
    let latencies: Map<String, Value> =
        latencies.into_iter().filter_map(|(op, ms)| Some((op.to_owned(), ms?.into()))).collect();
    json!({ "SlowDiskID": format!("{}:{}", ipc_address(server), disk.path), "Latencies": latencies })
}

fn as_text(shown: Vec<Value>) -> Value {
    if shown.is_empty() { Value::Null } else { Value::Array(shown).to_string().into() }
}
