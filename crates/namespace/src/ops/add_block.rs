//! Gives a file that is being written its next block.

use crate::{BlockFacts, Context, Edit, Namespace, Reply};
use base::{Block, FsResult, InodeId};

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    pub holder: &'a str,
    /// The block that the client believes to be the last, with its final length.
    pub previous: Option<Block>,
    /// 0 from clients that do not know it.
    pub inode: InodeId,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Choose targets, then apply; the answer is [`Reply::Block`].
    New { edit: Edit, inode: InodeId, replication: u16, block_size: u64 },
    /// The client repeats itself: answer with the last block and the targets that it already has.
    Again(Reply),
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>, facts: &dyn BlockFacts) -> FsResult<Plan> {
    let _ = (ns, ctx, req, facts);
    todo!()
}
