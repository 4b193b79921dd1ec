//! The limits of operations, and the users to whom permissions do not apply.

use crate::{ProtectedDirectories, staging::StagingNames};
use base::{Caller, Timestamp};
use std::sync::Arc;

/// Numbers that bound a request. They are configuration of the member that plans: nothing of them reaches an
/// edit, so members may differ in them without disagreeing about the tree.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one path component; `dfs.namenode.fs-limits.max-component-length`. Never more than 255.
    pub component_length_max: usize,
    /// Characters of a path, as in Hadoop's `HdfsServerConstants.MAX_PATH_LENGTH`.
    pub path_length_max: usize,
    /// Components of a path, as in Hadoop's `HdfsServerConstants.MAX_PATH_DEPTH`.
    pub path_depth_max: usize,
    /// Children of one directory; `dfs.namenode.fs-limits.max-directory-items`.
    pub directory_items_max: u32,
    /// `dfs.namenode.fs-limits.min-block-size`.
    pub block_size_min: u64,
    /// Clover's own: the longest block that the block map can describe.
    pub block_size_max: u64,
    /// `dfs.namenode.fs-limits.max-blocks-per-file`.
    pub blocks_per_file_max: u32,
    /// Files, directories and blocks of the whole tree; 0: as many as memory holds. `dfs.namenode.max.objects`.
    pub objects_max: u64,
    /// `dfs.namenode.replication.min`.
    pub replication_min: u16,
    /// `dfs.replication.max`.
    pub replication_max: u16,
    /// Entries of one listing; `dfs.ls.limit`.
    pub listing_max: usize,
    /// Directories of one batched listing; `dfs.batched.ls.limit`.
    pub batched_listing_paths_max: usize,
    /// Snapshots of one directory; `dfs.namenode.snapshot.max.limit`.
    pub snapshots_per_directory_max: usize,
    /// Snapshots of all directories; `dfs.namenode.snapshot.filesystem.limit`.
    pub snapshots_max: usize,
    /// Entries of one page of a snapshot diff; `dfs.namenode.snapshotdiff.listing.limit`.
    pub snapshot_diff_page_max: usize,
    /// How stale an access time may be; 0 switches access times off. `dfs.namenode.accesstime.precision`.
    pub access_time_precision_ms: u64,
    /// Inodes that a content summary visits before it gives up its place; see [`crate::reads`].
    pub content_summary_step: usize,
    pub xattrs: XattrLimits,
    /// When the file system was made: `/.reserved` shows it.
    pub created: Timestamp,
    pub access: AccessPolicy,
    pub protected: ProtectedDirectories,
    /// New directories with such a name are in the slot of the directory above.
    pub staging_names: StagingNames,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            component_length_max: 255,
            path_length_max: 8_000,
            path_depth_max: 1_000,
            directory_items_max: 1_048_576,
            block_size_min: 1_048_576,
            block_size_max: base::BLOCK_BYTES_MAX,
            blocks_per_file_max: 10_000,
            objects_max: 0,
            replication_min: 1,
            replication_max: 512,
            listing_max: 1_000,
            batched_listing_paths_max: 100,
            snapshots_per_directory_max: 65_536,
            snapshots_max: 65_536,
            snapshot_diff_page_max: 1_000,
            access_time_precision_ms: 3_600_000,
            content_summary_step: 1_000,
            xattrs: XattrLimits::default(),
            created: Timestamp::default(),
            access: AccessPolicy::default(),
            protected: ProtectedDirectories::default(),
            staging_names: StagingNames::default(),
        }
    }
}

/// The limits of extended attributes.
#[derive(Clone, Copy, Debug)]
pub struct XattrLimits {
    /// `dfs.namenode.xattrs.enabled`.
    pub enabled: bool,
    /// The most attributes of an inode in the namespaces `user` and `trusted`;
    /// `dfs.namenode.fs-limits.max-xattrs-per-inode`.
    pub per_inode_max: usize,
    /// The most bytes of a name (without its prefix) and its value together; `dfs.namenode.fs-limits.max-xattr-size`.
    /// Never more than 32 KiB.
    pub bytes_max: usize,
}

impl Default for XattrLimits {
    fn default() -> Self {
        Self { enabled: true, per_inode_max: 32, bytes_max: 16_384 }
    }
}

/// Whether permissions are checked, and who stands above them.
#[derive(Clone, Debug)]
pub struct AccessPolicy {
    /// `dfs.permissions.enabled`.
    pub enabled: bool,
    /// The user that runs the service.
    pub superuser: Arc<str>,
    /// `dfs.permissions.superusergroup`.
    pub supergroup: Arc<str>,
    /// `dfs.namenode.acls.enabled`. Lists that are there already count even if not.
    pub acls_enabled: bool,
    /// `dfs.namenode.posix.acl.inheritance.enabled`: where a default ACL is inherited, the client's umask does
    /// not count, if the client has sent the mode without it.
    pub posix_acl_inheritance: bool,
}

impl AccessPolicy {
    /// Whether permissions do not apply to this user.
    pub fn is_superuser(&self, caller: &Caller) -> bool {
        caller.user == self.superuser || caller.is_member_of(&self.supergroup)
    }
}

impl Default for AccessPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            superuser: "hdfs".into(),
            supergroup: "supergroup".into(),
            acls_enabled: true,
            posix_acl_inheritance: true,
        }
    }
}
