//! chown and chgrp.

use crate::{Context, Namespace, Planned};
use base::FsResult;

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub path: &'a str,
    pub owner: Option<&'a str>,
    pub group: Option<&'a str>,
}

/// See the module.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Planned> {
    let _ = (ns, ctx, req);
    todo!()
}
