//! The next step of a request, with the looks that its plan needs.

use crate::{BlockFacts, Context, Looks, Namespace, Plannable, Step};
use base::FsResult;

/// The next step of a request. If its plan needs a look at a large subtree, and the context has [`Looks`], that comes first.
///
/// # Errors
/// Those of [`Plannable::plan`].
pub fn next_step<R: Plannable<Outcome: Into<Step>>>(
    request: &R,
    ns: &Namespace,
    ctx: &Context<'_>,
    facts: &dyn BlockFacts,
) -> FsResult<Step> {
    let planned = request.plan(ns, ctx, facts);
    match ctx.looks.and_then(Looks::take_wanted) {
        Some(question) => Ok(Step::Look(question)),
        None => planned.map(Into::into),
    }
}
