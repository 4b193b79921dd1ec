//! Takes a deleted subtree apart, at most 1,000 inodes an edit.

use crate::{Context, Edit, Namespace};

/// The next step, or `None` when nothing is left to do.
pub fn plan(ns: &Namespace, ctx: &Context<'_>) -> Option<Edit> {
    let _ = (ns, ctx);
    todo!()
}
