//! chmod. The caller must be the owner, or the superuser, even where permissions are switched off.

use crate::{
    Context, Namespace, Reply,
    access::{Access, MODE_MASK},
    change::AttributeChange,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    plannable::plannable,
    reserved,
    resolve::{Purpose, resolve},
};
use base::{FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub permission: u16,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SetPermissionEdit {
    pub inode: InodeId,
    pub mode: u16,
}

record_fields! { SetPermissionEdit { inode, mode } }

/// # Errors
/// [`base::FsError::InvalidPath`] if the path is `/.reserved`. The path cannot be resolved or does not exist, or the caller
/// is not its owner: see [`crate::ops`].
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<SetPermissionEdit>> {
    reserved::check_not_top(&req.path)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Other)?;
    let target = access.check_owner(ns, &resolved)?;
    let mode = req.permission & MODE_MASK;
    if ns.tree.attributes_of(target).mode == mode {
        return Ok(Planned::NoChange(Reply::Unit));
    }
    let edit = SetPermissionEdit { inode: ns.tree.inode(target).id(), mode };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

plannable! { Request by plan => Planned<SetPermissionEdit>, (path) "Cannot set permission for {path}" }

impl Operation for SetPermissionEdit {
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
        ns.set_attributes(target, AttributeChange { mode: Some(self.mode), ..AttributeChange::default() });
        Reply::Unit
    }
}
