//! The operations of WebHDFS as values: what a method, `op` and the other parameters ask for.

mod parse;
#[cfg(test)]
mod tests;

use base::StorageType;
use client::{acl::AclEntry, xattr::Encoding};
use proto::hdfs::acl_entry_proto::FsActionProto;

/// A question that is answered from the tree or from what the servers know of themselves.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    FileStatus,
    /// The status of a symbolic link itself.
    LinkStatus,
    LinkTarget,
    /// All entries of a directory.
    List,
    /// One page of them, from behind a name.
    ListBatch {
        start_after: String,
    },
    ContentSummary,
    QuotaUsage,
    HomeDirectory,
    TrashRoot,
    TrashRoots {
        of_all_users: bool,
    },
    /// The older form of the places of blocks, and the newer one.
    LocatedBlocks {
        offset: u64,
        length: u64,
    },
    BlockLocations {
        offset: u64,
        length: u64,
    },
    AclStatus,
    Xattrs {
        names: Vec<String>,
        encoding: Encoding,
    },
    XattrNames,
    CheckAccess(FsActionProto),
    StoragePolicies,
    StoragePolicy,
    ErasureCodingPolicy,
    ErasureCodingPolicies,
    ErasureCodingCodecs,
    ServerDefaults,
    FsStatus,
    SnapshotDiff {
        from: String,
        to: String,
    },
    SnapshotDiffPage {
        from: String,
        to: String,
        start_path: String,
        index: i32,
    },
    SnapshottableDirectories,
    Snapshots,
    DelegationToken {
        renewer: String,
    },
}

/// A change of the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    MakeDirectories {
        mode: u16,
        unmasked: Option<u16>,
    },
    MakeSymlink {
        target: String,
        make_parents: bool,
    },
    /// Hadoop's older rename answers whether anything was renamed; with options, the newer one says why not.
    Rename {
        to: String,
        options: Option<RenameOptions>,
    },
    /// `None`: as many copies as a new file has.
    SetReplication(Option<u16>),
    SetOwner {
        owner: Option<String>,
        group: Option<String>,
    },
    SetPermission(u16),
    /// -1: as it is.
    SetTimes {
        modified: i64,
        accessed: i64,
    },
    SetAcl(Vec<AclEntry>),
    ModifyAcl(Vec<AclEntry>),
    RemoveAclEntries(Vec<AclEntry>),
    RemoveDefaultAcl,
    RemoveAcl,
    SetXattr {
        name: String,
        value: Vec<u8>,
        flags: u32,
    },
    RemoveXattr {
        name: String,
    },
    AllowSnapshot,
    DisallowSnapshot,
    CreateSnapshot {
        name: Option<String>,
    },
    RenameSnapshot {
        old: String,
        new: String,
    },
    DeleteSnapshot {
        name: String,
    },
    SetStoragePolicy {
        name: String,
    },
    UnsetStoragePolicy,
    SatisfyStoragePolicy,
    SetQuota {
        names: i64,
        space: i64,
    },
    SetTypeQuota {
        medium: StorageType,
        space: i64,
    },
    EnableErasureCodingPolicy {
        name: String,
    },
    DisableErasureCodingPolicy {
        name: String,
    },
    SetErasureCodingPolicy {
        name: String,
    },
    UnsetErasureCodingPolicy,
    Concat {
        sources: Vec<String>,
    },
    Truncate {
        length: u64,
    },
    Delete {
        recursive: bool,
    },
    RenewToken,
    CancelToken,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenameOptions {
    pub overwrite: bool,
    pub to_trash: bool,
}

/// An operation that moves bytes, or reads them: for a data server, or for a server that streams them itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transfer {
    Open { offset: u64, length: Option<u64> },
    Checksum,
    Create(Box<Create>),
    Append,
}

/// How a file is made. A value that is `None` is the server's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Create {
    pub overwrite: bool,
    pub block_size: Option<u64>,
    pub replication: Option<u16>,
    pub mode: Option<u16>,
    pub unmasked: Option<u16>,
    pub parent_must_exist: bool,
    pub storage_policy: Option<String>,
    pub erasure_coding: Option<String>,
    pub lazy_persist: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    Ask(Question),
    Change(Change),
    Transfer(Transfer),
    /// A browser asks whether a page of another origin may do something.
    Preflight,
}

impl Operation {
    /// Whether it may leave something behind. `OPTIONS` and `GET` do not.
    pub fn changes(&self) -> bool {
        match self {
            Self::Ask(_) | Self::Preflight => false,
            Self::Change(_) => true,
            Self::Transfer(transfer) => transfer.writes(),
        }
    }
}

impl Transfer {
    pub fn writes(&self) -> bool {
        matches!(self, Self::Create(_) | Self::Append)
    }

    /// The name of the operation, as in a message.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Open { .. } => "OPEN",
            Self::Checksum => "GETFILECHECKSUM",
            Self::Create(_) => "CREATE",
            Self::Append => "APPEND",
        }
    }
}
