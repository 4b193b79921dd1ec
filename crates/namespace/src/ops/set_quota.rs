//! Limits the content of a directory, or lifts a limit. All that is below is counted when the first limit is set, and
//! the counts stand in the edit.
//!
//! Only the superuser may. A limit may be lower than the present usage: then nothing more fits.

use crate::{
    Context, Namespace, Reply,
    access::Access,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    looks::Counted,
    operation::{Applying, Operation},
    ops::allot::{self, AllotEdit},
    plannable::plannable,
    quota::{Amounts, Quota},
    resolve::{Purpose, Resolved, resolve},
    shares::ByGroup,
    snapshots::AFTER_ALL,
};
use base::{FsError, FsResult, InodeId, StorageType};

/// Leaves a limit as it is; gives that of one medium the value of the limit of all bytes. Hadoop:
/// `HdfsConstants.QUOTA_DONT_SET`.
pub const KEEP: i64 = i64::MAX;
/// Lifts a limit. Hadoop: `HdfsConstants.QUOTA_RESET`.
pub const CLEAR: i64 = -1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// Inodes, [`KEEP`] or [`CLEAR`].
    pub inodes: i64,
    /// Bytes times replication, [`KEEP`] or [`CLEAR`].
    pub bytes: i64,
    /// `bytes` limits what is on this medium; then `inodes` must be [`KEEP`].
    pub storage_type: Option<StorageType>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetQuotaEdit {
    pub directory: InodeId,
    /// `None`: no limit is left.
    pub quota: Option<Quota>,
}

record_fields! { SetQuotaEdit { directory, quota } }

/// Whether the caller may set quotas at all, which HDFS asks before anything else.
///
/// # Errors
/// [`FsError::AccessDenied`] if permissions are checked and the caller is not the superuser.
pub fn check_privilege(ctx: &Context<'_>, req: &Request) -> FsResult<()> {
    let access = Access::new(ctx);
    if access.enabled && !access.is_superuser {
        return Err(FsError::AccessDenied(format!(
            "Access denied for user {}. Superuser privilege is required for operation {}",
            ctx.caller.user,
            operation(req)
        )));
    }
    Ok(())
}

/// The decision of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Alone(Planned<SetQuotaEdit>),
    /// Several groups share the quota.
    Shared(Edit<AllotEdit>),
}

/// # Errors
/// Those of [`check_privilege`]; the path cannot be resolved or does not exist (see [`crate::ops`]).
/// [`FsError::PathIsNotDirectory`] if it is a file, [`FsError::InvalidArgument`] if a limit is below -1 or the storage
/// type has no quota, [`FsError::UnsupportedAction`] if the storage type comes with a limit of names.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Plan> {
    check_privilege(ctx, req)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    check_values(req)?;
    let directory = directory(ns, ctx, &resolved)?;
    let inode = ns.tree.inode(directory);
    let is_root = inode.id() == InodeId::ROOT;
    let default = Amounts::default_limits(is_root);
    let known = ns.tree.quotas.get(&inode.id()).filter(|_| inode.has_quota());
    let before = known.map_or(default, |quota| quota.limits);
    let limits = changed(req, &before, is_root);
    if limits == before {
        return Ok(Plan::Alone(Planned::NoChange(Reply::Unit)));
    }
    let is_limited = limits != default && (is_root || limits.numbers().any(|limit| limit >= 0));
    if is_limited && ns.is_shared() {
        let edit = allot::hand_out(ns, ctx, inode.id(), limits, &ByGroup::new());
        return Ok(Plan::Shared(Edit::plan(ns, ctx, edit)?));
    }
    let used = || match known {
        Some(quota) => quota.used,
        None => {
            let policy = ns.tree.policy_of(directory);
            ns.amounts_for(ctx, Counted { top: inode.id(), policy, died: AFTER_ALL, anew: false })
        }
    };
    let quota = is_limited.then(|| Quota { limits, used: used() });
    let edit = SetQuotaEdit { directory: inode.id(), quota };
    Ok(Plan::Alone(Planned::Edit(Edit::plan(ns, ctx, edit)?)))
}

/// HDFS's `getQuotaCommand`.
fn operation(req: &Request) -> &'static str {
    match (req.inodes, req.bytes) {
        (CLEAR, KEEP) => "clearQuota",
        (KEEP, CLEAR) => "clearSpaceQuota",
        (_, KEEP) => "setQuota",
        _ => "setSpaceQuota",
    }
}

fn check_values(req: &Request) -> FsResult<()> {
    let Request { inodes, bytes, .. } = *req;
    if inodes < CLEAR || bytes < CLEAR {
        return Err(FsError::InvalidArgument(format!(
            "Illegal value for nsQuota or ssQuota : {inodes} and {bytes}"
        )));
    }
    let Some(kind) = req.storage_type else { return Ok(()) };
    if inodes != KEEP {
        return Err(FsError::UnsupportedAction(format!(
            "Failed to set quota by storage type because either dfs.quota.by.storage.type.enabled is set to \
             true or nsQuota value is illegal {inodes}"
        )));
    }
    if kind.quota_index().is_none() {
        return Err(FsError::InvalidArgument(format!("Don't support Quota for storage type : {kind}")));
    }
    Ok(())
}

fn directory(ns: &Namespace, ctx: &Context<'_>, resolved: &Resolved<'_>) -> FsResult<u32> {
    let path = resolved.path.as_str();
    match resolved.target {
        None if ctx.names_file(ns, resolved) => Err(FsError::PathIsNotDirectory(path.into())),
        None => Err(FsError::NotFound(format!("Directory does not exist: {path}"))),
        Some(target) if ns.tree.inode(target).is_file() => Err(FsError::PathIsNotDirectory(path.into())),
        Some(target) => Ok(target),
    }
}

fn changed(req: &Request, before: &Amounts, is_root: bool) -> Amounts {
    let mut limits = *before;
    if let Some(at) = req.storage_type.and_then(StorageType::quota_index) {
        // HDFS keeps what limits the bytes on all media, also where it is one medium's limit that is asked about.
        limits.by_type[at] = if req.bytes == KEEP { before.bytes } else { req.bytes };
        return limits;
    }
    match req.inodes {
        // The root always has a quota of names, if one that nobody exceeds.
        CLEAR if is_root => limits.inodes = KEEP,
        KEEP => {}
        inodes => limits.inodes = inodes,
    }
    if req.bytes != KEEP {
        limits.bytes = req.bytes;
    }
    limits
}

plannable! { Request by plan => Plan, (path) "Cannot set quota on {path}" }

impl Operation for SetQuotaEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        // Every plan below this directory rests on the quota.
        marks.passage(self.directory);
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.directory);
    }

    /// Groups lift a quota together. They set one by handing out allowances: [`crate::ops::allot`].
    fn followed(&self, ns: &Namespace) -> Option<Self> {
        (self.quota.is_none() && ns.has_directory(self.directory)).then(|| self.clone())
    }

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {
        // A quota that is set brings its usage with it.
    }

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        let directory = ns.expect(self.directory);
        ns.set_quota(directory, self.quota.clone());
        Reply::Unit
    }
}
