//! Sets the times of a file or directory.

use crate::{Context, Namespace, Planned};
use base::FsResult;

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    /// Milliseconds; -1 leaves the time as it is.
    pub modified: i64,
    pub accessed: i64,
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let _ = (ns, ctx, req);
    todo!()
}

/// Records that a file was read now; see [`crate::FileBlocks::wants_access_time`].
pub fn plan_access(ns: &Namespace, ctx: &Context<'_>, inode: base::InodeId) -> Planned {
    let _ = (ns, ctx, inode);
    todo!()
}
