//! Whose contents an entry of the directory log changes: groups that have told what they have there are asked anew.
//!
//! An entry takes effect in every group, whatever a group holds. A plan that rests on what groups have told they use would hand out too much if an entry
//! had brought something there since. What an entry takes away only makes that less than was told.

use crate::{Namespace, charge::moving::common_ancestor, ops::Body, store::NONE};
use base::InodeId;

/// The directories in which some group may have more, or the same on other media, when this change of directories is carried out.
pub(crate) fn raised_by(ns: &Namespace, body: &Body) -> Vec<InodeId> {
    let tree = &ns.tree;
    // `end`: there and above, each group has as much as before. `top`: from there on downwards, all is on other media.
    let (from, end, top) = match body {
        // One group has more, and another one less.
        Body::MoveFile(moved) => (ns.handle(moved.destination), None, None),
        Body::SetStoragePolicy(set) => (ns.handle(set.inode), None, ns.handle(set.inode)),
        Body::Rename(rename) => {
            let Some((moved, destination)) = ns.handle(rename.inode).zip(ns.handle(rename.destination))
            else {
                return Vec::new();
            };
            match tree.policy_below(moved, tree.policy_of(destination)) == tree.policy_of(moved) {
                true => {
                    let common = common_ancestor(tree, tree.inode(moved).parent, destination);
                    (Some(destination), Some(common), None)
                }
                false => (Some(destination), None, Some(moved)),
            }
        }
        _ => return Vec::new(),
    };
    let up = std::iter::successors(from, |at| Some(tree.inode(*at).parent).filter(|parent| *parent != NONE));
    let above = up.take_while(|at| Some(*at) != end).map(|at| tree.inode(at).id());
    let is_below = |directory: &InodeId| {
        top.zip(ns.handle(*directory)).is_some_and(|(top, directory)| ns.is_at_or_below(directory, top))
    };
    let below = tree.shares.iter().map(|(directory, _)| *directory).filter(is_below);
    above.chain(below).collect()
}
