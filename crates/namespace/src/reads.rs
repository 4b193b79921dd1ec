//! The operations that only look, one file each.
//!
//! They all may fail because *the path cannot be resolved*: it is no absolute path ([`base::FsError::InvalidPath`]),
//! names an inode by a number that nothing has ([`base::FsError::NotFound`]), or leads through a file or through a
//! directory that the caller may not search ([`base::FsError::AccessDenied`]).
//!
//! Where a list says that something *does not exist* or *is not a file*, the error is [`base::FsError::NotFound`]; where
//! *the caller may not* do something, it is [`base::FsError::AccessDenied`].

pub mod check_access;
pub mod get_acl_status;
pub mod get_block_locations;
pub mod get_content_summary;
pub mod get_file_info;
pub mod get_listing;
pub mod get_quota_usage;
pub mod get_snapshot_diff;
pub mod get_snapshot_listing;
pub mod get_storage_policy;
pub mod get_xattrs;
pub mod list_open_files;
