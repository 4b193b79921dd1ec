//! Closes a file whose writer is presumed dead, at a client's request.

use crate::{
    BlockFacts, Context, Namespace,
    access::{Access, WRITE},
    ops::release_lease,
    plannable::plannable,
    resolve::{Purpose, resolve},
};
use base::FsResult;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// The client that asks. Its name is not looked at.
    pub holder: String,
}

pub use release_lease::Plan;

/// The answer to the client is true if the file is closed, or is so once the edit has been applied.
///
/// # Errors
/// The path cannot be resolved, does not exist, is not a file, or the caller may not write the file: see
/// [`crate::ops`].
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request, facts: &dyn BlockFacts) -> FsResult<Plan> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    let file = resolved.file(ns)?;
    if !ns.tree.inode(file).is_open() {
        return Ok(Plan::Closed);
    }
    access.check_target(ns, &resolved, WRITE)?;
    Ok(release_lease::plan(ns, ctx, ns.tree.inode(file).id(), facts))
}

plannable! { Request by plan with facts => Plan, (path) "Cannot recover the lease of {path}" }
