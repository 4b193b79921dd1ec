//! The permission checks of HDFS's `FSPermissionChecker`.

mod along;
pub(crate) mod subtree;

use crate::{
    Context, Namespace, SnapshotId,
    acl::{self, Acl},
    store::attributes::AttributeValues,
};
use base::{Caller, FsError, FsResult};

pub(crate) const READ: u8 = 4;
pub(crate) const WRITE: u8 = 2;
pub(crate) const EXECUTE: u8 = 1;
pub(crate) const READ_EXECUTE: u8 = READ | EXECUTE;
pub(crate) const ALL: u8 = READ | WRITE | EXECUTE;

pub(crate) const MODE_MASK: u16 = 0o1777;
pub(crate) const STICKY: u16 = 0o1000;

/// The caller's standing, found out once a request.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub caller: &'a Caller,
    pub is_superuser: bool,
    /// Whether permissions are checked. Owners are checked even if not, as in HDFS.
    pub enabled: bool,
    /// The snapshot whose attributes are checked; `None`: the tree as it is.
    pub snapshot: Option<SnapshotId>,
}

/// Hadoop's names of `FsAction`.
fn action_name(action: u8) -> &'static str {
    const NAMES: [&str; 8] =
        ["NONE", "EXECUTE", "WRITE", "WRITE_EXECUTE", "READ", "READ_EXECUTE", "READ_WRITE", "ALL"];
    NAMES[usize::from(action & 7)]
}

/// The text of a mode as Hadoop's `FsPermission` prints it: `rwxr-x--t`.
pub fn mode_text(mode: u16) -> String {
    let mut text: String =
        (0..9).map(|at| if mode & (0o400 >> at) != 0 { ['r', 'w', 'x'][at % 3] } else { '-' }).collect();
    if mode & STICKY != 0 {
        text.pop();
        text.push(if mode & 1 != 0 { 't' } else { 'T' });
    }
    text
}

impl<'a> Access<'a> {
    pub fn new(ctx: &Context<'a>) -> Self {
        let policy = &ctx.limits.access;
        let is_superuser = policy.is_superuser(ctx.caller);
        Self { caller: ctx.caller, is_superuser, enabled: policy.enabled, snapshot: None }
    }

    /// The checks on the modes and owners that this snapshot shows; with `None`, on the present ones.
    pub fn at(&self, snapshot: Option<SnapshotId>) -> Self {
        Self { snapshot, ..*self }
    }

    /// Whether the mode bits of an inode allow the action.
    pub fn may(&self, ns: &Namespace, handle: u32, action: u8) -> bool {
        if self.is_superuser {
            return true;
        }
        let shared = ns.tree.attributes.get(ns.attributes_handle_at(handle, self.snapshot));
        // Most directories let everyone pass. Then nobody need be told apart.
        let for_everyone = shared.mode & shared.mode >> 3 & shared.mode >> 6;
        if shared.acl.is_none() && for_everyone as u8 & action == action {
            return true;
        }
        let attributes = ns.attributes_at(handle, self.snapshot);
        if let Some(acl) = attributes.acl.filter(|acl| !acl.access().is_empty()) {
            return self.may_by_acl(attributes, acl, action);
        }
        let shift = if *attributes.owner == *self.caller.user {
            6
        } else if self.caller.is_member_of(attributes.group) {
            3
        } else {
            0
        };
        (attributes.mode >> shift) as u8 & action == action
    }

    /// HDFS's `hasAclPermission`: the first of owner, named user and groups that speaks of the caller decides;
    /// of several groups one that grants is enough. The group's bits are the mask.
    fn may_by_acl(&self, attributes: AttributeValues<'_>, acl: &Acl, action: u8) -> bool {
        let grants = |permission: u8| permission & action == action;
        let class = |shift: u16| (attributes.mode >> shift) as u8 & ALL;
        if *attributes.owner == *self.caller.user {
            return grants(class(6));
        }
        let mask = class(3);
        let mut is_named = false;
        for entry in acl.access() {
            let group = entry.name.as_deref().unwrap_or(attributes.group);
            match entry.kind {
                acl::Kind::User if *group == *self.caller.user => return grants(entry.permission & mask),
                acl::Kind::Group if self.caller.is_member_of(group) => {
                    if grants(entry.permission & mask) {
                        return true;
                    }
                    is_named = true;
                }
                _ => {}
            }
        }
        !is_named && grants(class(0))
    }

    pub fn inode_text(&self, ns: &Namespace, handle: u32) -> String {
        let attributes = ns.attributes_at(handle, self.snapshot);
        let kind = if ns.tree.inode(handle).is_directory() { 'd' } else { '-' };
        format!("{}:{}:{kind}{}", attributes.owner, attributes.group, mode_text(attributes.mode))
    }

    pub fn denial(&self, ns: &Namespace, handle: u32, path: &str, action: u8) -> FsError {
        FsError::AccessDenied(format!(
            "Permission denied: user={}, access={}, inode=\"{path}\":{}",
            self.caller.user,
            action_name(action),
            self.inode_text(ns, handle)
        ))
    }

    pub fn check(&self, ns: &Namespace, handle: u32, path: &str, action: u8) -> FsResult<()> {
        if !self.enabled || self.may(ns, handle, action) {
            return Ok(());
        }
        Err(self.denial(ns, handle, path, action))
    }

    /// `paths`: of the directory and of the child.
    pub fn sticky_denial(&self, ns: &Namespace, parent: u32, child: u32, paths: (&str, &str)) -> FsError {
        FsError::AccessDenied(format!(
            "Permission denied by sticky bit: user={}, path=\"{}\":{}, parent=\"{}\":{}",
            self.caller.user,
            paths.1,
            self.inode_text(ns, child),
            paths.0,
            self.inode_text(ns, parent)
        ))
    }

    /// The denial for a file that another group has: only that group knows its name.
    pub fn sticky_denial_elsewhere(&self, ns: &Namespace, parent: u32, path: &str) -> FsError {
        FsError::AccessDenied(format!(
            "Permission denied by sticky bit: user={}, path=a file of another user, parent=\"{path}\":{}",
            self.caller.user,
            self.inode_text(ns, parent)
        ))
    }

    /// As [`Self::sticky_denial`], for a file that another group has, of which owner, group and mode were told. `paths`: of the directory and
    /// of the file.
    pub fn sticky_denial_of(&self, ns: &Namespace, parent: u32, paths: (&str, &str), file: &str) -> FsError {
        FsError::AccessDenied(format!(
            "Permission denied by sticky bit: user={}, path=\"{}\":{file}, parent=\"{}\":{}",
            self.caller.user,
            paths.1,
            paths.0,
            self.inode_text(ns, parent)
        ))
    }

    /// Whether a sticky bit protects what others than the caller own in the directory.
    pub fn is_sticky_for_others(&self, ns: &Namespace, directory: u32) -> bool {
        let directory = ns.attributes_at(directory, self.snapshot);
        self.enabled
            && !self.is_superuser
            && directory.mode & STICKY != 0
            && *directory.owner != *self.caller.user
    }

    pub fn is_sticky_violated(&self, ns: &Namespace, parent: u32, child: u32) -> bool {
        self.is_sticky_for_others(ns, parent)
            && *ns.attributes_at(child, self.snapshot).owner != *self.caller.user
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_printed_as_hadoop_prints_them() {
        assert_eq!(mode_text(0o755), "rwxr-xr-x");
        assert_eq!(mode_text(0o1777), "rwxrwxrwt");
        assert_eq!(mode_text(0o1640), "rw-r----T");
    }
}
