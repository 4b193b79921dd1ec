//! Statuses as answers tell them, from what the namespace says.

use namespace::FileStatus;
use proto::answers;

/// The name that a status carries: Hadoop sends none to a client that has asked by path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Empty,
    Own,
}

#[inline]
pub fn view<'a>(status: &FileStatus<'a>, name: Name) -> answers::FileStatus<'a> {
    answers::FileStatus {
        is_directory: status.is_directory(),
        path: match name {
            Name::Empty => b"",
            Name::Own => status.name,
        },
        length: status.length,
        permission: status.permission,
        owner: status.owner,
        group: status.group,
        modified: status.modified.ms,
        accessed: status.accessed.ms,
        replication: status.replication,
        block_size: status.block_size,
        file_id: status.id.0,
        children: if status.is_directory() { status.children_count } else { 0 },
        storage_policy: status.storage_policy,
        has_acl: status.has_acl,
        snapshot_enabled: status.snapshottable,
    }
}

#[cfg(test)]
#[path = "status/tests.rs"]
mod tests;
