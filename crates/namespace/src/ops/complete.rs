//! Closes a file that was being written.

use crate::{BlockFacts, Context, Edit, Namespace};
use base::{Block, FsResult, InodeId};

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    pub holder: &'a str,
    /// The last block with its final length.
    pub last: Option<Block>,
    /// 0 from clients that do not know it.
    pub inode: InodeId,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Apply it; the answer is true.
    Close(Edit),
    /// Closed already by this very call: the answer is true.
    Already,
    /// Too few finished replicas of this block were reported. Plan again when more are, or answer false.
    Waiting(Block),
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>, facts: &dyn BlockFacts) -> FsResult<Plan> {
    let _ = (ns, ctx, req, facts);
    todo!()
}
