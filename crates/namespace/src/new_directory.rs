//! The ids of directories that a plan makes. Where several groups share the namespace, the id holds the slot, which says who is the directory's home.

use crate::{Context, Namespace, path::Path, slots::Slots};
use base::{FsResult, InodeId};

const TRASH: &str = ".Trash";

/// The id of the directory that a plan makes at `depth` of `path`, after `made` others, in the directory `above`.
///
/// # Errors
/// There are no ids left.
pub(crate) fn next_id(
    ns: &Namespace,
    ctx: &Context<'_>,
    path: &Path<'_>,
    depth: usize,
    made: usize,
    above: InodeId,
) -> FsResult<InodeId> {
    let counters = &ns.tree.counters;
    let slots = &ns.tree.directory_log.slots;
    let Some(drawn) = slots.draw(counters.last_directory + 1 + made as u64) else {
        return counters.next_inode(made);
    };
    let names = || path.components().take(depth + 1);
    let slot = if ctx.limits.staging_names.have_any(names()) {
        Slots::slot_of(above)
    } else {
        mirrored(ns, names()).map_or(drawn, Slots::slot_of)
    };
    counters.next_directory(slot, made)
}

/// The directory that these names of a directory in a trash are a copy of: `/user/ann/.Trash/Current/a/b` mirrors `/a/b`. What is moved to the
/// trash then stays in its home.
fn mirrored<'a>(ns: &Namespace, mut names: impl Iterator<Item = &'a str>) -> Option<InodeId> {
    names.find(|name| *name == TRASH)?;
    // The name of the checkpoint.
    names.next()?;
    let mut at = None;
    for name in names {
        at = Some(ns.tree.child(at.unwrap_or(ns.tree.root), name.as_bytes())?);
    }
    let found = ns.tree.inode(at?);
    found.is_directory().then(|| found.id())
}
