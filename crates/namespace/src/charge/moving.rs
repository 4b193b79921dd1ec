//! Bytes that move from one usage to another: by a rename between directories, by a storage policy between media.

use super::{delete, ledger::Ledger, seen_by};
use crate::{
    Namespace,
    looks::Counted,
    quota::Amounts,
    snapshots::{AFTER_ALL, count::Past},
    store::{NONE, children},
    tree::Tree,
};
use base::{GroupId, POLICY_UNSPECIFIED};

/// A larger subtree that is moved out of where no quota is set is not counted for one that may come. About a
/// millisecond's worth, by eye.
const COUNTED_MAX: usize = 10_000;

/// HDFS's `verifyQuotaForRename`: room is needed below the closest common ancestor only, under the policy that
/// holds at the destination.
pub(crate) fn rename(
    ns: &Namespace,
    ledger: &mut Ledger<'_>,
    moved: u32,
    destination: u32,
    replaced: Option<u32>,
) {
    let tree = &ns.tree;
    let source = tree.inode(moved).parent;
    let before = tree.policy_of(moved);
    let after = tree.policy_below(moved, tree.policy_of(destination));
    let kept = keep_moved(ns, ledger, moved);
    if !ledger.is_charged(source) && !ledger.is_charged(destination) {
        // A quota in what is moved goes along, and counts other media there.
        if before != after && has_quota_below(ns, moved) {
            change_policy(ns, ledger, moved, before, after);
        }
        return;
    }
    let may_stay = may_stay(ns, destination);
    if source == destination && !may_stay {
        ledger.charge(source, kept);
        return replaced.into_iter().for_each(|replaced| delete(ns, ledger, replaced));
    }
    let leaving = ledger.amounts(moved, before, AFTER_ALL, false);
    let mut arriving = leaving;
    arriving += change_policy(ns, ledger, moved, before, after);
    let mut needed = arriving;
    if let Some(replaced) = replaced {
        needed -= ledger.amounts(replaced, tree.policy_of(replaced), AFTER_ALL, false);
    }
    let end = (!may_stay).then(|| common_ancestor(tree, source, destination));
    match ns.is_shared() && ns.group() == GroupId::ROOT && tree.inode(moved).is_directory() {
        true => {
            let top = Counted { top: tree.inode(moved).id(), policy: after, died: AFTER_ALL, anew: true };
            let replaced = replaced.filter(|replaced| tree.inode(*replaced).is_directory());
            ledger.verify_with_others(destination, needed, top, replaced, end);
        }
        false => ledger.verify(destination, needed, end),
    }
    // As in HDFS, the amount that snapshots keep needs no room.
    ledger.charge(source, kept);
    replaced.into_iter().for_each(|replaced| delete(ns, ledger, replaced));
    if source != destination {
        ledger.charge(source, -leaving);
        ledger.charge(destination, arriving);
    }
}

/// Whether a snapshot may go on to count what is moved to this directory: then HDFS wants room above the common ancestor, too.
pub(crate) fn may_stay(ns: &Namespace, destination: u32) -> bool {
    ns.snapshottable_above(destination).and_then(|root| ns.latest_of(root)).is_some()
}

fn has_quota_below(ns: &Namespace, top: u32) -> bool {
    let directories = ns.tree.quotas.iter().filter_map(|(directory, _)| ns.handle(*directory));
    directories.into_iter().any(|directory| ns.is_at_or_below(directory, top))
}

/// The amounts that go on to count in the directory that something is moved out of, as the last snapshot that sees it
/// there has it. They are noted even if no quota is set yet.
pub(crate) fn keep_moved(ns: &Namespace, ledger: &mut Ledger<'_>, moved: u32) -> Amounts {
    let Some(seen_by) = seen_by(ns, moved) else { return Amounts::default() };
    let limit = if ledger.is_charged(ns.tree.inode(moved).parent) { usize::MAX } else { COUNTED_MAX };
    let amounts = ns.amounts_at(moved, seen_by, limit);
    ledger.keep(ns.tree.inode(moved).id(), amounts);
    amounts
}

/// Everything below that has no policy of its own is counted on other media.
pub(crate) fn set_policy(ns: &Namespace, ledger: &mut Ledger<'_>, target: u32, policy: u8) {
    let tree = &ns.tree;
    let parent = tree.inode(target).parent;
    let after = match policy {
        POLICY_UNSPECIFIED if parent != NONE => tree.policy_of(parent),
        policy => policy,
    };
    let difference = change_policy(ns, ledger, target, tree.policy_of(target), after);
    ledger.charge(parent, difference);
}

/// A directory under way, and the difference that was found below it so far.
struct Level<'ns> {
    directory: u32,
    children: children::Iter<'ns>,
    difference: Amounts,
}

/// The difference that another policy in force at `top` makes; the directories in it, `top` included, are
/// charged with their part.
fn change_policy(ns: &Namespace, ledger: &mut Ledger<'_>, top: u32, before: u8, after: u8) -> Amounts {
    let tree = &ns.tree;
    let of_file = |file: u32| {
        let mut difference = ns.file_amounts(file, after, AFTER_ALL);
        difference -= ns.file_amounts(file, before, AFTER_ALL);
        difference
    };
    if before == after {
        return Amounts::default();
    }
    if tree.inode(top).is_file() {
        return of_file(top);
    }
    let enter = |directory: u32| Level {
        directory,
        children: tree.children_of(directory, 0),
        difference: of_deleted(ns, directory, before, after),
    };
    let mut stack = vec![enter(top)];
    let mut found = Amounts::default();
    while let Some(level) = stack.last_mut() {
        ns.visits.add();
        level.difference += std::mem::take(&mut found);
        // A child with a policy of its own keeps it, with all below.
        match level.children.find(|child| tree.own_policy(*child) == POLICY_UNSPECIFIED) {
            Some(child) if tree.inode(child).is_file() => found = of_file(child),
            Some(child) => stack.push(enter(child)),
            None => {
                found = level.difference;
                ledger.charge_only(level.directory, found);
                stack.pop();
            }
        }
    }
    found
}

/// The difference for the inodes that were deleted from a directory and are kept for a snapshot.
fn of_deleted(ns: &Namespace, directory: u32, before: u8, after: u8) -> Amounts {
    let mut difference = Amounts::default();
    ns.for_each_past(ns.tree.inode(directory).id(), |past| match past {
        Past::Deleted(child, died) if ns.tree.own_policy(child) == POLICY_UNSPECIFIED => {
            difference += ns.subtree_amounts(child, after, died, true);
            difference -= ns.subtree_amounts(child, before, died, true);
        }
        Past::Deleted(..) | Past::Moved(_) => {}
    });
    difference
}

pub(crate) fn common_ancestor(tree: &Tree, one: u32, other: u32) -> u32 {
    let up = |from: u32| {
        std::iter::successors(Some(from), |at| Some(tree.inode(*at).parent).filter(|parent| *parent != NONE))
    };
    let above: Vec<u32> = up(one).collect();
    up(other).find(|at| above.contains(at)).unwrap_or(tree.root)
}
