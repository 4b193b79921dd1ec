//! From a path to the inodes that it names: a step of its own, so that what follows need not know where the
//! ancestors live.

use crate::{
    Context, Namespace, SnapshotId,
    access::{Access, EXECUTE},
    path::Path,
    reserved,
    snapshots::view::DOT_SNAPSHOT,
};
use base::{FsError, FsResult};

/// The inode that a path names, and the directory on the way that the caller may not pass, if any.
#[derive(Clone)]
pub(crate) struct Resolved<'p> {
    pub path: Path<'p>,
    /// The closest strict ancestor that exists; the root for the root.
    pub ancestor: u32,
    pub ancestor_depth: usize,
    pub target: Option<u32>,
    /// The first ancestor that the caller may not traverse, with its depth.
    denied: Option<(u32, usize)>,
    /// The depth of an ancestor that is a file.
    blocked: Option<usize>,
    /// The snapshot in which everything behind `.snapshot` is seen, and who may pass there.
    pub snapshot: Option<SnapshotId>,
    /// The path goes through the `.snapshot` of a snapshottable directory.
    pub in_snapshot: bool,
    /// The path ends there: the directory whose snapshots it names.
    pub snapshots_of: Option<u32>,
}

/// The purpose that a path is resolved for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Create,
    /// The caller only looks, so paths into snapshots are allowed.
    Read,
    Other,
}

/// Walks down without refusing anything yet.
pub(crate) fn walk<'p>(ns: &Namespace, access: &Access<'_>, path: Path<'p>) -> Resolved<'p> {
    let root = ns.tree.root;
    // Mostly borrowed text: a copy of a pointer.
    let names = path.clone();
    let mut resolved = Resolved {
        path,
        ancestor: root,
        ancestor_depth: 0,
        target: None,
        denied: None,
        blocked: None,
        snapshot: None,
        in_snapshot: false,
        snapshots_of: None,
    };
    if names.is_root() {
        resolved.target = Some(root);
        return resolved;
    }
    let mut at = root;
    let mut components = names.components().enumerate();
    while let Some((depth, name)) = components.next() {
        (resolved.ancestor, resolved.ancestor_depth) = (at, depth);
        if ns.tree.inode(at).is_file() {
            resolved.blocked = Some(depth);
            return resolved;
        }
        if resolved.denied.is_none() && !access.at(resolved.snapshot).may(ns, at, EXECUTE) {
            resolved.denied = Some((at, depth));
        }
        if name == DOT_SNAPSHOT && !resolved.in_snapshot && ns.has_dot_snapshot(at) {
            resolved.in_snapshot = true;
            let name = components.next().map(|(_, name)| name);
            let found = name.and_then(|name| ns.snapshot_named(at, name)).map(|taken| taken.id);
            // As in HDFS, this is the latest snapshot if the path names none, or one that does not exist.
            resolved.snapshot = found.or_else(|| ns.latest_of(at));
            // The directory itself lets pass whom it let pass when the snapshot was made.
            if resolved.denied.is_none_or(|(_, denied)| denied == depth) {
                let may = access.at(resolved.snapshot).may(ns, at, EXECUTE);
                resolved.denied = (!may).then_some((at, depth));
            }
            if found.is_none() {
                resolved.snapshots_of = name.is_none().then_some(at);
                return resolved;
            }
            continue;
        }
        match ns.child_at(at, name.as_bytes(), resolved.snapshot) {
            None => return resolved,
            Some(child) => at = child,
        }
    }
    resolved.target = Some(at);
    resolved
}

/// Resolves a path as HDFS's `FSDirectory.resolvePath` does: every ancestor that exists must be a directory
/// that the caller may traverse.
///
/// # Errors
/// Those that [`crate::ops`] and [`crate::reads`] list for a path that cannot be resolved; and
/// [`FsError::AccessDenied`] for a change below `/.reserved/raw` by another than the superuser.
pub(crate) fn resolve<'p>(
    ns: &Namespace,
    ctx: &Context<'_>,
    access: &Access<'_>,
    text: &'p str,
    purpose: Purpose,
) -> FsResult<Resolved<'p>> {
    let real = reserved::real(ns, text)?;
    let path = match purpose {
        Purpose::Create => Path::parse_new(real.text)?,
        Purpose::Read | Purpose::Other => Path::parse(real.text)?,
    };
    if real.is_raw && purpose != Purpose::Read && access.enabled && !access.is_superuser {
        return Err(FsError::AccessDenied(format!(
            "Access denied for user {}. Superuser privilege is required for a change below /.reserved/raw",
            access.caller.user
        )));
    }
    let resolved = walk(ns, access, path);
    if ctx.limits.access.enabled {
        resolved.check_traverse(ns, access)?;
    }
    resolved.check_not_blocked(purpose)?;
    if purpose != Purpose::Read && resolved.target.is_none() && resolved.parent().is_none() {
        resolved.check_not_blocked_elsewhere(ns, ctx, purpose)?;
    }
    if purpose != Purpose::Read {
        resolved.check_writable()?;
    }
    Ok(resolved)
}

impl Resolved<'_> {
    pub fn check_traverse(&self, ns: &Namespace, access: &Access<'_>) -> FsResult<()> {
        match self.denied {
            Some((handle, depth)) => {
                Err(access.at(self.snapshot).denial(ns, handle, self.path.prefix(depth), EXECUTE))
            }
            None => Ok(()),
        }
    }

    /// Refuses a change of an inode in a snapshot.
    pub fn check_writable(&self) -> FsResult<()> {
        if self.in_snapshot { Err(FsError::SnapshotReadOnly) } else { Ok(()) }
    }

    /// Only operations that create throw `ParentNotDirectoryException` in HDFS.
    pub fn check_not_blocked(&self, purpose: Purpose) -> FsResult<()> {
        match self.blocked {
            Some(depth) => Err(self.blocked_at(depth, purpose)),
            None => Ok(()),
        }
    }

    fn blocked_at(&self, depth: usize, purpose: Purpose) -> FsError {
        let text = format!("{} (is not a directory)", self.path.prefix(depth));
        match purpose {
            Purpose::Create => FsError::ParentNotDirectory(text),
            Purpose::Read | Purpose::Other => FsError::AccessDenied(text),
        }
    }

    /// Whether the configuration lets it go. An empty directory always may, and a file.
    ///
    /// # Errors
    /// [`base::FsError::AccessDenied`], as [`crate::ProtectedDirectories::check`] says.
    pub fn check_unprotected(&self, ns: &Namespace, ctx: &Context<'_>) -> FsResult<()> {
        let protected = &ctx.limits.protected;
        let holds_something = |handle| {
            has_children(ns, handle) || (ns.tree.inode(handle).is_directory() && ctx.has_files(ns, handle))
        };
        if protected.is_empty() || !self.target.is_some_and(holds_something) {
            return Ok(());
        }
        protected.check(self.path.as_str(), |path| find(ns, path).is_some_and(holds_something))
    }

    /// As [`Self::check_not_blocked`], for a file that another group has in place of the first directory that is missing.
    fn check_not_blocked_elsewhere(
        &self,
        ns: &Namespace,
        ctx: &Context<'_>,
        purpose: Purpose,
    ) -> FsResult<()> {
        match self.missing().next().filter(|name| ctx.has_file(ns, self.ancestor, name)) {
            Some(_) => Err(self.blocked_at(self.ancestor_depth + 1, purpose)),
            None => Ok(()),
        }
    }

    /// The directory that holds the target, or would; `None` if it does not exist.
    pub fn parent(&self) -> Option<u32> {
        (!self.path.is_root() && self.ancestor_depth + 1 == self.path.depth()).then_some(self.ancestor)
    }

    /// HDFS's `verifyParentDir`.
    pub fn check_parent_exists(&self) -> FsResult<()> {
        if self.path.is_root() || self.parent().is_some() {
            return Ok(());
        }
        Err(FsError::NotFound(format!("Parent directory doesn't exist: {}", self.path.parent())))
    }

    /// The components that do not exist: the missing ancestors and the name.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let depth = if self.target.is_some() { self.path.depth() } else { self.ancestor_depth };
        self.path.components_behind(depth)
    }

    pub fn file(&self, ns: &Namespace) -> FsResult<u32> {
        self.file_called(ns, self.path.as_str())
    }

    /// The file like [`Self::file`], but an error names it by `name`, the name by which the client knows it.
    pub fn file_called(&self, ns: &Namespace, name: &str) -> FsResult<u32> {
        let Some(target) = self.target else {
            return Err(FsError::NotFound(format!("File does not exist: {name}")));
        };
        if ns.tree.inode(target).is_directory() {
            return Err(FsError::NotFound(format!("Path is not a file: {name}")));
        }
        Ok(target)
    }
}

fn has_children(ns: &Namespace, handle: u32) -> bool {
    let inode = ns.tree.inode(handle);
    inode.is_directory() && inode.children_count() > 0
}

/// The inode at an absolute path. The caller's permissions are not looked at.
fn find(ns: &Namespace, path: &str) -> Option<u32> {
    path.split('/').filter(|name| !name.is_empty()).try_fold(ns.tree.root, |directory, name| {
        let is_directory = ns.tree.inode(directory).is_directory();
        is_directory.then(|| ns.tree.child(directory, name.as_bytes())).flatten()
    })
}
