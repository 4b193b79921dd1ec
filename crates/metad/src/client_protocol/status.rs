//! `HdfsFileStatusProto` from what the namespace says.

use bytes::Bytes;
use namespace::FileStatus;
use proto::hdfs as p;

/// Which name the status carries: Hadoop sends none where the client has asked by path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Empty,
    Own,
}

pub fn to_proto(status: &FileStatus<'_>, name: Name) -> p::HdfsFileStatusProto {
    let file_type = if status.is_directory() {
        p::hdfs_file_status_proto::FileType::IsDir
    } else {
        p::hdfs_file_status_proto::FileType::IsFile
    };
    p::HdfsFileStatusProto {
        file_type: file_type as i32,
        path: match name {
            Name::Empty => Bytes::new(),
            Name::Own => Bytes::copy_from_slice(status.name),
        },
        length: status.length,
        permission: p::FsPermissionProto { perm: u32::from(status.permission) },
        owner: status.owner.to_owned(),
        group: status.group.to_owned(),
        modification_time: status.modified.ms,
        access_time: status.accessed.ms,
        symlink: None,
        block_replication: Some(u32::from(status.replication)),
        blocksize: Some(status.block_size),
        locations: None,
        file_id: Some(status.id.0),
        children_num: Some(if status.is_directory() { status.children_count as i32 } else { 0 }),
        file_encryption_info: None,
        storage_policy: Some(u32::from(status.storage_policy)),
        ec_policy: None,
        flags: Some(flags_of(status)),
        namespace: None,
    }
}

fn flags_of(status: &FileStatus<'_>) -> u32 {
    use p::hdfs_file_status_proto::Flags;
    let flag = |is_set: bool, flag: Flags| if is_set { flag as u32 } else { 0 };
    flag(status.has_acl, Flags::HasAcl) | flag(status.snapshottable, Flags::SnapshotEnabled)
}
