//! The requests for changes, as values: each knows the paths that it names, Hadoop's words for it, and its plan.

mod paths;

use crate::{BlockFacts, Context, Namespace, Planned, ops};
use base::FsResult;
pub use paths::Paths;
use std::fmt::Debug;

/// A request whose plan is an edit or no change.
pub trait Plannable: Debug {
    /// The paths that the request names, as its caller wrote them.
    fn paths(&self) -> Paths<'_>;

    /// The beginning of Hadoop's sentence where the request is refused: "Cannot delete /x".
    fn what(&self) -> String;

    /// The decision on this tree. It may be made again, on another one or for another time.
    ///
    /// # Errors
    /// The list stands at the `plan` of the operation, in its file of [`ops`].
    fn plan(&self, ns: &Namespace, ctx: &Context<'_>, facts: &dyn BlockFacts) -> FsResult<Planned>;
}

/// The kinds of requests, each with the type of its arguments.
macro_rules! requests {
    ($($name:ident($module:ident::$type:ident)),* $(,)?) => {
        /// A client's request for a change, whose plan is an edit or no change. `addBlock`, `complete` and `recoverLease` are
        /// not among them: their plans have more outcomes, and types of their own.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Request {
            $($name(ops::$module::$type),)*
        }

        $(impl From<ops::$module::$type> for Request {
            fn from(request: ops::$module::$type) -> Self {
                Self::$name(request)
            }
        })*

        impl Plannable for Request {
            fn paths(&self) -> Paths<'_> {
                match self { $(Self::$name(request) => request.paths(),)* }
            }

            fn what(&self) -> String {
                match self { $(Self::$name(request) => request.what(),)* }
            }

            fn plan(&self, ns: &Namespace, ctx: &Context<'_>, facts: &dyn BlockFacts) -> FsResult<Planned> {
                match self { $(Self::$name(request) => request.plan(ns, ctx, facts),)* }
            }
        }
    };
}

requests! {
    SetPermission(set_permission::Request),
    SetOwner(set_owner::Request),
    SetTimes(set_times::Request),
    SetReplication(set_replication::Request),
}

/// Requests of which only the words differ: the fields that are paths, and the sentence, which may name them.
macro_rules! plain {
    ($($module:ident($($path:ident),+) $what:literal;)*) => {
        $(impl Plannable for ops::$module::Request {
            fn paths(&self) -> Paths<'_> {
                Paths::of([$(&*self.$path),+])
            }

            #[allow(unused_variables, reason = "a sentence need not name every path")]
            fn what(&self) -> String {
                let Self { $($path,)+ .. } = self;
                format!($what)
            }

            fn plan(&self, ns: &Namespace, ctx: &Context<'_>, _: &dyn BlockFacts) -> FsResult<Planned> {
                ops::$module::plan(ns, ctx, self)
            }
        })*
    };
}

plain! {
    set_permission(path) "Cannot set permission for {path}";
    set_owner(path) "Cannot set owner for {path}";
    set_times(path) "Cannot set times {path}";
    set_replication(path) "Cannot set replication for {path}";
}

#[cfg(test)]
mod tests;
