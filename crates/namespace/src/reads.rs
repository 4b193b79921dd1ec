//! The operations that only look, one file each: what it promises, its request, and the look.
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
pub mod get_enclosing_root;
pub mod get_erasure_coding_policy;
pub mod get_ez_for_path;
pub mod get_file_info;
pub mod get_link_target;
pub mod get_listing;
pub mod get_quota_usage;
pub mod get_snapshot_diff;
pub mod get_snapshot_listing;
pub mod get_storage_policy;
pub mod get_xattrs;
pub mod list_open_files;

use crate::kinds::reads;

reads! {
    Status(get_file_info::Request),
    IsClosed(get_file_info::IsClosed),
    BlockSize(get_file_info::BlockSize),
    StatusAndBlocks(get_block_locations::StatusAndBlocks),
    Blocks(get_block_locations::Request),
    Listing(get_listing::Request),
    Batch(get_listing::Batch),
    LinkTarget(get_link_target::Request),
    Access(check_access::Request),
    Acl(get_acl_status::Request),
    Xattrs(get_xattrs::Request),
    AllXattrs(get_xattrs::Listing),
    StoragePolicy(get_storage_policy::Request),
    ErasureCodingPolicy(get_erasure_coding_policy::Request),
    EnclosingRoot(get_enclosing_root::Request),
    EncryptionZone(get_ez_for_path::Request),
    ContentSummary(get_content_summary::Request),
    QuotaUsage(get_quota_usage::Request),
    Snapshottable(get_snapshot_listing::Snapshottable),
    Snapshots(get_snapshot_listing::Request),
    Differences(get_snapshot_diff::Request),
    AllDifferences(get_snapshot_diff::Report),
    OpenFiles(list_open_files::Request),
}
