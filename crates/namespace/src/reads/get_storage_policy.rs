//! The storage policy that is in force for a path.

use crate::{
    Context, Namespace,
    access::{Access, READ},
    readable::readable,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult, StoragePolicy};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
}

readable! { Request => &'static StoragePolicy, (path) "getStoragePolicy", |ns, ctx, req| get(ns, ctx, &req.path) }

/// The storage policy in force for a path: its own, or the closest ancestor's, or else the default one.
///
/// # Errors
/// The path cannot be resolved (see [`crate::reads`]) or does not exist, or the caller may not read it.
pub fn get(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<&'static StoragePolicy> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, path, Purpose::Read)?;
    access.check_target(ns, &resolved, READ)?;
    let Some(target) = resolved.target else {
        return Err(FsError::NotFound(format!("File/Directory does not exist: {}", resolved.path.as_str())));
    };
    Ok(StoragePolicy::in_force(ns.policy_at(target, resolved.snapshot)))
}
