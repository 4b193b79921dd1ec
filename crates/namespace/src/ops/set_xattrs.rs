//! Sets an extended attribute, or takes one away.
//!
//! An attribute `user.…` may be changed by all who may write the file, and on a sticky directory by the owner alone;
//! `trusted.…` by superusers; `raw.…` by paths below `/.reserved/raw`. Of `security.…` there is one name that anybody
//! may give a file, and that stays for ever. `system.…` cannot be set.

use crate::{
    Context, Namespace, Reply,
    access::{Access, STICKY, WRITE},
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    plannable::plannable,
    reserved::is_raw,
    resolve::{Purpose, Resolved, resolve},
    xattr::{Space, Xattr, XattrName, Xattrs},
};
use base::{FsError, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub name: XattrName,
    /// `None` where the client sent none: as an empty value, but for one name.
    pub value: Option<Vec<u8>>,
    /// Bits of Hadoop's `XAttrSetFlagProto`; see [`flag`].
    pub flags: u32,
}

/// The request of `removeXAttr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub path: String,
    pub name: XattrName,
}

/// Hadoop's `XAttrSetFlagProto`: what the attribute may be.
pub mod flag {
    /// The attribute may be new.
    pub const CREATE: u32 = 1;
    /// The attribute may be there already.
    pub const REPLACE: u32 = 2;
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetXattrsEdit {
    pub inode: InodeId,
    pub set: Vec<Xattr>,
    pub removed: Vec<XattrName>,
}

record_fields! { SetXattrsEdit { inode, set, removed } }

/// HDFS's `checkXAttrsConfigFlag`.
///
/// # Errors
/// [`FsError::Io`] if extended attributes are switched off.
pub(crate) fn check_enabled(ctx: &Context<'_>) -> FsResult<()> {
    if ctx.limits.xattrs.enabled {
        return Ok(());
    }
    Err(FsError::Io(
        "The XAttr operation has been rejected.  Support for XAttrs has been disabled by setting \
         dfs.namenode.xattrs.enabled to false."
            .into(),
    ))
}

/// HDFS's `XAttrPermissionFilter.checkPermissionForApi`.
///
/// # Errors
/// [`FsError::AccessDenied`] if the caller may not use the name's space, or gives a value to the attribute that has
/// none.
pub(crate) fn check_permission(
    access: &Access<'_>,
    path: &str,
    name: &XattrName,
    value: Option<&[u8]>,
) -> FsResult<()> {
    match name.space {
        Space::User => Ok(()),
        Space::Trusted if access.is_superuser => Ok(()),
        Space::Raw if is_raw(path) => Ok(()),
        _ if name.is_unreadable_by_superuser() => match value {
            None => Ok(()),
            Some(_) => Err(FsError::AccessDenied(format!(
                "Attempt to set a value for '{name}'. Values are not allowed for this xattr."
            ))),
        },
        _ => Err(FsError::AccessDenied(format!("User doesn't have permission for xattr: {name}"))),
    }
}

/// The file or directory whose attribute the caller may change.
fn changeable(
    ns: &Namespace,
    ctx: &Context<'_>,
    path: &str,
    name: &XattrName,
    value: Option<&[u8]>,
) -> FsResult<u32> {
    let access = Access::new(ctx);
    check_permission(&access, path, name, value)?;
    let resolved = resolve(ns, ctx, &access, path, Purpose::Other)?;
    check_change(ns, &access, &resolved, name.space)?;
    resolved.target.ok_or_else(|| FsError::NotFound(format!("cannot find {}", resolved.path.as_str())))
}

/// HDFS's `checkXAttrChangeAccess`.
fn check_change(ns: &Namespace, access: &Access<'_>, resolved: &Resolved<'_>, space: Space) -> FsResult<()> {
    if !access.enabled || space != Space::User {
        return Ok(());
    }
    let is_sticky_directory = resolved.target.is_some_and(|target| {
        ns.tree.inode(target).is_directory() && ns.tree.attributes_of(target).mode & STICKY != 0
    });
    if is_sticky_directory {
        return access.check_owner(ns, resolved).map(|_| ());
    }
    access.check_target(ns, resolved, WRITE)
}

/// # Errors
/// [`FsError::Io`] if extended attributes are switched off, the flags do not fit what is there, there are as many
/// attributes as there may be, or the attribute is one for files only. [`FsError::InvalidArgument`] if the name is
/// empty, name and value are too long, or no flag is given. The path cannot be resolved or does not exist, or the
/// caller may not change the attribute: see [`crate::ops`].
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<SetXattrsEdit>> {
    check_enabled(ctx)?;
    check_size(ctx, req)?;
    let target = changeable(ns, ctx, &req.path, &req.name, req.value.as_deref())?;
    let existing = ns.tree.xattrs_of(target);
    check_flags(req, existing.is_some_and(|xattrs| xattrs.get(&req.name).is_some()))?;
    let set = Xattr { name: req.name.clone(), value: req.value.as_deref().unwrap_or_default().into() };
    if existing.is_some_and(|xattrs| xattrs.get(&req.name) == Some(&set)) {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let after = Xattrs::changed(existing.map(|xattrs| &**xattrs), std::slice::from_ref(&set), &[]);
    let counted = after.iter().flat_map(|after| after.all()).filter(|xattr| xattr.name.space.is_counted());
    let limit = ctx.limits.xattrs.per_inode_max;
    if counted.count() > limit {
        return Err(FsError::Io(format!(
            "Cannot add additional XAttr to inode, would exceed limit of {limit}"
        )));
    }
    if req.name.is_unreadable_by_superuser() && ns.tree.inode(target).is_directory() {
        return Err(FsError::Io(format!("Can only set '{}' on a file.", req.name)));
    }
    let edit = SetXattrsEdit { inode: ns.tree.inode(target).id(), set: vec![set], removed: Vec::new() };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

/// `removeXAttr`.
///
/// # Errors
/// [`FsError::Io`] if extended attributes are switched off, or the path has no such attribute. The path cannot be
/// resolved or does not exist, or the caller may not remove the attribute, as nobody may that which keeps superusers
/// from reading: see [`crate::ops`].
pub fn plan_removal(ns: &Namespace, ctx: &Context<'_>, req: &Removal) -> FsResult<Planned<SetXattrsEdit>> {
    let Removal { path, name } = req;
    check_enabled(ctx)?;
    let target = changeable(ns, ctx, path, name, None)?;
    let existing = ns.tree.xattrs_of(target);
    if ns.has_any_xattr(target) && name.is_unreadable_by_superuser() {
        return Err(FsError::AccessDenied(format!("The xattr '{name}' can not be deleted.")));
    }
    if existing.is_none_or(|xattrs| xattrs.get(name).is_none()) {
        return Err(FsError::Io("No matching attributes found for remove operation".into()));
    }
    let removed = vec![name.clone()];
    let edit = SetXattrsEdit { inode: ns.tree.inode(target).id(), set: Vec::new(), removed };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

fn check_size(ctx: &Context<'_>, req: &Request) -> FsResult<()> {
    let size = req.name.name.len() + req.value.as_deref().unwrap_or_default().len();
    let limit = ctx.limits.xattrs.bytes_max;
    if size > limit {
        return Err(FsError::InvalidArgument(format!(
            "The XAttr is too big. The maximum combined size of the name and value is {limit}, but the total \
             size is {size}"
        )));
    }
    if req.name.name.is_empty() {
        return Err(FsError::InvalidArgument("XAttr name cannot be empty.".into()));
    }
    Ok(())
}

/// Hadoop's `XAttrSetFlag.validate`.
fn check_flags(req: &Request, exists: bool) -> FsResult<()> {
    let name = &req.name.name;
    if req.flags & (flag::CREATE | flag::REPLACE) == 0 {
        return Err(FsError::InvalidArgument("A flag must be specified.".into()));
    }
    if exists && req.flags & flag::REPLACE == 0 {
        return Err(FsError::Io(format!(
            "XAttr: {name} already exists. The REPLACE flag must be specified."
        )));
    }
    if !exists && req.flags & flag::CREATE == 0 {
        return Err(FsError::Io(format!("XAttr: {name} does not exist. The CREATE flag must be specified.")));
    }
    Ok(())
}

plannable! { Request by plan => Planned<SetXattrsEdit>, (path) "Cannot set XAttr on {path}" }
plannable! { Removal by plan_removal => Planned<SetXattrsEdit>, (path) "Cannot remove XAttr entry on {path}" }

impl Operation for SetXattrsEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        // Some attributes are policies.
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
        let before = ns.tree.xattrs_of(target).map(|xattrs| &**xattrs);
        let after = Xattrs::changed(before, &self.set, &self.removed);
        ns.set_xattrs(target, after);
        Reply::Unit
    }
}
