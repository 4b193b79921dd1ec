//! Unlinks a file or a subtree.

use crate::{Context, Namespace, Planned};
use base::FsResult;

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    pub recursive: bool,
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let _ = (ns, ctx, req);
    todo!()
}
