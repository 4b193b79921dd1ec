//! The differences from one snapshot of a directory to another, or to now, page by page.

use crate::{
    Context, Namespace, Paths, Readable, Sight, SnapshotId, Walkable,
    access::{Access, READ, subtree::SubtreeCheck},
    ops::create_snapshot::path_of,
    resolve::{Purpose, resolve},
    snapshots::{
        Root,
        diff::{Budget, Diff},
    },
};
use base::{FsError, FsResult};

pub use crate::snapshots::diff::{DiffCursor, DiffEntry, DiffPage};

/// Inodes looked at for one page: a client hears now and then that the work goes on.
const INODES_MAX: usize = 20_000;

/// Asks for a page of differences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// A snapshottable directory, or one below it.
    pub path: String,
    /// Names of snapshots; empty: now.
    pub from: String,
    pub to: String,
    /// Where the page begins.
    pub cursor: DiffCursor,
}

impl Readable for Request {
    type Seen<'ns> = Answer;

    fn method(&self) -> &'static str {
        "getSnapshotDiffReportListing"
    }

    fn paths(&self) -> Paths<'_> {
        Paths::of([&*self.path])
    }

    fn compared(&self) -> Option<[&str; 2]> {
        Some([&self.from, &self.to])
    }

    fn sight(&self) -> Sight<'_> {
        Sight::Everything
    }

    fn look<'ns>(&self, ns: &'ns Namespace, ctx: &Context<'ns>) -> FsResult<Answer> {
        self.walk(ns, ctx)
    }
}

impl Walkable for Request {
    type Progress = Look;
    type Found = Answer;

    fn step(&self, look: &mut Look, ns: &Namespace, ctx: &Context<'_>) -> FsResult<Option<Answer>> {
        look.step(ns, ctx, self, &self.cursor)
    }
}

/// Asks for all differences, page by page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The directory and the snapshots, and the first page.
    pub request: Request,
}

/// The pages of a report that were found, and the look at the next one.
#[derive(Default)]
pub struct Pages {
    look: Look,
    found: Vec<Answer>,
}

impl Readable for Report {
    type Seen<'ns> = Vec<Answer>;

    fn method(&self) -> &'static str {
        "getSnapshotDiffReport"
    }

    fn paths(&self) -> Paths<'_> {
        self.request.paths()
    }

    fn compared(&self) -> Option<[&str; 2]> {
        self.request.compared()
    }

    fn sight(&self) -> Sight<'_> {
        self.request.sight()
    }

    fn look<'ns>(&self, ns: &'ns Namespace, ctx: &Context<'ns>) -> FsResult<Vec<Answer>> {
        self.walk(ns, ctx)
    }
}

impl Walkable for Report {
    type Progress = Pages;
    type Found = Vec<Answer>;

    fn step(&self, pages: &mut Pages, ns: &Namespace, ctx: &Context<'_>) -> FsResult<Option<Vec<Answer>>> {
        let next = pages.found.last().and_then(|answer| answer.page.next.as_ref());
        let Some(answer) = pages.look.step(ns, ctx, &self.request, next.unwrap_or(&self.request.cursor))?
        else {
            return Ok(None);
        };
        let is_last = answer.page.next.is_none();
        pages.found.push(answer);
        Ok(is_last.then(|| std::mem::take(&mut pages.found)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub page: DiffPage,
    /// `from` was before `to`: otherwise what the page calls created was deleted on the way.
    pub is_from_earlier: bool,
}

/// A page that is looked for. All of a snapshot that is compared must be readable, and much may be compared for few
/// entries, so that it takes steps. A report's look then goes on with the next page, and takes what was readable for readable.
#[derive(Default)]
pub struct Look {
    is_begun: bool,
    /// How many of the two states were checked.
    checked: usize,
    check: Option<(SubtreeCheck, Option<SnapshotId>)>,
    /// The page so far, and where it is to go on.
    page: DiffPage,
    inodes: usize,
}

impl Look {
    /// Looks at the page that begins at the cursor, and visits about `limits.content_summary_step` inodes. `Ok(None)`: let others have
    /// their turn, go on with the same request and cursor.
    ///
    /// # Errors
    /// The path cannot be resolved, is in a snapshot or does not exist, or the caller may not read one of the snapshots
    /// (see [`crate::reads`]). [`FsError::PathIsNotDirectory`] if it is a file. [`FsError::Snapshot`] if no directory above
    /// has snapshots allowed, or there is no snapshot of one of the names.
    pub fn step(
        &mut self,
        ns: &Namespace,
        ctx: &Context<'_>,
        req: &Request,
        begin: &DiffCursor,
    ) -> FsResult<Option<Answer>> {
        let step = ctx.limits.content_summary_step.max(1);
        let access = Access::new(ctx);
        if !self.is_begun {
            resolve(ns, ctx, &access, &req.path, Purpose::Read)?;
            self.is_begun = true;
        }
        while let Some(name) = [&req.from, &req.to].get(self.checked) {
            let begun = match self.check.take() {
                Some(begun) => Some(begun),
                None => begin_check(ns, ctx, &access, &req.path, name)?,
            };
            if let Some((mut check, at)) = begun
                && !check.step(ns, &access.at(at), step)?
            {
                self.check = Some((check, at));
                return Ok(None);
            }
            self.checked += 1;
        }
        let page_max = ctx.limits.snapshot_diff_page_max.max(1);
        let budget = Budget { entries: page_max - self.page.len(), inodes: step };
        let cursor = self.page.next.take();
        let found = compare(ns, ctx, &access, req, cursor.as_ref().unwrap_or(begin), budget)?;
        self.inodes += step;
        self.page.append(found.page);
        let is_full = self.page.len() >= page_max || self.inodes >= INODES_MAX;
        if self.page.next.is_some() && !is_full {
            return Ok(None);
        }
        self.inodes = 0;
        Ok(Some(Answer { page: std::mem::take(&mut self.page), is_from_earlier: found.is_from_earlier }))
    }
}

fn compare(
    ns: &Namespace,
    ctx: &Context<'_>,
    access: &Access<'_>,
    req: &Request,
    cursor: &DiffCursor,
    budget: Budget,
) -> FsResult<Answer> {
    let resolved = resolve(ns, ctx, access, &req.path, Purpose::Read)?;
    let absent = |path: &str| FsError::NotFound(format!("Directory does not exist: {path}"));
    if resolved.in_snapshot {
        return Err(absent(&req.path));
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
            Some(_) => FsError::PathIsNotDirectory(req.path.clone()),
            None => absent(&req.path),
        });
    };
    let list = ns.tree.snapshots.roots.get(&ns.tree.inode(root).id()).map(|root| &**root);
    let (from, to) = (find(ns, root, list, &req.from)?, find(ns, root, list, &req.to)?);
    if from == to {
        return Ok(Answer { page: DiffPage::default(), is_from_earlier: false });
    }
    // Now is later than any snapshot.
    let is_from_earlier = to.is_none_or(|to| from.is_some_and(|from| from < to));
    let (earlier, later) = if is_from_earlier { (from, to) } else { (to, from) };
    let Some(earlier) = earlier else {
        return Err(FsError::Snapshot("Two states of a directory are needed for a diff".into()));
    };
    let mut diff = Diff { ns, scope, earlier, later, budget, page: DiffPage::default() };
    diff.run(cursor);
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
/// asked for as a snapshot without a name, of which only the way to it is checked. `None`: nothing below is to be checked.
fn begin_check(
    ns: &Namespace,
    ctx: &Context<'_>,
    access: &Access<'_>,
    path: &str,
    snapshot: &str,
) -> FsResult<Option<(SubtreeCheck, Option<SnapshotId>)>> {
    if !access.enabled {
        return Ok(None);
    }
    let text = path_of(path, snapshot);
    let resolved = resolve(ns, ctx, access, &text, Purpose::Read)?;
    if snapshot.is_empty() || access.is_superuser {
        return Ok(None);
    }
    access.check_target(ns, &resolved, READ)?;
    let check = SubtreeCheck::new(ns, &access.at(resolved.snapshot), &resolved, READ, false);
    Ok(Some((check, resolved.snapshot)))
}
