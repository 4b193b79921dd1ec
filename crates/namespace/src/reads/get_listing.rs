//! A page of a directory.

use crate::{
    Context, FileStatus, Limits, Namespace, Paths, Readable, Sight, SnapshotId,
    access::{Access, READ_EXECUTE},
    readable::readable,
    reserved,
    resolve::{Purpose, resolve},
    snapshots::view::DOT_SNAPSHOT,
};
use base::{FsError, FsResult, POLICY_UNSPECIFIED};
use bytes::Bytes;

/// Children of a directory in a snapshot are counted, not known.
const REMAINING_COUNTED_MAX: usize = 10_000;

/// Asks for a page of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// The name behind which the page begins; empty: from the beginning. A path below `/.reserved` names an inode.
    pub start_after: Bytes,
    pub need_location: bool,
}

readable! {
    Request => Option<Listing<'ns>>, (path) "getListing",
    |ns, ctx, req| get(ns, ctx, &req.path, &req.start_after, req.need_location);
    fn sight(&self) -> Sight<'_> {
        sight(&self.start_after, self.paths())
    }
}

/// Asks for a page of several directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub directories: Vec<String>,
    /// The index of the first path to list, and the name to start after in it.
    pub start: (u32, Bytes),
    pub need_location: bool,
}

impl Readable for Batch {
    type Seen<'ns> = BatchedListing<'ns>;

    fn method(&self) -> &'static str {
        "getBatchedListing"
    }

    fn paths(&self) -> Paths<'_> {
        Paths::all(&self.directories)
    }

    fn sight(&self) -> Sight<'_> {
        sight(&self.start.1, self.paths())
    }

    fn look<'ns>(&self, ns: &'ns Namespace, ctx: &Context<'ns>) -> FsResult<BatchedListing<'ns>> {
        let (index, name) = &self.start;
        get_batched(ns, ctx, &self.directories, (*index, name), self.need_location)
    }
}

/// A listing that goes on after an inode by its number depends on that inode's name as well.
fn sight<'a>(start_after: &[u8], paths: Paths<'a>) -> Sight<'a> {
    if start_after.starts_with(b"/") { Sight::Everything } else { Sight::Listings(paths) }
}

/// Children in the order of their names' bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing<'ns> {
    pub entries: Vec<FileStatus<'ns>>,
    /// How many children follow the last entry; of a snapshot, 10,000 stand for more.
    pub remaining: u32,
    /// In which snapshot the entries are.
    pub snapshot: Option<SnapshotId>,
}

/// The children after `start_after` (empty: from the beginning); a file lists itself. `None` if there is no
/// such path. With `need_location`, blocks count against the limit of a page, as in HDFS; ask
/// [`super::get_block_locations::by_id`] for them.
///
/// # Errors
/// The path cannot be resolved, or the caller may not read the directory (see [`crate::reads`]). [`FsError::Snapshot`]
/// if the directory whose `.snapshot` is asked for has none, and [`FsError::NotFound`] if it does not exist.
/// [`FsError::ListingStartNotFound`] if `start_after` is a path below `/.reserved` that names nothing.
pub fn get<'ns>(
    ns: &'ns Namespace,
    ctx: &Context<'ns>,
    path: &str,
    start_after: &[u8],
    need_location: bool,
) -> FsResult<Option<Listing<'ns>>> {
    if reserved::is_top(path) {
        let entries = reserved::children(&ctx.limits.access.supergroup, ctx.limits.created);
        return Ok(Some(Listing { entries, remaining: 0, snapshot: None }));
    }
    let start_after = &*reserved::start_after(ns, start_after)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, path, Purpose::Read)?;
    let snapshot = resolved.snapshot;
    if let Some(root) = resolved.snapshots_of {
        return Ok(Some(snapshots_of(ns, ctx, root, start_after)));
    }
    if resolved.path.name() == DOT_SNAPSHOT && !resolved.in_snapshot {
        let directory = resolved.path.parent();
        return Err(match resolved.parent() {
            Some(_) => FsError::Snapshot(format!("Directory is not a snapshottable directory: {directory}")),
            None => FsError::NotFound(format!("Directory does not exist: {directory}")),
        });
    }
    let Some(target) = resolved.target else {
        return Ok(None);
    };
    if ns.tree.inode(target).is_file() {
        // It is called by its path, not by a name in it.
        let status = ns.status_at(target, b"", snapshot);
        return Ok(Some(Listing { entries: vec![status], remaining: 0, snapshot }));
    }
    access.at(snapshot).check(ns, target, resolved.path.as_str(), READ_EXECUTE)?;
    let count = ns.tree.inode(target).children_count();
    let mut page = Page::new(ns, ctx, count, need_location);
    // An inode that is elsewhere now is told with the policy that holds in the directory that is listed.
    let policy = ns.policy_at(target, snapshot);
    let remaining = match snapshot {
        None => {
            let start = if start_after.is_empty() { 0 } else { ns.tree.rank_after(target, start_after) };
            page.fill(
                ns.tree
                    .children_of(target, start)
                    .map(|child| (child, ns.tree.status_under(child, ns.tree.policy_below(child, policy)))),
            );
            count - start - page.entries.len() as u32
        }
        Some(_) => {
            let mut children = ns.children_at(target, start_after, snapshot);
            page.fill(children.by_ref().map(|(name, child)| {
                (child, ns.status_in(child, name, snapshot, ns.tree.policy_below(child, policy)))
            }));
            // Nobody needs more than whether there is more.
            children.take(REMAINING_COUNTED_MAX).count() as u32
        }
    };
    Ok(Some(Listing { entries: page.entries, remaining, snapshot }))
}

/// A page that fills.
struct Page<'ns> {
    ns: &'ns Namespace,
    entries: Vec<FileStatus<'ns>>,
    entries_max: usize,
    /// How many replicas may still be told of, where they are asked for.
    replicas_left: Option<u64>,
}

impl<'ns> Page<'ns> {
    fn new(ns: &'ns Namespace, ctx: &Context<'_>, children: u32, need_location: bool) -> Self {
        let entries_max = ctx.limits.listing_max;
        let entries = Vec::with_capacity(entries_max.min(children as usize));
        Self { ns, entries, entries_max, replicas_left: need_location.then_some(entries_max as u64) }
    }

    fn fill(&mut self, children: impl Iterator<Item = (u32, FileStatus<'ns>)>) {
        for (child, status) in children.take(self.entries_max) {
            self.entries.push(status);
            if let Some(left) = &mut self.replicas_left
                && !status.is_directory()
            {
                let blocks = self.ns.tree.blocks_of(child).count() as u64;
                *left = left.saturating_sub(blocks * u64::from(status.replication));
                if *left == 0 {
                    break;
                }
            }
        }
    }
}

/// The snapshots of a directory, by name.
fn snapshots_of<'ns>(ns: &'ns Namespace, ctx: &Context<'_>, root: u32, start_after: &[u8]) -> Listing<'ns> {
    let after = std::str::from_utf8(start_after).unwrap_or_default();
    let mut listing = Listing { entries: Vec::new(), remaining: 0, snapshot: None };
    let Some(taken) = ns.tree.snapshots.roots.get(&ns.tree.inode(root).id()) else { return listing };
    let mut taken = taken.after_name(after);
    for taken in taken.by_ref().take(ctx.limits.listing_max) {
        listing.entries.push(ns.status_in(root, taken.name.as_bytes(), Some(taken.id), POLICY_UNSPECIFIED));
    }
    listing.remaining = taken.count() as u32;
    listing
}

/// Several directories in one call; Hadoop's `getBatchedListing`.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchedListing<'ns> {
    pub listings: Vec<PartialListing<'ns>>,
    pub has_more: bool,
    /// The place to go on from: the index of the path, and the name to start after.
    pub next: (u32, Vec<u8>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartialListing<'ns> {
    /// The index of the directory among the paths asked for.
    pub parent_index: u32,
    pub listing: Result<Listing<'ns>, FsError>,
}

/// # Errors
/// [`FsError::InvalidArgument`] for more paths than the limit.
pub fn check_count(paths: usize, limits: &Limits) -> FsResult<()> {
    let limit = limits.batched_listing_paths_max;
    match paths > limit {
        true => Err(FsError::InvalidArgument(format!("Too many source paths ({paths} > {limit})"))),
        false => Ok(()),
    }
}

/// `start`: the index of the first path to list and the name to start after in it.
///
/// # Errors
/// [`FsError::InvalidArgument`] for more paths than the limit. A path that cannot be listed has its error in its own
/// place of the answer.
pub fn get_batched<'ns>(
    ns: &'ns Namespace,
    ctx: &Context<'ns>,
    paths: &[impl AsRef<str>],
    start: (u32, &[u8]),
    need_location: bool,
) -> FsResult<BatchedListing<'ns>> {
    check_count(paths.len(), ctx.limits)?;
    let (first, mut start_after) = start;
    let mut answer = BatchedListing { listings: Vec::new(), has_more: false, next: (0, Vec::new()) };
    let mut entries = 0;
    for (index, path) in paths.iter().map(AsRef::as_ref).enumerate().skip(first as usize) {
        let listing = match get(ns, ctx, path, start_after, need_location) {
            Ok(Some(listing)) => Ok(listing),
            Ok(None) => Err(FsError::NotFound(format!("Path {path} does not exist"))),
            Err(error) => Err(error),
        };
        start_after = b"";
        let (mut remaining, mut last) = (0, Vec::new());
        if let Ok(listing) = &listing {
            entries += listing.entries.len();
            remaining = listing.remaining;
            last = listing.entries.last().map(|entry| entry.name.to_vec()).unwrap_or_default();
        }
        answer.listings.push(PartialListing { parent_index: index as u32, listing });
        if remaining > 0 {
            (answer.has_more, answer.next) = (true, (index as u32, last));
            break;
        }
        if entries >= ctx.limits.listing_max && index + 1 < paths.len() {
            (answer.has_more, answer.next) = (true, (index as u32 + 1, Vec::new()));
            break;
        }
    }
    Ok(answer)
}
