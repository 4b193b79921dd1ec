//! Changes the ACL of a file or directory, in the five ways that clients know. The caller must be the owner,
//! or the superuser, even where permissions are switched off.
//!
//! The edit holds what comes out: the bits, and the list beside them.

use crate::{
    BlockFacts, Context, Namespace, Reply,
    access::Access,
    acl::{
        Acl, AclEntry,
        storage::{Stored, split, whole, without_acl},
        transform,
    },
    change::AttributeChange,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    paths::Paths,
    plannable::Plannable,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult, InodeId};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub change: Change,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// `setAcl`. No entries: as `RemoveAll`.
    Replace(Vec<AclEntry>),
    /// `modifyAclEntries`.
    Merge(Vec<AclEntry>),
    /// `removeAclEntries`.
    Remove(Vec<AclEntry>),
    /// `removeDefaultAcl`.
    RemoveDefault,
    /// `removeAcl`.
    RemoveAll,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetAclEdit {
    pub inode: InodeId,
    pub mode: u16,
    pub acl: Option<Arc<Acl>>,
}

record_fields! { SetAclEdit { inode, mode, acl } }

/// HDFS's `checkAclsConfigFlag`.
///
/// # Errors
/// [`FsError::Acl`] if access control lists are switched off.
pub(crate) fn check_enabled(ctx: &Context<'_>) -> FsResult<()> {
    if ctx.limits.access.acls_enabled {
        return Ok(());
    }
    Err(FsError::Acl(
        "The ACL operation has been rejected.  Support for ACLs has been disabled by setting \
         dfs.namenode.acls.enabled to false."
            .into(),
    ))
}

/// Hadoop ends what it says of a list with the path.
pub(crate) fn with_path(error: FsError, path: &str) -> FsError {
    match error {
        FsError::Acl(text) => FsError::Acl(format!("{text} Path: {path}")),
        other => other,
    }
}

/// # Errors
/// [`FsError::Acl`] if access control lists are switched off, or the list that results is invalid. The path cannot be
/// resolved or does not exist, or the caller is not its owner: see [`crate::ops`].
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<SetAclEdit>> {
    check_enabled(ctx)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    let target = access.check_owner(ns, &resolved)?;
    let path = resolved.path.as_str();
    // HDFS says it as it was asked where a whole list is set, and as it is found elsewhere.
    let named = if matches!(req.change, Change::Replace(_)) { &*req.path } else { path };
    let (mode, acl) = change(ns, target, path, &req.change).map_err(|error| with_path(error, named))?;
    let attributes = ns.tree.attributes_of(target);
    if attributes.mode == mode && attributes.acl == acl.as_ref() {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let edit = SetAclEdit { inode: ns.tree.inode(target).id(), mode, acl };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

fn change(ns: &Namespace, target: u32, path: &str, change: &Change) -> FsResult<Stored> {
    let attributes = ns.tree.attributes_of(target);
    let acl = attributes.acl.map(|acl| &**acl);
    let existing = || whole(attributes.mode, acl);
    let without = || Ok((acl.map_or(attributes.mode, |acl| without_acl(attributes.mode, acl)), None));
    let new = match change {
        Change::RemoveAll => return without(),
        Change::Replace(entries) if entries.is_empty() => return without(),
        Change::Replace(entries) => transform::replace(&existing(), entries)?,
        Change::Merge(entries) => transform::merge(&existing(), entries)?,
        Change::Remove(entries) => transform::remove(&existing(), entries)?,
        Change::RemoveDefault => transform::remove_default(&existing())?,
    };
    split(&new, attributes.mode, ns.tree.inode(target).is_directory(), path)
}

impl Plannable for Request {
    type Outcome = Planned<SetAclEdit>;

    fn paths(&self) -> Paths<'_> {
        Paths::of([&self.path])
    }

    fn what(&self) -> String {
        let beginning = match self.change {
            Change::Replace(_) => "Cannot set ACL on",
            Change::Merge(_) => "Cannot modify ACL entries on",
            Change::Remove(_) => "Cannot remove ACL entries on",
            Change::RemoveDefault => "Cannot remove default ACL entries on",
            Change::RemoveAll => "Cannot remove ACL on",
        };
        format!("{beginning} {}", self.path)
    }

    fn plan(&self, ns: &Namespace, ctx: &Context<'_>, _: &dyn BlockFacts) -> FsResult<Planned<SetAclEdit>> {
        plan(ns, ctx, self)
    }
}

impl Operation for SetAclEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.passage(self.inode);
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.inode);
    }

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {}

    fn followed(&self, ns: &Namespace) -> Option<Self> {
        ns.has_directory(self.inode).then(|| self.clone())
    }

    fn apply(&self, ns: &mut Namespace, _: &mut Applying<'_>) -> Reply {
        let target = ns.expect(self.inode);
        let change = AttributeChange {
            mode: Some(self.mode),
            acl: Some(self.acl.as_ref()),
            ..AttributeChange::default()
        };
        ns.set_attributes(target, change);
        Reply::Unit
    }
}
