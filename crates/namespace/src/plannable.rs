//! What every request for a change can tell: the paths that it names, Hadoop's words for it, and its plan.

use crate::{BlockFacts, Context, Namespace, paths::Paths};
use base::FsResult;
use std::fmt::Debug;

/// A request for a change. It stands in the file of its operation, beside its plan.
pub trait Plannable: Debug {
    /// The decision of its plan. It is or becomes a [`crate::Step`].
    type Outcome;

    /// The paths that the request names, as its caller wrote them.
    fn paths(&self) -> Paths<'_>;

    /// The beginning of Hadoop's sentence where the request is refused: "Cannot delete /x".
    fn what(&self) -> String;

    /// The decision on this tree. It may be made again, on another one or for another time.
    ///
    /// # Errors
    /// The list stands at the `plan` of the operation, in its file of [`crate::ops`].
    fn plan(&self, ns: &Namespace, ctx: &Context<'_>, facts: &dyn BlockFacts) -> FsResult<Self::Outcome>;
}

/// Implements [`Plannable`]: the type of the request, the function that plans it (`with facts`, if that asks for facts about
/// blocks), its outcome, the fields that are paths, behind a `;` other fields that the sentence names, and the sentence.
macro_rules! plannable {
    ($request:ident by $plan:ident => $($rest:tt)*) => {
        $crate::plannable::plannable! { @ $request, |ns, ctx, req, _facts| $plan(ns, ctx, req), $($rest)* }
    };
    ($request:ident by $plan:ident with facts => $($rest:tt)*) => {
        $crate::plannable::plannable! { @ $request, |ns, ctx, req, facts| $plan(ns, ctx, req, facts), $($rest)* }
    };
    (@ $request:ident, |$ns:ident, $ctx:ident, $req:ident, $facts:ident| $plan:expr,
        $outcome:ty, ($($path:ident),* $(; $($also:ident),+)?) $what:literal) => {
        impl $crate::Plannable for $request {
            type Outcome = $outcome;

            fn paths(&self) -> $crate::paths::Paths<'_> {
                $crate::paths::Paths::of([$(&*self.$path),*])
            }

            #[allow(unused_variables, reason = "a sentence need not name every path")]
            fn what(&self) -> String {
                let Self { $($path,)* $($($also,)+)? .. } = self;
                format!($what)
            }

            fn plan(
                &self,
                $ns: &$crate::Namespace,
                $ctx: &$crate::Context<'_>,
                $facts: &dyn $crate::BlockFacts,
            ) -> base::FsResult<$outcome> {
                let $req = self;
                $plan
            }
        }
    };
}

pub(crate) use plannable;
