//! Snapshots, and the changes between two of them.

use super::{named, signed, status::file_status, text};
use crate::error::{Refusal, Result};
use bytes::Bytes;
use proto::{
    hdfs::{
        SnapshotDiffReportEntryProto, SnapshotDiffReportListingEntryProto, SnapshotDiffReportListingProto,
        SnapshotDiffReportProto, SnapshotStatusProto, SnapshottableDirectoryStatusProto,
    },
    snapshot_diff,
};
use serde_json::{Value, json};

pub fn diff(report: &SnapshotDiffReportProto) -> Result<Value> {
    let entries: Vec<_> = report.diff_report_entries.iter().map(entry).collect::<Result<_>>()?;
    Ok(named(
        "SnapshotDiffReport",
        json!({
            "diffList": entries,
            "fromSnapshot": report.from_snapshot,
            "snapshotRoot": report.snapshot_root,
            "toSnapshot": report.to_snapshot,
        }),
    ))
}

fn entry(entry: &SnapshotDiffReportEntryProto) -> Result<Value> {
    let kind = match &*entry.modification_label {
        snapshot_diff::CREATED => "CREATE",
        snapshot_diff::MODIFIED => "MODIFY",
        snapshot_diff::DELETED => "DELETE",
        snapshot_diff::RENAMED => "RENAME",
        other => return Err(Refusal::io(format!("{other:?} is no kind of change"))),
    };
    let mut value = json!({ "sourcePath": text(&entry.fullpath), "type": kind });
    if let Some(target) = present(entry.target_path.as_ref()) {
        value["targetPath"] = text(target);
    }
    Ok(value)
}

/// A target that is there; servers send an empty one where there is none.
fn present(target: Option<&Bytes>) -> Option<&Bytes> {
    target.filter(|target| !target.is_empty())
}

pub fn diff_page(page: &SnapshotDiffReportListingProto) -> Value {
    let list = |entries: &[SnapshotDiffReportListingEntryProto]| -> Vec<Value> {
        entries
            .iter()
            .map(|entry| {
                let mut value = json!({
                    "dirId": signed(entry.dir_id),
                    "fileId": signed(entry.file_id()),
                    "isReference": entry.is_reference,
                    "sourcePath": text(&entry.fullpath),
                });
                if let Some(target) = present(entry.target_path.as_ref()) {
                    value["targetPath"] = text(target);
                }
                value
            })
            .collect()
    };
    let (last_path, last_index) = match &page.cursor {
        Some(cursor) => (text(&cursor.start_path), cursor.index),
        None => (json!(""), -1),
    };
    named(
        "SnapshotDiffReportListing",
        json!({
            "createList": list(&page.created_entries),
            "deleteList": list(&page.deleted_entries),
            "isFromEarlier": page.is_from_earlier,
            "lastIndex": last_index,
            "lastPath": last_path,
            "modifyList": list(&page.modified_entries),
        }),
    )
}

/// `null` where there is none, as in Hadoop.
pub fn directories(list: &[SnapshottableDirectoryStatusProto]) -> Value {
    let directory = |one: &SnapshottableDirectoryStatusProto| {
        let parent = if one.parent_fullpath.is_empty() { json!("/") } else { text(&one.parent_fullpath) };
        json!({
            "dirStatus": file_status(&one.dir_status),
            "parentFullPath": parent,
            "snapshotNumber": one.snapshot_number,
            "snapshotQuota": one.snapshot_quota,
        })
    };
    let list: Vec<_> = list.iter().map(directory).collect();
    named("SnapshottableDirectoryList", if list.is_empty() { Value::Null } else { json!(list) })
}

pub fn list(snapshots: &[SnapshotStatusProto]) -> Value {
    let snapshot = |one: &SnapshotStatusProto| {
        let parent = String::from_utf8_lossy(&one.parent_fullpath);
        let name = String::from_utf8_lossy(&one.dir_status.path);
        json!({
            "deletionStatus": if one.is_deleted { "DELETED" } else { "ACTIVE" },
            "dirStatus": file_status(&one.dir_status),
            "fullPath": format!("{}/.snapshot/{name}", parent.trim_end_matches('/')),
            "snapshotID": one.snapshot_id,
        })
    };
    named("SnapshotList", snapshots.iter().map(snapshot).collect::<Vec<_>>())
}
