//! The target of a symbolic link. No path is one, so this only tells whether there is anything.

use super::get_file_info;
use crate::{Context, Namespace, readable::readable};
use base::{FsError, FsResult};
use std::convert::Infallible;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
}

readable! { Request => Infallible, (path) "getLinkTarget", |ns, ctx, req| refuse(ns, ctx, &req.path) }

/// # Errors
/// Always: [`FsError::Io`] if there is something, which is no link. The path cannot be resolved (see [`crate::reads`]) or does not
/// exist.
fn refuse(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Infallible> {
    match get_file_info::get(ns, ctx, path)? {
        None => Err(FsError::NotFound(format!("File does not exist: {path}"))),
        Some(_) => Err(FsError::Io(format!("Path {path} is not a symbolic link"))),
    }
}
