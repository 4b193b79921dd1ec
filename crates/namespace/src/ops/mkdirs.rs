//! Creates a directory and, if asked, the missing ones above it.
//!
//! A directory that is there already is what was asked for; a file in its place is an error. The missing
//! ones above get the same permission, with write and execute for their owner; all belong to the caller, and
//! to the group of the directory they enter, and get what its default ACL hands on.

use crate::{
    Context, Namespace, Reply,
    access::{Access, WRITE},
    acl::{
        Acl,
        inherit::{self, Modes},
    },
    charge::{self, ledger::Ledger},
    codec::record_fields,
    edit::{Edit, Planned, heirs::Heirs},
    entry_limits,
    footprint::Marks,
    new_directory,
    operation::{Applying, Operation},
    path::Path,
    plannable::plannable,
    resolve::{Purpose, Resolved, resolve},
    store::{attributes::AttributeValues, inode::Inode},
};
use base::{FsError, FsResult, InodeId, Timestamp};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    /// The client's umask is already applied.
    pub permission: u16,
    /// The permission without it, from clients that know of inherited ACLs.
    pub unmasked: Option<u16>,
    pub create_parent: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MkdirsEdit {
    pub parent: InodeId,
    /// The directories to make, from the outermost: each is made in the one before it.
    pub directories: Vec<NewDirectory>,
    pub owner: Arc<str>,
    pub group: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NewDirectory {
    pub id: InodeId,
    pub name: Box<str>,
    pub mode: u16,
    /// Inherited; see [`Heirs`].
    pub acl: Option<Arc<Acl>>,
}

record_fields! { MkdirsEdit { parent, directories, owner, group } }
record_fields! { NewDirectory { id, name, mode } acl }

impl Heirs for MkdirsEdit {
    fn acls(&mut self) -> Vec<&mut Option<Arc<Acl>>> {
        self.directories.iter_mut().map(|directory| &mut directory.acl).collect()
    }

    fn inherits(&self) -> bool {
        self.directories.iter().any(|directory| directory.acl.is_some())
    }
}

/// # Errors
/// [`FsError::Io`] if the path is too long or too deep. The path cannot be resolved (see [`crate::ops`]), or is a file
/// ([`FsError::AlreadyExists`]). The directory above does not exist and is not to be made, or the caller may not write
/// it. There is no room, or a quota has none; [`FsError::InvalidArgument`] if the caller's own name is too long to be
/// stored.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<MkdirsEdit>> {
    Path::check_length(&req.path, "mkdirs", ctx.limits)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.path, Purpose::Create)?;
    if let Some(target) = resolved.target {
        if ns.tree.inode(target).is_file() {
            return Err(FsError::AlreadyExists(format!("Path is not a directory: {}", req.path)));
        }
        return Ok(Planned::NoChange(Reply::Bool(true)));
    }
    if resolved.parent().is_some_and(|parent| ctx.has_file(ns, parent, resolved.path.name())) {
        return Err(FsError::AlreadyExists(format!("Path is not a directory: {}", req.path)));
    }
    entry_limits::check_text("name of the user", &ctx.caller.user)?;
    access.check_ancestor(ns, &resolved, WRITE)?;
    if !req.create_parent {
        resolved.check_parent_exists()?;
    }
    entry_limits::check_objects(ns, ctx)?;
    let modes = Modes::new(req.permission, req.unmasked, ctx.limits.access.posix_acl_inheritance);
    let mut directories = missing_ancestors(ns, ctx, &resolved, modes.of_ancestor())?;
    let (mode, acl) = inherit::inherit(acl_of(ns, resolved.ancestor, &directories), modes, true)?;
    let above = above(ns, &resolved, &directories);
    let depth = resolved.path.depth() - 1;
    directories.push(NewDirectory {
        id: new_directory::next_id(ns, ctx, &resolved.path, depth, directories.len(), above)?,
        name: resolved.path.name().into(),
        mode,
        acl,
    });
    let edit = MkdirsEdit {
        parent: ns.tree.inode(resolved.ancestor).id(),
        directories,
        owner: ctx.caller.user.clone(),
        group: group_of(ns, resolved.ancestor),
    };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

/// The directories that must be made above the target, which does not exist; with the limits on all names.
pub(crate) fn missing_ancestors(
    ns: &Namespace,
    ctx: &Context<'_>,
    resolved: &Resolved<'_>,
    modes: Modes,
) -> FsResult<Vec<NewDirectory>> {
    entry_limits::check_room(ns, ctx, resolved.ancestor, resolved.path.prefix(resolved.ancestor_depth))?;
    let count = resolved.path.depth() - resolved.ancestor_depth - 1;
    // The caller of mkdirs adds one; that of create mostly finds none missing.
    let mut directories: Vec<NewDirectory> = Vec::with_capacity(if count == 0 { 0 } else { count + 1 });
    for (at, name) in resolved.missing().enumerate() {
        entry_limits::check_component(ctx, resolved.path.prefix(resolved.ancestor_depth + at), name)?;
        if at < count {
            let (mode, acl) = inherit::inherit(acl_of(ns, resolved.ancestor, &directories), modes, true)?;
            let (above, depth) = (above(ns, resolved, &directories), resolved.ancestor_depth + at);
            directories.push(NewDirectory {
                id: new_directory::next_id(ns, ctx, &resolved.path, depth, at, above)?,
                name: name.into(),
                mode,
                acl,
            });
        }
    }
    Ok(directories)
}

/// The directory that the next one is made in.
fn above(ns: &Namespace, resolved: &Resolved<'_>, made: &[NewDirectory]) -> InodeId {
    made.last().map_or_else(|| ns.tree.inode(resolved.ancestor).id(), |directory| directory.id)
}

/// The ACL of the directory that the next inode enters: the last one of those to be made, or `ancestor`.
pub(crate) fn acl_of<'a>(ns: &'a Namespace, ancestor: u32, made: &'a [NewDirectory]) -> Option<&'a Acl> {
    match made.last() {
        Some(directory) => directory.acl.as_deref(),
        None => ns.tree.attributes_of(ancestor).acl.map(|acl| &**acl),
    }
}

/// New inodes inherit the group of the directory they enter.
pub(crate) fn group_of(ns: &Namespace, directory: u32) -> Arc<str> {
    let attributes = ns.tree.attributes.get(ns.tree.inode(directory).attributes);
    ns.tree.strings.shared(attributes.group).clone()
}

plannable! { Request by plan => Planned<MkdirsEdit>, (path) "Cannot create directory {path}" }

impl Operation for MkdirsEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Bool(true))
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        // Directories that are made further down are reached by the first name only.
        if let Some(first) = self.directories.first() {
            marks.entry(self.parent, first.name.as_bytes());
        }
    }

    fn changed(&self, _: &Namespace, add: &mut dyn FnMut(InodeId)) {
        add(self.parent);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        charge::add_directories(ledger, ns, ns.expect(self.parent), self.directories.len());
    }

    fn followed(&self, ns: &Namespace) -> Option<Self> {
        ns.has_directory(self.parent).then(|| self.clone())
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let parent = ns.expect(self.parent);
        make_directories(ns, applying.time, parent, &self.directories, &self.owner, &self.group);
        Reply::Bool(true)
    }
}

/// Makes a chain of directories; answers the innermost.
pub(crate) fn make_directories(
    ns: &mut Namespace,
    time: Timestamp,
    parent: u32,
    directories: &[NewDirectory],
    owner: &str,
    group: &str,
) -> u32 {
    let mut parent = parent;
    for directory in directories {
        let attributes = ns.acquire_attributes(AttributeValues {
            owner,
            group,
            mode: directory.mode,
            replication: 0,
            storage_policy: 0,
            block_size: 0,
            acl: directory.acl.as_ref(),
        });
        let inode = Inode::directory(directory.id, attributes, time);
        let handle = ns.insert_child(parent, inode, directory.name.as_bytes());
        ns.set_modified(parent, time);
        parent = handle;
    }
    parent
}
