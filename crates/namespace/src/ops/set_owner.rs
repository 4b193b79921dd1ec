//! chown and chgrp. Only the superuser gives a file away; its owner may choose among the groups that it is
//! in. Checked even where permissions are switched off.

use crate::{
    Context, Namespace, Reply,
    access::Access,
    change::AttributeChange,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    entry_limits,
    footprint::Marks,
    operation::{Applying, Operation},
    plannable::plannable,
    reserved,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub owner: Option<String>,
    pub group: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetOwnerEdit {
    pub inode: InodeId,
    pub owner: Option<Box<str>>,
    pub group: Option<Box<str>>,
}

record_fields! { SetOwnerEdit { inode, owner, group } }

/// # Errors
/// [`FsError::InvalidArgument`] if a name is too long, [`FsError::InvalidPath`] if the path is `/.reserved`. The path
/// cannot be resolved or does not exist (see [`crate::ops`]). The caller may not do it: it is not the owner, or gives
/// the path to another user, or to a group without being its member or the superuser.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<SetOwnerEdit>> {
    for (what, text) in
        [("name of the owner", req.owner.as_deref()), ("name of the group", req.group.as_deref())]
    {
        entry_limits::check_text(what, text.unwrap_or_default())?;
    }
    reserved::check_not_top(&req.path)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    let target = access.check_owner(ns, &resolved)?;
    let user = &*ctx.caller.user;
    if !access.is_superuser {
        if req.owner.as_deref().is_some_and(|owner| owner != user) {
            return Err(FsError::AccessDenied(format!(
                "User {user} is not a super user (non-super user cannot change owner)."
            )));
        }
        if let Some(group) = req.group.as_deref().filter(|group| !ctx.caller.is_member_of(group)) {
            return Err(FsError::AccessDenied(format!("User {user} does not belong to {group}")));
        }
    }
    let attributes = ns.tree.attributes_of(target);
    let owner = req.owner.as_deref().filter(|owner| *owner != attributes.owner);
    let group = req.group.as_deref().filter(|group| *group != attributes.group);
    if owner.is_none() && group.is_none() {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let edit = SetOwnerEdit {
        inode: ns.tree.inode(target).id(),
        owner: owner.map(Into::into),
        group: group.map(Into::into),
    };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

plannable! { Request by plan => Planned<SetOwnerEdit>, (path) "Cannot set owner for {path}" }

impl Operation for SetOwnerEdit {
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
            owner: self.owner.as_deref(),
            group: self.group.as_deref(),
            ..AttributeChange::default()
        };
        ns.set_attributes(target, change);
        Reply::Unit
    }
}
