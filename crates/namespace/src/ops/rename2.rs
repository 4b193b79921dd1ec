//! Renames, with options; the destination may be replaced.

use crate::{Context, Namespace, Planned};
use base::FsResult;

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub source: &'a str,
    pub destination: &'a str,
    pub overwrite: bool,
    pub to_trash: bool,
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let _ = (ns, ctx, req);
    todo!()
}
