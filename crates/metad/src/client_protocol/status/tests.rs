use super::{Name, view};
use base::{InodeId, Timestamp};
use bytes::Bytes;
use namespace::{FileKind, FileStatus};
use proptest::{collection::vec, prelude::*};
use prost::Message;
use proto::{
    answers::{Only, encoded},
    hdfs as p,
};

/// The status of a file as the generated message, which owns its fields.
fn generated(status: &FileStatus<'_>, name: Name) -> p::HdfsFileStatusProto {
    use p::hdfs_file_status_proto::{FileType, Flags};
    let flag = |is_set: bool, flag: Flags| if is_set { flag as u32 } else { 0 };
    p::HdfsFileStatusProto {
        file_type: if status.is_directory() { FileType::IsDir } else { FileType::IsFile } as i32,
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
        flags: Some(flag(status.has_acl, Flags::HasAcl) | flag(status.snapshottable, Flags::SnapshotEnabled)),
        namespace: None,
    }
}

proptest! {
    #[test]
    fn all_that_the_namespace_says_is_told(
        is_directory in any::<bool>(),
        (name, owner, group) in (vec(any::<u8>(), 0..256), "\\PC{0,30}", "\\PC{0,30}"),
        (id, length, block_size) in any::<(u64, u64, u64)>(),
        (modified, accessed) in (0..1u64 << 48, 0..1u64 << 48),
        (permission, replication, children_count, storage_policy) in any::<(u16, u16, u32, u8)>(),
        (snapshottable, has_acl, under_construction) in any::<(bool, bool, bool)>(),
    ) {
        let status = FileStatus {
            id: InodeId(id),
            kind: if is_directory { FileKind::Directory } else { FileKind::File },
            name: &name,
            length,
            permission,
            owner: &owner,
            group: &group,
            modified: Timestamp::from_ms(modified),
            accessed: Timestamp::from_ms(accessed),
            replication,
            block_size,
            children_count,
            storage_policy,
            snapshottable,
            has_acl,
            under_construction,
        };
        for name in [Name::Empty, Name::Own] {
            let expected = p::GetFileInfoResponseProto { fs: Some(generated(&status, name)) };
            prop_assert_eq!(encoded(Only(Some(view(&status, name)))), expected.encode_to_vec());
        }
    }
}
