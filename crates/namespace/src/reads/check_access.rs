//! Whether the caller may read, write or traverse.

use crate::{
    Context, Namespace,
    access::Access,
    readable::readable,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// The bits of Hadoop's `FsActionProto` (4 read, 2 write, 1 execute).
    pub action: u8,
}

readable! { Request => (), (path) "checkAccess", |ns, ctx, req| check(ns, ctx, &req.path, req.action) }

/// `action`: the bits of Hadoop's `FsActionProto` (4 read, 2 write, 1 execute).
///
/// # Errors
/// The path cannot be resolved (see [`crate::reads`]), does not exist, or the caller may not do this with it.
pub fn check(ns: &Namespace, ctx: &Context<'_>, path: &str, action: u8) -> FsResult<()> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, path, Purpose::Read)?;
    if resolved.target.is_none() {
        return Err(FsError::NotFound(format!("Path not found: {}", resolved.path.as_str())));
    }
    access.check_target(ns, &resolved, action & 7)
}

/// Checks like [`check`], but allows that nothing is at the path.
///
/// # Errors
/// The path cannot be resolved (see [`crate::reads`]), or the caller may not do this with what is there.
pub fn check_if_there(ns: &Namespace, ctx: &Context<'_>, path: &str, action: u8) -> FsResult<()> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, path, Purpose::Read)?;
    access.check_target(ns, &resolved, action & 7)
}
