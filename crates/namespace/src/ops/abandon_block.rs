//! Takes back the last block of a file that is being written.

use crate::{Context, Namespace, Planned};
use base::{BlockId, FsResult, InodeId};

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    pub holder: &'a str,
    pub block: BlockId,
    /// 0 from clients that do not know it.
    pub inode: InodeId,
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let _ = (ns, ctx, req);
    todo!()
}
