//! A read of every kind.

use base::InodeId;
use bytes::Bytes;
use namespace::{
    Read,
    reads::{
        check_access, get_acl_status, get_block_locations, get_content_summary, get_enclosing_root,
        get_erasure_coding_policy, get_ez_for_path, get_file_info, get_link_target, get_listing,
        get_quota_usage, get_snapshot_diff, get_snapshot_listing, get_storage_policy, get_xattrs,
        list_open_files,
    },
};

/// The reads about one path, but for those that look at all that is below it.
pub fn about(path: &str) -> Vec<Read> {
    let path = path.to_owned();
    let start = (0, Bytes::new());
    vec![
        get_file_info::Request { path: path.clone() }.into(),
        get_file_info::IsClosed { path: path.clone() }.into(),
        get_file_info::BlockSize { path: path.clone() }.into(),
        get_block_locations::StatusAndBlocks { path: path.clone() }.into(),
        get_block_locations::Request { path: path.clone(), offset: 0, length: i64::MAX as u64 }.into(),
        get_listing::Request { path: path.clone(), start_after: Bytes::new(), need_location: true }.into(),
        get_listing::Batch { directories: vec![path.clone()], start, need_location: true }.into(),
        get_link_target::Request { path: path.clone() }.into(),
        check_access::Request { path: path.clone(), action: 4 }.into(),
        get_acl_status::Request { path: path.clone() }.into(),
        get_xattrs::Request { path: path.clone(), names: Vec::new() }.into(),
        get_xattrs::Listing { path: path.clone() }.into(),
        get_storage_policy::Request { path: path.clone() }.into(),
        get_erasure_coding_policy::Request { path: path.clone() }.into(),
        get_enclosing_root::Request { path: path.clone() }.into(),
        get_ez_for_path::Request { path: path.clone() }.into(),
        get_snapshot_listing::Request { path }.into(),
    ]
}

/// The reads that look at all that is below a path, or at the whole tree.
pub fn below(path: &str, from: &str, to: &str) -> Vec<Read> {
    let cursor = get_snapshot_diff::DiffCursor { path: Vec::new(), index: -1 };
    let request = get_snapshot_diff::Request { path: path.into(), from: from.into(), to: to.into(), cursor };
    vec![
        get_content_summary::Request { path: path.into() }.into(),
        get_quota_usage::Request { path: path.into() }.into(),
        get_snapshot_listing::Snapshottable.into(),
        request.clone().into(),
        get_snapshot_diff::Report { request }.into(),
        list_open_files::Request { after: InodeId(0), directory: path.into(), limit: 10, among: None }.into(),
    ]
}
