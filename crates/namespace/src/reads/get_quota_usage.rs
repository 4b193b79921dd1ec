//! The limits and the usage of a directory. Nothing is counted for a directory that has a quota.

use super::get_content_summary::Walk;
use crate::{
    Amounts, Context, Namespace, Quota, Sight, SnapshotId, Walkable,
    access::{Access, READ_EXECUTE, subtree::SubtreeCheck},
    readable::readable,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
}

readable! {
    Request => LimitsAndUsage, (path) "getQuotaUsage", |ns, ctx, req| req.walk(ns, ctx);
    fn sight(&self) -> Sight<'_> {
        Sight::Everything
    }
}

/// The limits of a directory, and how much of them is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsAndUsage {
    pub limits: Amounts,
    pub used: Amounts,
}

/// How far a walk has come.
#[derive(Default)]
pub enum Progress {
    #[default]
    NotBegun,
    Checking(Look),
    Counting(Walk),
}

impl Walkable for Request {
    type Progress = Progress;
    type Found = LimitsAndUsage;

    fn step(
        &self,
        progress: &mut Progress,
        ns: &Namespace,
        ctx: &Context<'_>,
    ) -> FsResult<Option<LimitsAndUsage>> {
        if let Progress::NotBegun = progress {
            *progress = Progress::Checking(start(ns, ctx, &self.path)?);
        }
        if let Progress::Checking(look) = progress {
            match look.step(ns, ctx)? {
                None => return Ok(None),
                Some(Usage::Known(Quota { limits, used })) => {
                    return Ok(Some(LimitsAndUsage { limits, used }));
                }
                Some(Usage::Counted(walk)) => *progress = Progress::Counting(walk),
            }
        }
        let Progress::Counting(walk) = progress else { return Ok(None) };
        Ok(walk.step(ns, ctx)?.map(|summary| {
            let mut used = summary.used();
            if ns.directory_amounts().is_zero() {
                // The root group counts the directories, which all groups have.
                used.inodes = summary.file_count as i64;
            }
            LimitsAndUsage { limits: summary.limits, used }
        }))
    }
}

pub enum Usage {
    /// The directory has a quota and knows.
    Known(Quota),
    /// The usage has to be counted.
    Counted(Walk),
}

/// A look under way. All directories below must be readable, even where nothing is counted, so that it takes steps:
/// call [`Look::step`] until it answers.
pub struct Look {
    check: SubtreeCheck,
    target: InodeId,
    at: Option<SnapshotId>,
    path: String,
}

/// Hadoop: `getQuotaUsage`.
///
/// # Errors
/// The path cannot be resolved (see [`crate::reads`]) or does not exist.
pub fn start(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Look> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, path, Purpose::Read)?;
    let access = access.at(resolved.snapshot);
    let check = SubtreeCheck::new(ns, &access, &resolved, READ_EXECUTE, false);
    let Some(target) = resolved.target else { return Err(absent(resolved.path.as_str())) };
    let target = ns.tree.inode(target).id();
    Ok(Look { check, target, at: resolved.snapshot, path: resolved.path.as_str().to_owned() })
}

/// Takes all steps at once.
///
/// # Errors
/// Those of [`start`] and [`Look::step`].
pub fn get(ns: &Namespace, ctx: &Context<'_>, path: &str) -> FsResult<Usage> {
    let mut look = start(ns, ctx, path)?;
    loop {
        if let Some(usage) = look.step(ns, ctx)? {
            return Ok(usage);
        }
    }
}

fn absent(path: &str) -> FsError {
    FsError::NotFound(format!("File/Directory does not exist: {path}"))
}

impl Look {
    /// Visits at most `limits.content_summary_step` inodes. `Ok(None)`: let others have their turn, go on.
    ///
    /// # Errors
    /// [`FsError::AccessDenied`] if the caller may not read a directory below; [`FsError::NotFound`] if the directory
    /// was deleted meanwhile.
    pub fn step(&mut self, ns: &Namespace, ctx: &Context<'_>) -> FsResult<Option<Usage>> {
        let access = Access::new(ctx).at(self.at);
        if !self.check.step(ns, &access, ctx.limits.content_summary_step)? {
            return Ok(None);
        }
        let target = ns.handle(self.target).ok_or_else(|| absent(&self.path))?;
        let inode = ns.tree.inode(target);
        let known = ns.tree.quotas.get(&inode.id());
        match known.filter(|_| inode.has_quota() && self.at.is_none()) {
            Some(quota) => Ok(Some(Usage::Known(quota.clone()))),
            None => {
                let walk = Walk::of(ns, ctx, target, self.at)?;
                // HDFS's root always has a quota.
                let is_root = inode.id() == InodeId::ROOT && self.at.is_none();
                Ok(Some(Usage::Counted(if is_root { walk.counting_blocks() } else { walk })))
            }
        }
    }
}
