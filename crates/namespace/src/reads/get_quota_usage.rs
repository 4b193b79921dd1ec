//! What a directory may hold and what it holds, without a walk where it has a quota.

use super::get_content_summary::Walk;
use crate::{
    Context, Namespace, Quota,
    access::{Access, READ_EXECUTE},
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult, InodeId};

pub enum Usage {
    /// The directory has a quota and knows.
    Known(Quota),
    /// It has to be counted.
    Counted(Walk),
}

/// Hadoop: `getQuotaUsage`. All directories below must be readable, even where nothing is counted.
pub fn get(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Usage> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, path, Purpose::Read)?;
    access.at(resolved.snapshot).check_subtree(ns, &resolved, READ_EXECUTE, false)?;
    let Some(target) = resolved.target else {
        return Err(FsError::NotFound(format!("File/Directory does not exist: {}", resolved.path.as_str())));
    };
    let inode = ns.tree.inode(target);
    let known = ns.tree.quotas.get(&inode.id());
    match known.filter(|_| inode.has_quota() && resolved.snapshot.is_none()) {
        Some(quota) => Ok(Usage::Known(quota.clone())),
        None => {
            let walk = Walk::of(ns, ctx, target, resolved.snapshot)?;
            // HDFS's root always has a quota.
            let is_root = inode.id() == InodeId::ROOT && resolved.snapshot.is_none();
            Ok(Usage::Counted(if is_root { walk.counting_blocks() } else { walk }))
        }
    }
}
