//! A page of a directory.

use crate::{Context, FileStatus, Namespace};
use base::{FsError, FsResult};

/// Children in the order of their names' bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing<'ns> {
    pub entries: Vec<FileStatus<'ns>>,
    /// How many children follow the last entry.
    pub remaining: u32,
}

/// The children after `start_after` (empty: from the beginning); a file lists itself. `None` if there is no
/// such path. With `need_location`, blocks count against the limit of a page, as in HDFS; ask
/// [`super::get_block_locations::by_id`] for them.
pub fn get<'ns>(
    ns: &'ns Namespace,
    ctx: &Context<'_>,
    path: &str,
    start_after: &[u8],
    need_location: bool,
) -> FsResult<Option<Listing<'ns>>> {
    let _ = (ns, ctx, path, start_after, need_location);
    todo!()
}

/// Several directories in one call; Hadoop's `getBatchedListing`.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchedListing<'ns> {
    pub listings: Vec<PartialListing<'ns>>,
    pub has_more: bool,
    /// Where to go on: the index of the path, and the name to start after.
    pub next: (u32, Vec<u8>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartialListing<'ns> {
    /// Which of the paths asked for.
    pub parent_index: u32,
    pub listing: Result<Listing<'ns>, FsError>,
}

/// `start`: the index of the first path to list and the name to start after in it.
pub fn get_batched<'ns>(
    ns: &'ns Namespace,
    ctx: &Context<'_>,
    paths: &[&str],
    start: (u32, &[u8]),
    need_location: bool,
) -> FsResult<BatchedListing<'ns>> {
    let _ = (ns, ctx, paths, start, need_location);
    todo!()
}
