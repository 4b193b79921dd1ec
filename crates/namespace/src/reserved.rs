//! Other names for what is in the tree: `/.reserved/.inodes/N`, which follows an inode wherever it is moved, and
//! `/.reserved/raw/…`, the way to attributes of the namespace `raw`.
//!
//! A path is translated before anything else is done with it, as in HDFS's `FSDirectory.resolveComponents`.
//! `/.reserved` itself is no directory of the tree: it can be looked at, and that is all.

use crate::{FileKind, FileStatus, Namespace};
use base::{FsError, FsResult, InodeId, Timestamp};
use std::borrow::Cow;

pub(crate) const RESERVED: &str = "/.reserved";
/// The name in the root directory of [`RESERVED`].
pub(crate) const NAME: &str = ".reserved";
const PREFIX: &str = "/.reserved/";
const INODES: &str = ".inodes";
const RAW: &str = "raw";

/// A path by the names of the tree, and whether it came as one below `/.reserved/raw`.
pub(crate) struct Real<'p> {
    pub text: Cow<'p, str>,
    pub is_raw: bool,
}

/// # Errors
/// [`FsError::NotFound`] if the path names an inode by a number that nothing has.
pub(crate) fn real<'p>(ns: &Namespace, text: &'p str) -> FsResult<Real<'p>> {
    let as_it_is = Real { text: Cow::Borrowed(text), is_raw: false };
    let Some(rest) = text.strip_prefix(PREFIX) else {
        return Ok(as_it_is);
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (kind, rest) = rest.split_once('/').unwrap_or((rest, ""));
    match kind {
        INODES if !rest.is_empty() => {
            inode_path(ns, text, rest).map(|path| Real { text: Cow::Owned(path), is_raw: false })
        }
        // HDFS does not strip this path, so it names nothing.
        RAW if rest == ".reserved" => Ok(Real { is_raw: true, ..as_it_is }),
        RAW => Ok(Real { text: Cow::Owned(format!("/{rest}")), is_raw: true }),
        _ => Ok(as_it_is),
    }
}

/// Whether a path is `/.reserved` itself.
pub(crate) fn is_top(text: &str) -> bool {
    text.strip_prefix(RESERVED).is_some_and(|rest| rest.is_empty() || rest == "/")
}

/// Refuses to change `/.reserved` itself.
///
/// # Errors
/// [`FsError::InvalidPath`] if it is `/.reserved` itself.
pub(crate) fn check_not_top(text: &str) -> FsResult<()> {
    if is_top(text) { Err(FsError::InvalidPath(text.into())) } else { Ok(()) }
}

/// HDFS refuses a rename to `/.reserved` itself before all else that may be wrong with the destination.
pub(crate) fn check_destination(text: &str) -> FsResult<()> {
    if is_top(text) {
        return Err(FsError::InvalidPath("Cannot rename to or from /.reserved".into()));
    }
    Ok(())
}

/// Refuses to create a file under a name that is nothing else.
///
/// # Errors
/// [`FsError::InvalidPath`] if the path is `/.reserved`, or below it and of no kind that is known there.
pub(crate) fn check_creatable(text: &str) -> FsResult<()> {
    let rest = text.strip_prefix(PREFIX);
    // As in HDFS, only the first letters of the name count; a longer name is refused where it would be made.
    let is_other_name = rest.is_some_and(|rest| rest.starts_with(RAW) || rest.starts_with(INODES));
    if is_top(text) || rest.is_some() && !is_other_name {
        return Err(FsError::InvalidPath(text.into()));
    }
    Ok(())
}

/// The name to go on after in a listing: NFS gives a path below `/.reserved` instead of a name.
///
/// # Errors
/// [`FsError::ListingStartNotFound`] if the path names nothing.
pub(crate) fn start_after<'p>(ns: &Namespace, start_after: &'p [u8]) -> FsResult<Cow<'p, [u8]>> {
    let text = std::str::from_utf8(start_after).ok().filter(|text| text.starts_with(PREFIX));
    let Some(text) = text else {
        return Ok(Cow::Borrowed(start_after));
    };
    let missing = |_| FsError::ListingStartNotFound(format!("Can't find startAfter {text}"));
    let real = real(ns, text).map_err(missing)?;
    Ok(Cow::Owned(real.text.rsplit('/').next().unwrap_or_default().as_bytes().to_vec()))
}

/// Whether a path is one below `/.reserved/raw`.
pub(crate) fn is_raw(text: &str) -> bool {
    let rest = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix(RAW));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The inode that a path begins with, if it is of that kind: it is looked at even if it is not there.
pub(crate) fn inode_of(text: &str) -> Option<InodeId> {
    let rest = text.strip_prefix(PREFIX)?.strip_prefix(INODES)?.strip_prefix('/')?;
    let (id, _) = rest.split_once('/').unwrap_or((rest, ""));
    id.parse().ok().map(InodeId)
}

/// `rest`: the number, and what follows.
fn inode_path(ns: &Namespace, text: &str, rest: &str) -> FsResult<String> {
    let (id, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let Ok(id) = id.parse::<i64>() else {
        return Err(FsError::NotFound(format!("Invalid inode path: {text}")));
    };
    let handle = u64::try_from(id).ok().and_then(|id| ns.handle(InodeId(id)));
    // A deleted subtree that waits to be taken apart is gone.
    let Some(handle) = handle.filter(|handle| ns.tree.is_attached(*handle)) else {
        return Err(FsError::NotFound(format!("File for given inode path does not exist: {text}")));
    };
    // NFS looks up parents like this; what follows means nothing then.
    if rest.split('/').next() == Some("..") {
        let parent = if handle == ns.tree.root { handle } else { ns.tree.inode(handle).parent };
        return Ok(ns.tree.path_of(parent));
    }
    let path = ns.tree.path_of(handle);
    Ok(match (path.as_str(), rest) {
        (_, "") => path,
        ("/", _) => format!("/{rest}"),
        _ => format!("{path}/{rest}"),
    })
}

/// The error for a name under which nothing may be made.
pub(crate) fn taken() -> FsError {
    FsError::InvalidArgument(
        "File name \".reserved\" is reserved and cannot be created. If this is during upgrade change the name of \
         the existing file or directory to another name before upgrading to the new release."
            .into(),
    )
}

fn directory<'ns>(name: &'ns [u8], permission: u16, group: &'ns str, time: Timestamp) -> FileStatus<'ns> {
    FileStatus {
        id: InodeId(0),
        kind: FileKind::Directory,
        name,
        length: 0,
        permission,
        owner: "",
        group,
        modified: time,
        accessed: time,
        replication: 0,
        block_size: 0,
        children_count: 0,
        storage_policy: 0,
        has_acl: false,
        snapshottable: false,
        under_construction: false,
    }
}

/// The status of `/.reserved`.
pub(crate) fn status() -> FileStatus<'static> {
    directory(b"", 0o1770, "", Timestamp::default())
}

/// The entries of `/.reserved`. `created` is the time when the file system was made.
pub(crate) fn children<'ns>(supergroup: &'ns str, created: Timestamp) -> Vec<FileStatus<'ns>> {
    [INODES, RAW].map(|name| directory(name.as_bytes(), 0o770, supergroup, created)).to_vec()
}
