//! Takes a deleted subtree apart, at most 1,000 inodes an edit.

use crate::{
    Context, Namespace, Reply,
    charge::ledger::Ledger,
    codec::record_fields,
    edit::Edit,
    footprint::Marks,
    operation::{Applying, Operation},
    ops::{delete::INODES_AT_ONCE, sweep},
    store::inode::NAMED,
};
use base::InodeId;

/// Each inode comes after those below it.
#[derive(Clone, Debug, PartialEq)]
pub struct CleanupEdit {
    pub inodes: Vec<InodeId>,
}

record_fields! { CleanupEdit { inodes } }

/// The next step of the work in the background.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Cleanup(Edit<CleanupEdit>),
    Sweep(sweep::Plan),
}

/// `None` when nothing is left to do, here or for [`super::sweep`].
pub fn plan(ns: &Namespace, ctx: &Context<'_>) -> Option<Plan> {
    let mut inodes = Vec::new();
    for top in &ns.tree.orphans {
        match take_apart(ns, *top, &mut inodes) {
            Progress::Done if inodes.len() < INODES_AT_ONCE => {}
            Progress::HasEntries(directory) if inodes.is_empty() => {
                let entries = sweep::plan_entries_of(ns, ctx, directory);
                return Some(Plan::Sweep(sweep::Plan::Sweep(entries)));
            }
            _ => break,
        }
    }
    if inodes.is_empty() {
        return sweep::plan(ns, ctx).map(Plan::Sweep);
    }
    Some(Plan::Cleanup(Edit::of_service(ns, ctx, CleanupEdit { inodes })))
}

enum Progress {
    Done,
    Full,
    /// The directory has past entries, which must go before it does.
    HasEntries(InodeId),
}

/// Names inodes of a deleted subtree, each after those below it. An inode that past entries name is only taken out.
fn take_apart(ns: &Namespace, top: u32, inodes: &mut Vec<InodeId>) -> Progress {
    if ns.tree.inode(top).is_file() {
        inodes.push(ns.tree.inode(top).id());
        return Progress::Done;
    }
    // A directory and the rank of the child to visit next.
    let mut stack = vec![(top, 0)];
    while let Some((directory, rank)) = stack.pop() {
        let mut rank = rank;
        let mut descended = false;
        for child in ns.tree.children_of(directory, rank) {
            if inodes.len() == INODES_AT_ONCE {
                return Progress::Full;
            }
            rank += 1;
            let inode = ns.tree.inode(child);
            if inode.is_directory() && !inode.has(NAMED) {
                stack.push((directory, rank));
                stack.push((child, 0));
                descended = true;
                break;
            }
            inodes.push(inode.id());
        }
        if descended {
            continue;
        }
        if inodes.len() == INODES_AT_ONCE {
            return Progress::Full;
        }
        let id = ns.tree.inode(directory).id();
        if ns.tree.snapshots.has_entries(id) {
            return Progress::HasEntries(id);
        }
        inodes.push(id);
    }
    Progress::Done
}

impl Operation for CleanupEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    fn mark(&self, _: &mut Marks<'_>) {
        // No read sees a subtree once it was unlinked.
    }

    fn changed(&self, _: &Namespace, _: &mut dyn FnMut(InodeId)) {
        // It takes apart only what no snapshot sees.
    }

    fn charge(&self, _: &Namespace, _: &mut Ledger<'_>) {
        // The inodes were uncharged when their subtree was unlinked.
    }

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        for inode in &self.inodes {
            let handle = ns.expect(*inode);
            if ns.tree.orphans.front() == Some(&handle) {
                ns.tree.orphans.pop_front();
            } else {
                ns.unlink(handle);
            }
            if ns.tree.inode(handle).has(NAMED) {
                ns.keep_top(handle);
            } else {
                ns.remove_inode(handle, applying.changes);
            }
        }
        Reply::Unit
    }
}
