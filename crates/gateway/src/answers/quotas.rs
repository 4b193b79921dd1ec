//! Counts below a directory, and what they may be.

use super::{named, signed};
use proto::hdfs::{ContentSummaryProto, QuotaUsageProto, StorageTypeQuotaInfosProto};
use serde_json::{Map, Value, json};

pub fn content_summary(summary: &ContentSummaryProto) -> Value {
    named(
        "ContentSummary",
        json!({
            "directoryCount": signed(summary.directory_count),
            "ecPolicy": summary.erasure_coding_policy(),
            "fileCount": signed(summary.file_count),
            "length": signed(summary.length),
            "quota": signed(summary.quota),
            "snapshotDirectoryCount": signed(summary.snapshot_directory_count()),
            "snapshotFileCount": signed(summary.snapshot_file_count()),
            "snapshotLength": signed(summary.snapshot_length()),
            "snapshotSpaceConsumed": signed(summary.snapshot_space_consumed()),
            "spaceConsumed": signed(summary.space_consumed),
            "spaceQuota": signed(summary.space_quota),
            "typeQuota": type_quotas(summary.type_quota_infos.as_ref()),
        }),
    )
}

pub fn quota_usage(usage: &QuotaUsageProto) -> Value {
    named(
        "QuotaUsage",
        json!({
            "fileAndDirectoryCount": signed(usage.file_and_directory_count),
            "quota": signed(usage.quota),
            "spaceConsumed": signed(usage.space_consumed),
            "spaceQuota": signed(usage.space_quota),
            "typeQuota": type_quotas(usage.type_quota_infos.as_ref()),
        }),
    )
}

/// Media without a quota are left out.
fn type_quotas(infos: Option<&StorageTypeQuotaInfosProto>) -> Value {
    let infos = infos.map(|infos| &infos.type_quota_info[..]).unwrap_or_default();
    let limited = infos.iter().filter(|info| info.quota as i64 >= 0);
    let entry = |info: &proto::hdfs::StorageTypeQuotaInfoProto| {
        let figures = json!({ "consumed": signed(info.consumed), "quota": signed(info.quota) });
        (info.r#type().as_str_name().to_owned(), figures)
    };
    Value::Object(limited.map(entry).collect::<Map<_, _>>())
}
