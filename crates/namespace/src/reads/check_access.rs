//! Whether the caller may read, write or traverse.

use crate::{
    Context, Namespace,
    access::{Access, READ},
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult};

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

/// Checks like [`check`] for reading, before an answer about the erasure coding policy of a path. A directory's
/// `.snapshot` may be asked about, and has no policy.
///
/// # Errors
/// The path cannot be resolved (see [`crate::reads`]), does not exist, or the caller may not read it.
pub fn check_for_policy(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<()> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, path, Purpose::Read)?;
    access.check_target(ns, &resolved, READ)?;
    if resolved.target.is_none() && !resolved.path.as_str().ends_with("/.snapshot") {
        return Err(FsError::NotFound(format!("Path not found: {path}")));
    }
    Ok(())
}
