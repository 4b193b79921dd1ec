//! Gives a writer whose pipeline broke a new generation stamp.

use crate::{Context, Namespace, Planned};
use base::{Block, FsResult};

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub block: Block,
    pub holder: &'a str,
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let _ = (ns, ctx, req);
    todo!()
}
