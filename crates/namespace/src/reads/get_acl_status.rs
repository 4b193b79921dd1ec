//! The ACL of a file or directory.

use crate::{
    Context, Namespace,
    access::{Access, STICKY},
    acl::AclEntry,
    ops::set_acl,
    readable::readable,
    resolve::{Purpose, resolve},
};
use base::{FsError, FsResult};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
}

readable! { Request => AclStatus<'ns>, (path) "getAclStatus", |ns, ctx, req| get(ns, ctx, &req.path) }

/// Hadoop's `AclStatus`: what is beside the bits, and the bits. Clients make the whole list of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclStatus<'ns> {
    pub owner: &'ns str,
    pub group: &'ns str,
    pub sticky: bool,
    /// In order: the named users, the owning group and the named groups, if any but the bits are there; then
    /// the default entries.
    pub entries: &'ns [AclEntry],
    /// `None` for `.snapshot`, which has no owner.
    pub permission: Option<u16>,
}

/// # Errors
/// [`FsError::Acl`] if access control lists are switched off. The path cannot be resolved or does not exist: see
/// [`crate::reads`].
pub fn get<'ns>(ns: &'ns Namespace, ctx: &Context<'_>, path: &str) -> FsResult<AclStatus<'ns>> {
    set_acl::check_enabled(ctx)?;
    let resolved = resolve(ns, ctx, &Access::new(ctx), path, Purpose::Read)?;
    if resolved.snapshots_of.is_some() {
        return Ok(AclStatus { owner: "", group: "", sticky: false, entries: &[], permission: None });
    }
    let Some(target) = resolved.target else {
        return Err(FsError::NotFound(format!("cannot find {}", resolved.path.as_str())));
    };
    let attributes = ns.attributes_at(target, resolved.snapshot);
    Ok(AclStatus {
        owner: attributes.owner,
        group: attributes.group,
        sticky: attributes.mode & STICKY != 0,
        entries: attributes.acl.map_or(&[], |acl| acl.entries()),
        permission: Some(attributes.mode),
    })
}
