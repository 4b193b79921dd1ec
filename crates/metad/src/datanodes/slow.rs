//! Reads the slow peers and slow disks that data servers report in their heartbeats.

use blocks::{SLOW_REPORTS_PER_SERVER, SlowDisk, SlowPeer, outliers::Outlier};
use proto::hdfs::datanode as d;

/// The first rows; no server has so many slow peers in earnest.
pub fn peers_of(rows: &[d::SlowPeerReportProto]) -> Vec<SlowPeer> {
    let peer = |row: &d::SlowPeerReportProto| SlowPeer {
        address: row.data_node_id().to_owned(),
        // A report without a latency is no report. Data servers before Hadoop 3.4 tell nothing but the latency.
        outlier: Outlier {
            latency_ms: row.aggregate_latency.unwrap_or(f64::NAN),
            median_ms: row.median(),
            deviation_ms: row.mad(),
            limit_ms: row.upper_limit_latency(),
        },
    };
    rows.iter().take(SLOW_REPORTS_PER_SERVER).map(peer).collect()
}

/// The first rows.
pub fn disks_of(rows: &[d::SlowDiskReportProto]) -> Vec<SlowDisk> {
    let disk = |row: &d::SlowDiskReportProto| SlowDisk {
        path: row.base_path().to_owned(),
        metadata_ms: row.mean_metadata_op_latency,
        read_ms: row.mean_read_io_latency,
        write_ms: row.mean_write_io_latency,
    };
    rows.iter().take(SLOW_REPORTS_PER_SERVER).map(disk).collect()
}
