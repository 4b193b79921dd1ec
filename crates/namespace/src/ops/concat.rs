//! Moves the blocks of files behind those of another, and removes the files.

use crate::{
    BlockFacts, Context, Namespace, Reply,
    access::{Access, READ, WRITE},
    charge::{self, ledger::Ledger},
    codec::record_fields,
    edit::{Edit, Planned},
    footprint::Marks,
    operation::{Applying, Operation},
    paths::Paths,
    plannable::Plannable,
    quota::Amounts,
    resolve::{Purpose, Resolved, resolve},
    snapshots::AFTER_ALL,
    store::{NONE, inode::NAMED},
};
use base::{FsError, FsResult, InodeId};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub target: String,
    /// The sources, in the order in which they are to follow.
    pub sources: Vec<String>,
}

/// An entry of the journal holds this many ids, of seven bytes at most, with room to spare. One edit it has to be: a
/// reader sees all of the sources or none, and so does a replay. HDFS has no number of its own, only the size of a
/// request.
const SOURCES_MAX: usize = 2_000_000;

#[derive(Clone, Debug, PartialEq)]
pub struct ConcatEdit {
    pub target: InodeId,
    /// Files with blocks, in the directory of the target.
    pub sources: Vec<InodeId>,
}

record_fields! { ConcatEdit { target, sources } }

/// # Errors
/// In the order of HDFS's `FSDirConcatOp`: the target's name is empty, there are no sources or more than one call may
/// have ([`FsError::InvalidArgument`]), or a name is reserved ([`FsError::Io`]). A path cannot be resolved (see
/// [`crate::ops`]) or is not a file; the caller may not write the target, read a source or remove it. A source is in a
/// snapshot ([`FsError::Snapshot`]). [`FsError::InvalidArgument`] if a file is being written, or a source is empty, in
/// another directory, of a greater block size, the target itself, or named twice.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<ConcatEdit>> {
    check_names(req)?;
    let access = Access::new(ctx);
    let resolved = resolve(ns, ctx, &access, &req.target, Purpose::Other)?;
    access.check_target(ns, &resolved, WRITE)?;
    let target = resolved.file(ns)?;
    if ns.tree.inode(target).is_open() {
        return Err(refused(format!("concat: target file {} is under construction", req.target)));
    }
    let mut sources = Vec::new();
    let mut seen = BTreeSet::new();
    for path in &req.sources {
        let source = check_source(ns, ctx, &access, path, target, &resolved)?;
        seen.insert(source);
        sources.push(ns.tree.inode(source).id());
    }
    if seen.len() < sources.len() {
        return Err(refused("concat: at least two of the source files are the same".into()));
    }
    let edit = ConcatEdit { target: ns.tree.inode(target).id(), sources };
    Ok(Planned::Edit(Edit::plan(ns, ctx, edit)?))
}

fn refused(text: String) -> FsError {
    FsError::InvalidArgument(text)
}

fn check_names(req: &Request) -> FsResult<()> {
    if req.target.is_empty() {
        return Err(refused("Target file name is empty".into()));
    }
    if req.sources.is_empty() {
        return Err(refused("No sources given".into()));
    }
    if req.sources.len() > SOURCES_MAX {
        return Err(refused(format!(
            "concat: {} source files are too many; at most {SOURCES_MAX} go into one call",
            req.sources.len()
        )));
    }
    let is_reserved =
        |path: &str| ["/.reserved/raw", "/.reserved/.inodes"].iter().any(|it| path.starts_with(it));
    let names = std::iter::once(&*req.target).chain(req.sources.iter().map(String::as_str));
    match names.into_iter().find(|path| is_reserved(path)) {
        Some(path) => {
            Err(FsError::Io(format!("Concat operation doesn't support .reserved relative path : {path}")))
        }
        None => Ok(()),
    }
}

/// HDFS's `verifySrcFiles`, of one source.
fn check_source(
    ns: &Namespace,
    ctx: &Context<'_>,
    access: &Access<'_>,
    path: &str,
    target: u32,
    target_path: &Resolved<'_>,
) -> FsResult<u32> {
    let resolved = resolve(ns, ctx, access, path, Purpose::Other)?;
    // It is read, and it is removed.
    access.check_target(ns, &resolved, READ)?;
    access.check_parent_write(ns, &resolved)?;
    let target_path = target_path.path.as_str();
    let apart =
        || refused(format!("Source file {path} is not in the same directory with the target {target_path}"));
    // Whether it is there only its home knows, if that is another group.
    let is_elsewhere = |directory| ns.home_of(ns.tree.inode(directory).id()) != ns.group();
    if resolved.target.is_none() && resolved.parent().is_some_and(is_elsewhere) {
        return Err(apart());
    }
    let source = resolved.file(ns)?;
    if ns.tree.inode(source).parent != ns.tree.inode(target).parent {
        return Err(apart());
    }
    check_not_in_snapshot(ns, source, path)?;
    if source == target {
        return Err(refused(format!(
            "concat: the src file {path} is the same with the target file {target_path}"
        )));
    }
    if ns.tree.inode(source).is_open() || ns.tree.last_block(source) == NONE {
        return Err(refused(format!("concat: source file {path} is invalid or empty or underConstruction")));
    }
    let block_size = |file| ns.tree.attributes_of(file).block_size;
    if block_size(source) > block_size(target) {
        return Err(refused(format!(
            "concat: source file {path} has preferred block size {} which is greater than the target file's \
             preferred block size {}",
            block_size(source),
            block_size(target)
        )));
    }
    Ok(source)
}

fn check_not_in_snapshot(ns: &Namespace, source: u32, path: &str) -> FsResult<()> {
    let parent = ns.tree.inode(source).parent;
    if ns.latest_seeing(parent, ns.birth_of(source), AFTER_ALL).is_some() {
        return Err(FsError::Snapshot(format!("Concat: the source file {path} is in snapshot")));
    }
    if ns.tree.inode(source).has(NAMED) {
        return Err(FsError::Snapshot(format!(
            "Concat: the source file {path} is referred by some other reference in some snapshot."
        )));
    }
    Ok(())
}

impl Plannable for Request {
    type Outcome = Planned<ConcatEdit>;

    fn paths(&self) -> Paths<'_> {
        Paths::with(&self.target, &self.sources)
    }

    fn what(&self) -> String {
        format!("Cannot concat {}", self.target)
    }

    fn plan(&self, ns: &Namespace, ctx: &Context<'_>, _: &dyn BlockFacts) -> FsResult<Planned<ConcatEdit>> {
        plan(ns, ctx, self)
    }
}

impl Operation for ConcatEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, marks: &mut Marks<'_>) {
        marks.blocks(self.target);
        // The sources have the target's parent, and may be many.
        marks.leave(self.target, &self.sources);
    }

    fn changed(&self, ns: &Namespace, add: &mut dyn FnMut(InodeId)) {
        // The sources are in the same directory, and in no snapshot.
        add(self.target);
        ns.parent_of(self.target).into_iter().for_each(add);
    }

    fn charge(&self, ns: &Namespace, ledger: &mut Ledger<'_>) {
        // The sources' blocks take over the replication and the policy of the target. As in HDFS, room is required only
        // for the change of replication, on the media of the sources' policies.
        let target = ns.expect(self.target);
        let replication = ns.held_replication(target, AFTER_ALL, &[]);
        let (mut difference, mut needed) = (Amounts::default(), Amounts::default());
        for source in &self.sources {
            let source = ns.expect(*source);
            let bytes = ns.tree.file_bytes(source);
            difference += charge::in_file(ns, target, bytes);
            difference -= ns.file_amounts(source, ns.tree.policy_of(source), AFTER_ALL);
            needed += charge::wanted_with(ns, source, bytes, replication);
            needed -= charge::wanted_with(ns, source, bytes, ns.tree.attributes_of(source).replication);
            needed -= Amounts::ONE_INODE;
        }
        let parent = ns.tree.inode(target).parent;
        ledger.verify(parent, needed, None);
        ledger.charge(parent, difference);
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        let target = ns.expect(self.target);
        for source in &self.sources {
            let source = ns.expect(*source);
            ns.unlink(source);
            // The lists of snapshots that are deleted may have blocks that the source still has, which stay.
            ns.forget_past(source, applying.changes);
            ns.join_files(source, target, applying.changes);
        }
        ns.set_modified(target, applying.time);
        let parent = ns.tree.inode(target).parent;
        ns.set_modified(parent, applying.time);
        Reply::Unit
    }
}
