//! The output for programs: one JSON object a line.

use super::format;
use client::{ContentSummary, FileKind, FileStatus};
use serde_json::{Value, json};

pub fn of_status(shown: &str, status: &FileStatus) -> Value {
    json!({
        "path": shown,
        "type": match status.kind {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Symlink => "symlink",
        },
        "length": status.length,
        "permission": format!("{:o}", status.mode),
        "mode": format::mode(status.mode),
        "owner": status.owner,
        "group": status.group,
        "modification_time": status.modified_ms,
        "access_time": status.accessed_ms,
        "replication": status.replication,
        "block_size": status.block_size,
        "file_id": status.file_id,
        "children": status.children,
    })
}

pub fn of_summary(shown: &str, summary: &ContentSummary) -> Value {
    json!({
        "path": shown,
        "length": summary.length,
        "files": summary.files,
        "directories": summary.directories,
        "space_consumed": summary.space_consumed,
        "name_quota": summary.name_quota,
        "space_quota": summary.space_quota,
    })
}
