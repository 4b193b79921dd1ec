//! Closes a file whose writer is presumed dead, at a client's request.

use crate::{BlockFacts, Context, Edit, Namespace};
use base::{Block, FsResult};

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    pub holder: &'a str,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// The file is closed: answer true.
    Closed,
    /// Apply it; then answer true if the file is closed, else false.
    Edit(Edit),
    /// Replicas of this block have still to be reported: answer false.
    Waiting(Block),
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>, facts: &dyn BlockFacts) -> FsResult<Plan> {
    let _ = (ns, ctx, req, facts);
    todo!()
}
