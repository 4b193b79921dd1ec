//! The answers of the file system about files, directories and itself.

use crate::{
    block::Checksums,
    quotas::{self, TypeUsage},
};
use proto::hdfs::{self, hdfs_file_status_proto::FileType};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    Symlink,
}

/// One file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// The whole path, without the file system's name.
    pub path: String,
    pub kind: FileKind,
    pub length: u64,
    /// The mode's lower bits: `rwxrwxrwx` and the sticky bit.
    pub mode: u16,
    pub owner: String,
    pub group: String,
    /// Milliseconds since 1970.
    pub modified_ms: u64,
    /// Milliseconds since 1970; 0 for directories.
    pub accessed_ms: u64,
    /// Copies that the file wants; 0 for directories.
    pub replication: u16,
    pub block_size: u64,
    pub file_id: u64,
    /// Entries of a directory, where the server says so.
    pub children: Option<u32>,
    pub has_acl: bool,
    pub erasure_coding: Option<String>,
    /// The id of the storage policy in force, its own or an ancestor's; 0: none is set.
    pub storage_policy: u8,
}

/// The bit that lets only owners remove entries of a directory.
pub const STICKY: u16 = 0o1000;

impl FileStatus {
    /// `parent` is the directory of a listing, or nothing where the path is already whole; servers send only
    /// the last name, or none for the path that was asked for.
    pub(crate) fn from_wire(asked: &str, wire: hdfs::HdfsFileStatusProto) -> Self {
        let name = String::from_utf8_lossy(&wire.path);
        let path = match (&*name, asked) {
            ("", _) => asked.to_owned(),
            (name, "/") => format!("/{name}"),
            (name, asked) => format!("{asked}/{name}"),
        };
        let flags = wire.flags();
        let kind = match wire.file_type() {
            FileType::IsDir => FileKind::Directory,
            FileType::IsFile => FileKind::File,
            FileType::IsSymlink => FileKind::Symlink,
        };
        Self {
            kind,
            length: wire.length,
            mode: (wire.permission.perm & 0o7777) as u16,
            modified_ms: wire.modification_time,
            accessed_ms: wire.access_time,
            replication: wire.block_replication().min(u32::from(u16::MAX)) as u16,
            block_size: wire.blocksize(),
            file_id: wire.file_id(),
            children: u32::try_from(wire.children_num()).ok(),
            storage_policy: wire.storage_policy() as u8,
            has_acl: flags & hdfs::hdfs_file_status_proto::Flags::HasAcl as u32 != 0,
            erasure_coding: wire.ec_policy.map(|policy| policy.name.unwrap_or_else(|| policy.id.to_string())),
            owner: wire.owner,
            group: wire.group,
            path,
        }
    }

    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Directory
    }

    pub fn is_file(&self) -> bool {
        self.kind == FileKind::File
    }

    /// The last name of the path; empty for the root.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// The counts of all that lies below a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentSummary {
    pub length: u64,
    pub files: u64,
    pub directories: u64,
    /// Bytes of all copies.
    pub space_consumed: u64,
    /// Names that the directory may hold; nothing where there is no quota.
    pub name_quota: Option<u64>,
    /// Bytes of all copies that the directory may hold.
    pub space_quota: Option<u64>,
    /// The parts of the figures above that only snapshots hold.
    pub snapshot: SnapshotSummary,
    pub erasure_coding: String,
    /// The bytes below by storage type, with the quotas; empty if no type is counted.
    pub types: Vec<TypeUsage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSummary {
    pub length: u64,
    pub files: u64,
    pub directories: u64,
    pub space_consumed: u64,
}

impl From<hdfs::ContentSummaryProto> for ContentSummary {
    fn from(wire: hdfs::ContentSummaryProto) -> Self {
        Self {
            length: wire.length,
            files: wire.file_count,
            directories: wire.directory_count,
            space_consumed: wire.space_consumed,
            name_quota: quotas::limit(wire.quota),
            space_quota: quotas::limit(wire.space_quota),
            snapshot: SnapshotSummary {
                length: wire.snapshot_length(),
                files: wire.snapshot_file_count(),
                directories: wire.snapshot_directory_count(),
                space_consumed: wire.snapshot_space_consumed(),
            },
            erasure_coding: wire.erasure_coding_policy.unwrap_or_default(),
            types: quotas::types(wire.type_quota_infos),
        }
    }
}

/// The file system as a whole, in bytes of all copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsStats {
    pub capacity: u64,
    pub used: u64,
    pub remaining: u64,
    pub under_replicated_blocks: u64,
    pub corrupt_blocks: u64,
    pub missing_blocks: u64,
}

impl From<hdfs::GetFsStatsResponseProto> for FsStats {
    fn from(wire: hdfs::GetFsStatsResponseProto) -> Self {
        Self {
            capacity: wire.capacity,
            used: wire.used,
            remaining: wire.remaining,
            under_replicated_blocks: wire.under_replicated,
            corrupt_blocks: wire.corrupt_blocks,
            missing_blocks: wire.missing_blocks,
        }
    }
}

/// The values that a server would choose for a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerDefaults {
    pub block_size: u64,
    pub bytes_per_checksum: u32,
    pub packet_bytes: u32,
    pub replication: u16,
    pub checksums: Checksums,
    /// Minutes that deleted files stay in the trash; 0 where there is none.
    pub trash_interval_min: u64,
}

impl From<hdfs::FsServerDefaultsProto> for ServerDefaults {
    fn from(wire: hdfs::FsServerDefaultsProto) -> Self {
        Self {
            checksums: match wire.checksum_type() {
                hdfs::ChecksumTypeProto::ChecksumNull => Checksums::None,
                hdfs::ChecksumTypeProto::ChecksumCrc32 => Checksums::Crc32,
                hdfs::ChecksumTypeProto::ChecksumCrc32c => Checksums::Crc32c,
            },
            trash_interval_min: wire.trash_interval(),
            block_size: wire.block_size,
            bytes_per_checksum: wire.bytes_per_checksum,
            packet_bytes: wire.write_packet_size,
            replication: wire.replication.min(u32::from(u16::MAX)) as u16,
        }
    }
}
