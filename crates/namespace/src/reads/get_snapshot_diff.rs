//! The differences from one snapshot of a directory to another, or to now, page by page.

use crate::{
    Context, Namespace, SnapshotId,
    access::{Access, READ},
    ops::create_snapshot::path_of,
    resolve::{Purpose, resolve},
    snapshots::{
        Root,
        diff::{Budget, Diff},
    },
};
use base::{FsError, FsResult};

pub use crate::snapshots::diff::{DiffCursor, DiffEntry, DiffPage};

/// Inodes looked at for one page, so that writers have their turn.
const INODES_MAX: usize = 20_000;

#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// A snapshottable directory, or one below it.
    pub path: &'a str,
    /// Names of snapshots; empty: now.
    pub from: &'a str,
    pub to: &'a str,
    pub cursor: DiffCursor,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub page: DiffPage,
    /// `from` was before `to`: otherwise what the page calls created was deleted on the way.
    pub is_from_earlier: bool,
}

/// # Errors
/// The path cannot be resolved, is in a snapshot or does not exist, or the caller may not read one of the snapshots
/// (see [`crate::reads`]). [`FsError::PathIsNotDirectory`] if it is a file. [`FsError::Snapshot`] if no directory above
/// has snapshots allowed, or there is no snapshot of one of the names.
pub fn get(ns: &Namespace, ctx: &Context<'_>, req: &Request<'_>) -> FsResult<Answer> {
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, req.path, Purpose::Read)?;
    for name in [req.from, req.to] {
        check_readable(ns, ctx, &access, req.path, name)?;
    }
    let absent = |path: &str| FsError::NotFound(format!("Directory does not exist: {path}"));
    if resolved.in_snapshot {
        return Err(absent(req.path));
    }
    // The root is looked for from the directory that the path is in, before the path itself matters.
    let directory = resolved.target.filter(|target| ns.tree.inode(*target).is_directory());
    let Some(nearest) = directory.or(resolved.parent()) else {
        return Err(absent(resolved.path.parent()));
    };
    // The root of the tree is snapshottable in HDFS, with room for no snapshot until it is allowed.
    let of_tree = Some(nearest).filter(|nearest| *nearest == ns.tree.root);
    let Some(root) = ns.snapshottable_above(nearest).or(of_tree) else {
        return Err(FsError::Snapshot(format!(
            "The path {} is neither snapshottable nor under a snapshot root!",
            resolved.path.as_str()
        )));
    };
    let Some(scope) = directory else {
        return Err(match resolved.target {
            Some(_) => FsError::PathIsNotDirectory(req.path.into()),
            None => absent(req.path),
        });
    };
    let list = ns.tree.snapshots.roots.get(&ns.tree.inode(root).id()).map(|root| &**root);
    let (from, to) = (find(ns, root, list, req.from)?, find(ns, root, list, req.to)?);
    if from == to {
        return Ok(Answer { page: DiffPage::default(), is_from_earlier: false });
    }
    // Now is later than any snapshot.
    let is_from_earlier = to.is_none_or(|to| from.is_some_and(|from| from < to));
    let (earlier, later) = if is_from_earlier { (from, to) } else { (to, from) };
    let Some(earlier) = earlier else {
        return Err(FsError::Snapshot("Two states of a directory are needed for a diff".into()));
    };
    let budget = Budget { entries: ctx.limits.snapshot_diff_page_max.max(1), inodes: INODES_MAX };
    let mut diff = Diff { ns, scope, earlier, later, budget, page: DiffPage::default() };
    diff.run(&req.cursor);
    Ok(Answer { page: diff.page, is_from_earlier })
}

fn find(ns: &Namespace, root: u32, list: Option<&Root>, name: &str) -> FsResult<Option<SnapshotId>> {
    if name.is_empty() {
        return Ok(None);
    }
    match list.and_then(|list| list.find(name)) {
        Some(taken) => Ok(Some(taken.id)),
        None => Err(FsError::Snapshot(format!(
            "Cannot find the snapshot of directory {} with name {name}",
            ns.tree.path_of(root)
        ))),
    }
}

/// HDFS's `checkSubtreeReadPermission`: all of a snapshot that is compared must be readable. The present state is
/// asked for as a snapshot without a name, of which only the way to it is checked.
fn check_readable(
    ns: &Namespace,
    ctx: &Context<'_>,
    access: &Access<'_>,
    path: &str,
    snapshot: &str,
) -> FsResult<()> {
    if !access.enabled {
        return Ok(());
    }
    let text = path_of(path, snapshot);
    let resolved = resolve(ns, ctx, access, &text, Purpose::Read)?;
    if snapshot.is_empty() || access.is_superuser {
        return Ok(());
    }
    access.check_target(ns, &resolved, READ)?;
    access.at(resolved.snapshot).check_subtree(ns, &resolved, READ, false)
}
