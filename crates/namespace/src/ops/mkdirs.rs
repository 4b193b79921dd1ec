//! Creates a directory and, if asked, the missing ones above it.

use crate::{Context, Namespace, Planned};
use base::FsResult;

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    /// The client's umask is already applied.
    pub permission: u16,
    pub create_parent: bool,
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let _ = (ns, ctx, req);
    todo!()
}
