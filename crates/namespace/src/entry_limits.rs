//! Limits on a name that enters a directory.

use crate::{Context, Namespace, reserved, snapshots::view::DOT_SNAPSHOT, store::strings::TEXT_BYTES_MAX};
use base::{FsError, FsResult};

/// HDFS's `verifyMaxComponentLength`, and its refusal of names that are not to be had: they are refused when they
/// would enter a directory, after all that may be wrong with the rest. A record holds no more than 255 bytes,
/// whatever the limit.
///
/// # Errors
/// [`FsError::ComponentTooLong`] if the name is too long; [`FsError::InvalidArgument`] if it is `.snapshot`, or
/// `.reserved` in the root.
pub(crate) fn check_component(ctx: &Context<'_>, parent: &str, name: &str) -> FsResult<()> {
    if parent == "/" && name == reserved::NAME {
        return Err(reserved::taken());
    }
    let limit = match ctx.limits.component_length_max {
        0 => 255,
        limit => limit.min(255),
    };
    if name.len() > limit {
        return Err(FsError::ComponentTooLong(format!(
            "The maximum path component name limit of {name} in directory {parent} is exceeded: \
             limit={limit} length={}",
            name.len()
        )));
    }
    if name == DOT_SNAPSHOT {
        return Err(FsError::InvalidArgument("\".snapshot\" is a reserved name.".into()));
    }
    Ok(())
}

/// # Errors
/// [`FsError::InvalidArgument`] if the text has more than [`TEXT_BYTES_MAX`] bytes.
pub(crate) fn check_text(what: &str, text: &str) -> FsResult<()> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(FsError::InvalidArgument(format!(
        "The {what} has {} bytes; the limit is {TEXT_BYTES_MAX}",
        text.len()
    )))
}

/// HDFS's `checkFsObjectLimit`: whether the tree may grow.
///
/// # Errors
/// [`FsError::Io`] if there are as many files, directories and blocks as the limit allows.
pub(crate) fn check_objects(ns: &Namespace, ctx: &Context<'_>) -> FsResult<()> {
    let limit = ctx.limits.objects_max;
    let counters = &ns.tree.counters;
    let objects = counters.files + counters.directories + u64::from(ns.tree.blocks.live());
    if limit != 0 && limit <= objects {
        return Err(FsError::Io(format!(
            "Exceeded the configured number of objects {limit} in the filesystem."
        )));
    }
    Ok(())
}

/// HDFS's `verifyMaxDirItems`.
///
/// # Errors
/// [`FsError::DirectoryFull`] if the directory has as many entries as the limit allows.
pub(crate) fn check_room(ns: &Namespace, ctx: &Context<'_>, directory: u32, path: &str) -> FsResult<()> {
    let count = ns.tree.inode(directory).children_count();
    let limit = ctx.limits.directory_items_max;
    if count >= limit {
        return Err(FsError::DirectoryFull(format!(
            "The directory item limit of {path} is exceeded: limit={limit} items={count}"
        )));
    }
    Ok(())
}
