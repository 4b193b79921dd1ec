//! The old rename, which answers false where the newer one throws. A destination that is a directory is
//! moved into; nothing is ever replaced.

use crate::{
    Context, Namespace, Reply,
    access::{Access, WRITE},
    charge::{ledger::Ledger, moving},
    codec::record_fields,
    edit::Edit,
    entry_limits,
    footprint::Marks,
    operation::{Applying, Operation},
    ops::{
        allow_snapshot,
        move_file::{self, MoveFileEdit, Moved},
    },
    path::Path,
    plannable::plannable,
    reserved,
    resolve::{Purpose, Resolved, resolve},
};
use base::{FsResult, InodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub source: String,
    pub destination: String,
}

/// The edit of both rename and rename2.
#[derive(Clone, Debug, PartialEq)]
pub struct RenameEdit {
    pub inode: InodeId,
    pub destination: InodeId,
    pub name: Box<str>,
    /// The file or empty directory that goes away.
    pub replaced: Option<InodeId>,
    /// The old rename answers true; the newer one nothing.
    pub answers: bool,
}

record_fields! { RenameEdit { inode, destination, name, replaced, answers } }

/// The decision of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Rename(Edit<RenameEdit>),
    /// The file has another home from then on.
    Move(Edit<MoveFileEdit>),
    NoChange(Reply),
}

const REFUSED: FsResult<Plan> = Ok(Plan::NoChange(Reply::Bool(false)));

/// # Errors
/// [`base::FsError::Io`] if the destination is too long or too deep, [`base::FsError::InvalidPath`] if it is reserved. A path
/// cannot be resolved (see [`crate::ops`]); the caller may not write one of the directories; the source is protected or
/// holds a directory with snapshots ([`base::FsError::Snapshot`], also if snapshottable directories would be nested). There
/// is no room, or a quota has none. Where source and destination do not fit, the answer is false instead.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Plan> {
    Path::check_length(&req.destination, "rename", ctx.limits)?;
    let access = Access::new(ctx);
    let source = resolve(ns, ctx, &access, &req.source, Purpose::Other)?;
    let destination = resolve(ns, ctx, &access, &req.destination, Purpose::Create)?;
    source.check_unprotected(ns, ctx)?;
    // Into a directory: under the source's name.
    let into = destination.target.filter(|target| ns.tree.inode(*target).is_directory());
    let name = if into.is_some() { source.path.name() } else { destination.path.name() };
    let text = match into {
        Some(_) if destination.path.is_root() => format!("/{name}"),
        Some(_) => format!("{}/{name}", destination.path.as_str()),
        None => destination.path.as_str().into(),
    };
    access.check_parent_write(ns, &source)?;
    match into {
        Some(directory) => {
            access.check(ns, directory, destination.path.as_str(), crate::access::EXECUTE)?;
            access.check(ns, directory, destination.path.as_str(), WRITE)?;
        }
        None => access.check_ancestor(ns, &destination, WRITE)?,
    }
    let free = match (into, destination.parent()) {
        (Some(directory), _) => {
            Some(directory).filter(|_| ns.tree.child(directory, name.as_bytes()).is_none())
        }
        (None, parent) => parent.filter(|_| destination.target.is_none()),
    };
    // Both homes are asked at once.
    let free = free.filter(|parent| !ctx.has_file(ns, *parent, name));
    let moved = move_file::source(ns, ctx, &access, &source)?;
    let Some(moved) = moved.filter(|_| !source.path.is_root()) else {
        return REFUSED;
    };
    let roots = moved.roots(ns)?;
    if text == source.path.as_str() {
        return Ok(Plan::NoChange(Reply::Bool(true)));
    }
    if is_below(&text, source.path.as_str()) {
        return REFUSED;
    }
    reserved::check_destination(&text)?;
    let Some(parent) = free else { return REFUSED };
    let parent_text = if into.is_some() { destination.path.as_str() } else { destination.path.parent() };
    allow_snapshot::check_not_nested(ns, &roots, source.path.as_str(), parent)?;
    check_limits(ns, ctx, &source, parent, parent_text, name)?;
    decided(ns, ctx, moved, &source, (parent, name), None, true)
}

/// The edit of a rename that is possible.
pub(crate) fn decided(
    ns: &Namespace,
    ctx: &Context<'_>,
    moved: Moved,
    source: &Resolved<'_>,
    (parent, name): (u32, &str),
    replaced: Option<InodeId>,
    answers: bool,
) -> FsResult<Plan> {
    match moved {
        Moved::Here(inode) if !moved.leaves(ns, parent) => {
            let id = |handle: u32| ns.tree.inode(handle).id();
            let (inode, destination) = (id(inode), id(parent));
            let edit = RenameEdit { inode, destination, name: name.into(), replaced, answers };
            Ok(Plan::Rename(Edit::plan(ns, ctx, edit)?))
        }
        _ => Ok(Plan::Move(move_file::plan(ns, ctx, moved, source, (parent, name), replaced, answers)?)),
    }
}

/// Whether a path lies strictly below another.
pub(crate) fn is_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

/// HDFS's `verifyFsLimitsForRename`: a directory may be full if nothing is added to it.
pub(crate) fn check_limits(
    ns: &Namespace,
    ctx: &Context<'_>,
    source: &Resolved<'_>,
    parent: u32,
    parent_path: &str,
    name: &str,
) -> FsResult<()> {
    entry_limits::check_component(ctx, parent_path, name)?;
    if source.parent() != Some(parent) {
        entry_limits::check_room(ns, ctx, parent, parent_path)?;
    }
    Ok(())
}

plannable! { Request by plan => Plan, (source, destination) "Cannot rename {source}" }

impl Operation for RenameEdit {
    fn answer(&self) -> Option<Reply> {
        Some(if self.answers { Reply::Bool(true) } else { Reply::Unit })
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.own_entry(self.inode);
        marks.entry(self.destination, self.name.as_bytes());
        self.replaced.into_iter().for_each(|replaced| marks.own_entry(replaced));
    }

    fn changed(&self, ns: &Namespace, add: &mut dyn FnMut(InodeId)) {
        ns.parent_of(self.inode).into_iter().for_each(&mut *add);
        add(self.destination);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        let replaced = self.replaced.map(|replaced| ns.expect(replaced));
        moving::rename(ns, ledger, ns.expect(self.inode), ns.expect(self.destination), replaced);
    }

    fn keep(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        moving::keep_moved(ns, ledger, ns.expect(self.inode));
    }

    fn followed(&self, ns: &Namespace) -> Option<Self> {
        let both = ns.has_directory(self.inode) && ns.has_directory(self.destination);
        (both && self.replaced.is_none_or(|replaced| ns.has_directory(replaced))).then(|| self.clone())
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let moved = ns.expect(self.inode);
        let destination = ns.expect(self.destination);
        let source = ns.tree.inode(moved).parent;
        let policy = ns.tree.policy_of(moved);
        if ns.tree.inode(moved).is_directory() && ns.keeping.iter().any(|(kept, _)| *kept == self.inode) {
            ns.recount_kept(source);
        }
        if let Some(replaced) = self.replaced {
            let replaced = ns.expect(replaced);
            ns.unlink(replaced);
            ns.discard(replaced, true, applying.changes);
        }
        ns.move_inode(moved, destination, self.name.as_bytes());
        ns.set_modified(source, applying.time);
        if destination != source {
            ns.set_modified(destination, applying.time);
        }
        if ns.tree.inode(moved).is_directory() && ns.tree.policy_of(moved) != policy {
            ns.recount_media(moved);
        }
        if self.answers { Reply::Bool(true) } else { Reply::Unit }
    }
}
