//! Notes on a file or directory that its replicas are to be moved to the media of the storage policies, and takes the note away when that is done.
//!
//! As in HDFS the note is an extended attribute that clients see, so it survives a change of the active, and no kind of edit of
//! its own is needed. [`crate::satisfying`] goes through the files below.

use crate::{
    Context, Namespace, Reply,
    access::{Access, WRITE},
    edit::{Edit, Planned},
    ops::set_xattrs::SetXattrsEdit,
    plannable::plannable,
    resolve::{Purpose, resolve},
    xattr::{Space, Xattr, XattrName, Xattrs},
};
use base::{FsError, FsResult, InodeId};

/// Hadoop: `XATTR_SATISFY_STORAGE_POLICY`, in the namespace `user`.
const NAME: &str = "hdfs.sps";

/// Files and directories that may wait at once. Hadoop: `dfs.storage.policy.satisfier.queue.limit`.
pub const WAITING_MAX: usize = 1_000;

fn attribute() -> XattrName {
    XattrName { space: Space::User, name: NAME.into() }
}

/// Whether these attributes hold the note.
pub(crate) fn is_noted(xattrs: &Xattrs) -> bool {
    xattrs.get(&attribute()).is_some()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
}

/// A file without blocks, and one that waits already, are left as they are.
///
/// # Errors
/// [`FsError::Io`] if as many wait as may, a directory waits already, the path has as many attributes as it may, or the path is a directory and
/// several groups share the namespace. The path cannot be resolved or does not exist, or the caller may not write it: see [`crate::ops`].
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<SetXattrsEdit>> {
    if ns.satisfying.len() >= WAITING_MAX {
        return Err(FsError::Io(format!(
            "Outstanding satisfier queue limit: {WAITING_MAX} exceeded, try later!"
        )));
    }
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    access.check_target(ns, &resolved, WRITE)?;
    let path = resolved.path.as_str();
    let target = resolved.target.ok_or_else(|| FsError::NotFound(format!("cannot find {path}")))?;
    let inode = ns.tree.inode(target);
    let existing = ns.tree.xattrs_of(target);
    let is_waiting = existing.is_some_and(|xattrs| is_noted(xattrs));
    if inode.is_file() && (is_waiting || ns.tree.blocks_of(target).next().is_none()) {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    if is_waiting {
        // Hadoop's words: there the attribute of a directory is set without a look whether it is there.
        return Err(FsError::Io(format!(
            "XAttr: {NAME} already exists. The REPLACE flag must be specified."
        )));
    }
    if inode.is_directory() && ns.has_homes() {
        return Err(FsError::Io(format!(
            "{path} is a directory of several groups: this version of Clover satisfies the storage policy of single files there. Name its files, \
             or use hdfs mover"
        )));
    }
    let counted =
        existing.iter().flat_map(|xattrs| xattrs.all()).filter(|xattr| xattr.name.space.is_counted());
    let limit = ctx.limits.xattrs.per_inode_max;
    if counted.count() >= limit {
        return Err(FsError::Io(format!(
            "Cannot add additional XAttr to inode, would exceed limit of {limit}"
        )));
    }
    let set = vec![Xattr { name: attribute(), value: Box::default() }];
    let edit = SetXattrsEdit { inode: inode.id(), set, removed: Vec::new() };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

/// Takes the note away: all that could be done is done. `None` if there is none any more.
pub fn plan_end(ns: &Namespace, ctx: &Context<'_>, inode: InodeId) -> Option<Edit<SetXattrsEdit>> {
    let edit = SetXattrsEdit { inode, set: Vec::new(), removed: vec![attribute()] };
    ns.satisfying.contains(&inode).then(|| Edit::of_service(ns, ctx, edit))
}

plannable! { Request by plan => Planned<SetXattrsEdit>, (path) "Cannot satisfy storage policy for {path}" }
