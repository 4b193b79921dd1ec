//! The erasure coding policy of a path: none, since no file is erasure-coded. Only whether one may ask is looked at.

use crate::{
    Context, Namespace,
    access::{Access, READ},
    readable::readable,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
}

readable! { Request => (), (path) "getErasureCodingPolicy", |ns, ctx, req| check(ns, ctx, &req.path) }

/// A directory's `.snapshot` may be asked about, and has no policy.
///
/// # Errors
/// The path cannot be resolved (see [`crate::reads`]), does not exist, or the caller may not read it.
pub fn check(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<()> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, path, Purpose::Read)?;
    access.check_target(ns, &resolved, READ)?;
    if resolved.target.is_none() && !resolved.path.as_str().ends_with("/.snapshot") {
        return Err(FsError::NotFound(format!("Path not found: {path}")));
    }
    Ok(())
}
