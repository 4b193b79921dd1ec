//! The extended attributes of a file or directory, as far as the caller may know of them.

use crate::{
    Context, Namespace,
    access::{Access, READ},
    ops::set_xattrs::{check_enabled, check_permission},
    readable::readable,
    reserved::is_raw,
    resolve::{Purpose, resolve},
    xattr::{Space, Xattr, XattrName},
};
use base::{FsError, FsResult};

/// Asks for the attributes of these names; with no name, for all that are visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub names: Vec<XattrName>,
}

readable! { Request => Vec<&'ns Xattr>, (path) "getXAttrs", |ns, ctx, req| get(ns, ctx, &req.path, &req.names) }

/// Asks for all attributes that are visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub path: String,
}

readable! { Listing => Vec<&'ns Xattr>, (path) "listXAttrs", |ns, ctx, req| get(ns, ctx, &req.path, &[]) }

/// `getXAttrs`: those asked for, all of them or an error; with none named, all that are visible, and so for
/// `listXAttrs`.
///
/// # Errors
/// [`FsError::Io`] if extended attributes are switched off. The path cannot be resolved or does not exist, or the
/// caller may not read it or one of the attributes (see [`crate::reads`]). [`FsError::XattrNotFound`] if one of those
/// named is not there.
pub fn get<'ns>(
    ns: &'ns Namespace,
    ctx: &Context<'_>,
    path: &str,
    names: &[XattrName],
) -> FsResult<Vec<&'ns Xattr>> {
    check_enabled(ctx)?;
    let access = Access::new(ctx);
    names.iter().try_for_each(|name| check_permission(&access, path, name, None))?;
    let resolved = resolve(ns, ctx, &access, path, Purpose::Read)?;
    access.check_target(ns, &resolved, READ)?;
    let Some(target) = resolved.target else {
        return Err(FsError::NotFound(format!("cannot find {}", resolved.path.as_str())));
    };
    let all = ns.xattrs_at(target, resolved.snapshot).map_or(&[][..], |xattrs| xattrs.all());
    // HDFS's `XAttrPermissionFilter.filterXAttrsForApi`.
    let is_visible = |name: &XattrName| match name.space {
        Space::User => true,
        Space::Trusted => access.is_superuser,
        Space::Raw => is_raw(path),
        Space::Security | Space::System => name.is_unreadable_by_superuser(),
    };
    let visible: Vec<&Xattr> = all.iter().filter(|xattr| is_visible(&xattr.name)).collect();
    if names.is_empty() {
        return Ok(visible);
    }
    let find = |name: &XattrName| visible.iter().find(|xattr| xattr.name == *name).copied();
    let missing = || FsError::XattrNotFound("At least one of the attributes provided was not found.".into());
    names.iter().map(|name| find(name).ok_or_else(missing)).collect()
}
