//! Renames, with options. The destination may be replaced if asked: a file by a file, an empty directory by a
//! directory. A rename that is impossible is an error.

use crate::{
    Context, Namespace,
    access::{Access, WRITE},
    ops::{
        allow_snapshot,
        move_file::{self, Moved},
        rename::{Plan, check_limits, decided, is_below},
    },
    path::Path,
    plannable::plannable,
    reserved,
    resolve::{Purpose, Resolved, resolve},
};
use base::{FsError, FsResult};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub source: String,
    pub destination: String,
    pub overwrite: bool,
    /// The caller must be allowed to delete what it moves: others will delete it from the trash.
    pub to_trash: bool,
}

/// # Errors
/// [`FsError::NotFound`] if the source or the directory of the destination does not exist. [`FsError::AlreadyExists`]
/// if the destination is the same, or is there and not to be replaced. [`FsError::Io`] if the source or the destination
/// is the root, or the destination is below the source, not empty, of the other kind, too long or too deep;
/// [`FsError::InvalidPath`] if it is reserved. A path cannot be resolved (see [`crate::ops`]); the caller may not write
/// one of the directories; the source is protected. [`FsError::Snapshot`] if one holds a directory with snapshots, or
/// snapshottable directories would be nested. There is no room, or a quota has none.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Plan> {
    Path::check_length(&req.destination, "rename", ctx.limits)?;
    let access = Access::new(ctx);
    let source = resolve(ns, ctx, &access, &req.source, Purpose::Other)?;
    let destination = resolve(ns, ctx, &access, &req.destination, Purpose::Create)?;
    source.check_unprotected(ns, ctx)?;
    access.check_parent_write(ns, &source)?;
    if req.to_trash {
        access.check_subtree(ns, ctx, &source)?;
    }
    access.check_ancestor(ns, &destination, WRITE)?;
    let (from, to) = (source.path.as_str(), destination.path.as_str());
    // Both homes are asked at once.
    let elsewhere = match destination.parent().filter(|_| destination.target.is_none()) {
        Some(parent) if source.target.is_none_or(|source| ns.tree.inode(source).is_file()) => {
            ctx.file(ns, parent, destination.path.name()).file()
        }
        _ => None,
    };
    let moved = move_file::source(ns, ctx, &access, &source)?;
    let moved = check_source(&source, moved)?;
    let roots = moved.roots(ns)?;
    if from == to {
        return Err(FsError::AlreadyExists(format!("The source {from} and destination {to} are the same")));
    }
    if is_below(to, from) {
        return Err(FsError::Io(format!(
            "Rename destination {to} is a directory or file under source {from}"
        )));
    }
    reserved::check_destination(to)?;
    if destination.path.is_root() {
        return Err(FsError::Io("rename destination cannot be the root".into()));
    }
    if let Some(target) = destination.target {
        check_overwrite(ns, ctx, req, (from, to), &moved, target)?;
        allow_snapshot::check_removable(ns, target)?;
    }
    if elsewhere.is_some() && !req.overwrite {
        return Err(exists(to));
    }
    if let Some(parent) = destination.parent().filter(|_| destination.target.is_none())
        && moved.is_directory(ns)
        && ctx.has_file(ns, parent, destination.path.name())
    {
        return Err(kinds_differ(from, to));
    }
    let Some(parent) = destination.parent() else {
        return Err(FsError::NotFound(format!("rename destination parent {to} not found.")));
    };
    allow_snapshot::check_not_nested(ns, &roots, from, parent)?;
    check_limits(ns, ctx, &source, parent, destination.path.parent(), destination.path.name())?;
    let here = destination.target.map(|target| ns.tree.inode(target).id());
    decided(ns, ctx, moved, &source, (parent, destination.path.name()), here.or(elsewhere), false)
}

fn check_source(source: &Resolved<'_>, moved: Option<Moved>) -> FsResult<Moved> {
    let Some(moved) = moved else {
        return Err(FsError::NotFound(format!("rename source {} is not found.", source.path.as_str())));
    };
    if source.path.is_root() {
        return Err(FsError::Io("rename source cannot be the root".into()));
    }
    Ok(moved)
}

fn exists(to: &str) -> FsError {
    FsError::AlreadyExists(format!("rename destination {to} already exists"))
}

fn kinds_differ(from: &str, to: &str) -> FsError {
    FsError::Io(format!("Source {from} and destination {to} must both be directories"))
}

fn check_overwrite(
    ns: &Namespace,
    ctx: &Context<'_>,
    req: &Request,
    (from, to): (&str, &str),
    moved: &Moved,
    target: u32,
) -> FsResult<()> {
    let handle = target;
    let target = ns.tree.inode(target);
    if moved.is_directory(ns) != target.is_directory() {
        return Err(kinds_differ(from, to));
    }
    if !req.overwrite {
        return Err(exists(to));
    }
    if target.children_count() > 0 || (target.is_directory() && ctx.has_files(ns, handle)) {
        return Err(FsError::Io(format!("rename destination directory is not empty: {to}")));
    }
    Ok(())
}

plannable! { Request by plan => Plan, (source, destination) "Cannot rename {source}" }
