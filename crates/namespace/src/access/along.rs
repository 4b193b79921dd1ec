//! The checks of what a path was resolved to, and of the directories on the way there.

use super::{ALL, Access, WRITE, subtree::SubtreeCheck};
use crate::{Context, Namespace, resolve::Resolved};
use base::{FsError, FsResult};

impl Access<'_> {
    /// The closest ancestor that exists must allow the action.
    pub fn check_ancestor(&self, ns: &Namespace, resolved: &Resolved<'_>, action: u8) -> FsResult<()> {
        if resolved.path.is_root() {
            return Ok(());
        }
        self.check(ns, resolved.ancestor, resolved.path.prefix(resolved.ancestor_depth), action)
    }

    /// The parent must allow a change of its children, and its sticky bit must not protect the target.
    pub fn check_parent_write(&self, ns: &Namespace, resolved: &Resolved<'_>) -> FsResult<()> {
        let Some(parent) = resolved.parent() else {
            return Ok(());
        };
        if let Some(target) = resolved.target.filter(|target| self.is_sticky_violated(ns, parent, *target)) {
            let paths = (resolved.path.parent(), resolved.path.as_str());
            return Err(self.sticky_denial(ns, parent, target, paths));
        }
        self.check(ns, parent, resolved.path.parent(), WRITE)
    }

    pub fn check_target(&self, ns: &Namespace, resolved: &Resolved<'_>, action: u8) -> FsResult<()> {
        match resolved.target {
            Some(target) => self.at(resolved.snapshot).check(ns, target, resolved.path.as_str(), action),
            None => Ok(()),
        }
    }

    /// Every directory from the target down that is not empty must allow everything. If that needs a look first the answer is
    /// of no use: see [`crate::Looks`].
    pub fn check_subtree(&self, ns: &Namespace, ctx: &Context<'_>, resolved: &Resolved<'_>) -> FsResult<()> {
        let check = SubtreeCheck::new(ns, self, resolved, ALL, true);
        check.clone().all_rights(ns, ctx).map_err(|denial| check.error(ns, self, denial))
    }

    /// Checked whether or not permissions are switched on, with the way to the target.
    pub fn check_owner(&self, ns: &Namespace, resolved: &Resolved<'_>) -> FsResult<u32> {
        let path = resolved.path.as_str();
        let Some(target) = resolved.target else {
            return Err(FsError::NotFound(format!("Directory/File does not exist {path}")));
        };
        self.check_is_owner(ns, resolved, ns.tree.attributes_of(target).owner)?;
        Ok(target)
    }

    /// As [`Self::check_owner`], for what has this owner. It may be a file of another home.
    pub fn check_is_owner(&self, ns: &Namespace, resolved: &Resolved<'_>, owner: &str) -> FsResult<()> {
        if self.is_superuser {
            return Ok(());
        }
        resolved.check_traverse(ns, self)?;
        match *owner == *self.caller.user {
            true => Ok(()),
            false => Err(FsError::AccessDenied(format!(
                "Permission denied. user={} is not the owner of inode={}",
                self.caller.user,
                resolved.path.as_str()
            ))),
        }
    }
}
