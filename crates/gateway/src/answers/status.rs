//! Statuses of files, and access control lists.

use super::{named, policies, signed, text};
use client::acl::AclStatus;
use proto::hdfs::{
    DirectoryListingProto, HdfsFileStatusProto,
    hdfs_file_status_proto::{FileType, Flags},
};
use serde_json::{Value, json};

/// The value of `FileStatus`. `pathSuffix` is empty for the path that was asked for.
pub fn file_status(status: &HdfsFileStatusProto) -> Value {
    let kind = match status.file_type() {
        FileType::IsDir => "DIRECTORY",
        FileType::IsFile => "FILE",
        FileType::IsSymlink => "SYMLINK",
    };
    let mut value = json!({
        "accessTime": signed(status.access_time),
        "blockSize": signed(status.blocksize()),
        "childrenNum": status.children_num(),
        "fileId": signed(status.file_id()),
        "group": status.group,
        "length": signed(status.length),
        "modificationTime": signed(status.modification_time),
        "owner": status.owner,
        "pathSuffix": text(&status.path),
        "permission": octal(status.permission.perm),
        "replication": status.block_replication(),
        "storagePolicy": status.storage_policy(),
        "type": kind,
    });
    let has = |flag: Flags| status.flags() & flag as u32 != 0;
    if let Some(target) = status.symlink.as_ref().filter(|_| status.file_type() == FileType::IsSymlink) {
        value["symlink"] = text(target);
    }
    for (flag, name) in [
        (Flags::HasAcl, "aclBit"),
        (Flags::HasCrypt, "encBit"),
        (Flags::HasEc, "ecBit"),
        (Flags::SnapshotEnabled, "snapshotEnabled"),
    ] {
        if has(flag) {
            value[name] = json!(true);
        }
    }
    if let Some(policy) = &status.ec_policy {
        value["ecPolicy"] = json!(policy.name());
        value["ecPolicyObj"] = policies::erasure_coding_in_status(policy);
    }
    value
}

/// The digits of a mode without leading zeros: `644`, `1777`.
fn octal(mode: u32) -> String {
    format!("{:o}", mode & 0o7777)
}

/// One page of a directory.
pub fn directory_listing(page: &DirectoryListingProto) -> Value {
    let entries: Vec<_> = page.partial_listing.iter().map(file_status).collect();
    json!({ "DirectoryListing": {
        "partialListing": { "FileStatuses": { "FileStatus": entries } },
        "remainingEntries": page.remaining_entries,
    }})
}

pub fn acl_status(status: &AclStatus) -> Value {
    let entries: Vec<_> = status.entries.iter().map(ToString::to_string).collect();
    named(
        "AclStatus",
        json!({
            "entries": entries,
            "group": status.group,
            "owner": status.owner,
            "permission": octal(status.mode.into()),
            "stickyBit": status.mode & client::status::STICKY != 0,
        }),
    )
}

/// An item of `Paths`: a status in the form in which Java's own `FileStatus` is written.
pub fn java_file_status(uri: &str, status: &HdfsFileStatusProto) -> Value {
    json!({
        "path": uri,
        "length": signed(status.length),
        "isdir": status.file_type() == FileType::IsDir,
        "block_replication": status.block_replication(),
        "blocksize": signed(status.blocksize()),
        "modification_time": signed(status.modification_time),
        "access_time": signed(status.access_time),
        "permission": octal(status.permission.perm),
        "owner": status.owner,
        "group": status.group,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::hdfs::FsPermissionProto;

    #[test]
    fn a_status_has_hadoops_names() {
        let status = HdfsFileStatusProto {
            file_type: FileType::IsFile as i32,
            path: "ä".as_bytes().to_vec().into(),
            length: 3,
            permission: FsPermissionProto { perm: 0o644 },
            owner: "root".into(),
            group: "supergroup".into(),
            modification_time: 2,
            access_time: 1,
            block_replication: Some(3),
            blocksize: Some(134_217_728),
            file_id: Some(16_388),
            children_num: Some(0),
            flags: Some(Flags::HasAcl as u32),
            ..Default::default()
        };
        // As a NameNode of Hadoop 3.5.0 wrote it.
        let expected = r#"{"accessTime":1,"aclBit":true,"blockSize":134217728,"childrenNum":0,"fileId":16388,"group":"supergroup","length":3,"modificationTime":2,"owner":"root","pathSuffix":"ä","permission":"644","replication":3,"storagePolicy":0,"type":"FILE"}"#;
        assert_eq!(file_status(&status), serde_json::from_str::<Value>(expected).unwrap());
    }
}
