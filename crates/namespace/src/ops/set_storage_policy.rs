//! Says on which media the replicas of a file shall be, or those of all files below a directory that have no
//! policy of their own. Replicas that are there already stay where they are.

use crate::{
    BlockFacts, Context, Namespace, Reply,
    access::{Access, WRITE},
    change::AttributeChange,
    charge::{ledger::Ledger, moving},
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    paths::Paths,
    plannable::Plannable,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult, InodeId, POLICY_UNSPECIFIED, StoragePolicy};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// A policy's name, in letters of any case. `None` unsets: the closest ancestor's policy holds.
    pub policy: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetStoragePolicyEdit {
    pub inode: InodeId,
    /// The policy's id; 0: none.
    pub policy: u8,
}

record_fields! { SetStoragePolicyEdit { inode, policy } }

/// # Errors
/// [`FsError::InvalidArgument`] if there is no policy of that name.
pub(crate) fn named(name: &str) -> FsResult<&'static StoragePolicy> {
    StoragePolicy::named(name)
        .ok_or_else(|| FsError::InvalidArgument(format!("Cannot find a block policy with the name {name}")))
}

/// # Errors
/// [`FsError::InvalidArgument`] if there is no policy of that name, or the file's policy is one that is chosen at its
/// creation only. The path cannot be resolved or does not exist, the caller may not write it, or a quota has no room:
/// see [`crate::ops`].
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<SetStoragePolicyEdit>> {
    let policy = req.policy.as_deref().map(named).transpose()?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    access.check_target(ns, &resolved, WRITE)?;
    let Some(target) = resolved.target else {
        return Err(FsError::NotFound(format!("File/Directory does not exist: {}", resolved.path.as_str())));
    };
    let own = ns.tree.own_policy(target);
    if ns.tree.inode(target).is_file() {
        if let Some(policy) = policy.filter(|policy| policy.is_copied_on_create) {
            return Err(FsError::InvalidArgument(format!(
                "Policy {policy} cannot be set after file creation."
            )));
        }
        if let Some(known) = StoragePolicy::with_id(own).filter(|known| known.is_copied_on_create) {
            return Err(FsError::InvalidArgument(format!(
                "Existing policy {} cannot be changed after file creation.",
                known.name
            )));
        }
    }
    let policy = policy.map_or(POLICY_UNSPECIFIED, |policy| policy.id);
    if own == policy {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let edit = SetStoragePolicyEdit { inode: ns.tree.inode(target).id(), policy };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

impl Plannable for Request {
    type Outcome = Planned<SetStoragePolicyEdit>;

    fn paths(&self) -> Paths<'_> {
        Paths::of([&self.path])
    }

    fn what(&self) -> String {
        let verb = if self.policy.is_some() { "set" } else { "unset" };
        format!("Cannot {verb} storage policy for {}", self.path)
    }

    fn plan(
        &self,
        ns: &Namespace,
        ctx: &Context<'_>,
        _: &dyn BlockFacts,
    ) -> FsResult<Planned<SetStoragePolicyEdit>> {
        plan(ns, ctx, self)
    }
}

impl Operation for SetStoragePolicyEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.passage(self.inode);
        marks.past();
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.inode);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        // HDFS lets anybody set a policy, whatever the quotas by storage type say.
        moving::set_policy(ns, ledger, ns.expect(self.inode), self.policy);
    }

    fn followed(&self, ns: &Namespace) -> Option<Self> {
        ns.has_directory(self.inode).then(|| self.clone())
    }

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        let target = ns.expect(self.inode);
        let change = AttributeChange { storage_policy: Some(self.policy), ..AttributeChange::default() };
        ns.set_attributes(target, change);
        if ns.tree.inode(target).is_directory() {
            ns.recount_media(target);
        }
        Reply::Unit
    }
}
