//! The operations that change the tree, one file each: what it promises, `Request`, the edit, `plan` and
//! `apply`.
//!
//! Some failures are common to the plans, and their own lists name them in short:
//!
//! - *The path cannot be resolved*: it is no absolute path ([`base::FsError::InvalidPath`]), names an inode by a number
//!   that nothing has ([`base::FsError::NotFound`]), leads through a file or through a directory that the caller may not
//!   search ([`base::FsError::AccessDenied`]), or leads into a snapshot ([`base::FsError::SnapshotReadOnly`]). A path for
//!   something new may have no colon, and fails with [`base::FsError::ParentNotDirectory`] if it leads through a file.
//! - *The caller may not* do something, is not the owner or not the superuser, or the directory *is protected*:
//!   [`base::FsError::AccessDenied`].
//! - Something *does not exist*, or *is not a file*: [`base::FsError::NotFound`].
//! - *The caller does not write the file*: the file does not exist or is deleted ([`base::FsError::NotFound`]), is not
//!   open or is another client's ([`base::FsError::LeaseExpired`]), or is being truncated ([`base::FsError::Io`]). A file
//!   that the request names by its inode is found wherever it is now; the path counts for the others.
//! - *The file is being written*, by another client or by this one: [`base::FsError::RecoveryInProgress`] if it is being
//!   recovered, or shall be because its writer is silent for too long; else [`base::FsError::AlreadyBeingCreated`].
//! - *There is no room*: a name is too long ([`base::FsError::ComponentTooLong`]), the directory has as many entries as it
//!   may ([`base::FsError::DirectoryFull`]), the tree has as many objects as it may, or no inode id is left
//!   ([`base::FsError::Io`]).
//! - *A quota has no room* ([`base::FsError::NamespaceQuotaExceeded`], [`base::FsError::SpaceQuotaExceeded`],
//!   [`base::FsError::TypeQuotaExceeded`]). Edits that the service makes of itself do not fail for that.

pub mod abandon_block;
pub mod add_block;
pub mod allow_deletions;
pub mod allow_snapshot;
pub mod append;
pub mod cleanup;
pub mod commit_block_synchronization;
pub mod complete;
pub mod concat;
pub mod create;
pub mod create_snapshot;
pub mod delete;
pub mod delete_snapshot;
pub mod fsync;
pub mod mkdirs;
pub mod raise_level;
pub mod recover_lease;
pub mod release_lease;
pub mod rename;
pub mod rename2;
pub mod rename_snapshot;
pub mod set_acl;
pub mod set_erasure_coding;
pub mod set_owner;
pub mod set_permission;
pub mod set_quota;
pub mod set_replication;
pub mod set_storage_policy;
pub mod set_times;
pub mod set_xattrs;
pub mod sweep;
pub mod truncate;
pub mod truncate_copy;
pub mod update_block_for_pipeline;
pub mod update_pipeline;
