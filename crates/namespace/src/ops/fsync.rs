//! Records how much of the last block has been flushed.

use crate::{Context, Namespace, Planned};
use base::{FsResult, InodeId};

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    pub holder: &'a str,
    /// -1: not told.
    pub last_block_length: i64,
    /// 0 from clients that do not know it.
    pub inode: InodeId,
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let _ = (ns, ctx, req);
    todo!()
}
