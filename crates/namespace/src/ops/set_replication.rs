//! Changes how many replicas a file should have.

use crate::{Context, Namespace, Planned};
use base::FsResult;

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    pub replication: u32,
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let _ = (ns, ctx, req);
    todo!()
}
