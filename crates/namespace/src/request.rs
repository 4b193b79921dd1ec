//! The requests for changes, as values: each knows the paths that it names, Hadoop's words for it, and its plan.

mod paths;

use crate::{
    BlockFacts, Context, Namespace, Planned, Step,
    ops::{
        self,
        release_lease::{self, Freeing},
        set_acl::Change,
    },
};
use base::FsResult;
pub use paths::Paths;
use std::fmt::Debug;

/// A request for a change.
pub trait Plannable: Debug {
    /// The decision of its plan. It is or becomes a [`Step`].
    type Outcome;

    /// The paths that the request names, as its caller wrote them.
    fn paths(&self) -> Paths<'_>;

    /// The beginning of Hadoop's sentence where the request is refused: "Cannot delete /x".
    fn what(&self) -> String;

    /// The decision on this tree. It may be made again, on another one or for another time.
    ///
    /// # Errors
    /// The list stands at the `plan` of the operation, in its file of [`ops`].
    fn plan(&self, ns: &Namespace, ctx: &Context<'_>, facts: &dyn BlockFacts) -> FsResult<Self::Outcome>;
}

/// The kinds of requests, each with the type of its arguments.
macro_rules! requests {
    ($($name:ident($module:ident::$type:ident)),* $(,)?) => {
        /// A client's request for a change.
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
            type Outcome = Step;

            fn paths(&self) -> Paths<'_> {
                match self { $(Self::$name(request) => request.paths(),)* }
            }

            fn what(&self) -> String {
                match self { $(Self::$name(request) => request.what(),)* }
            }

            fn plan(&self, ns: &Namespace, ctx: &Context<'_>, facts: &dyn BlockFacts) -> FsResult<Step> {
                match self { $(Self::$name(request) => request.plan(ns, ctx, facts).map(Step::from),)* }
            }
        }
    };
}

requests! {
    Mkdirs(mkdirs::Request),
    Create(create::Request),
    Append(append::Request),
    Truncate(truncate::Request),
    Fsync(fsync::Request),
    AddBlock(add_block::Request),
    AbandonBlock(abandon_block::Request),
    UpdateBlockForPipeline(update_block_for_pipeline::Request),
    UpdatePipeline(update_pipeline::Request),
    Complete(complete::Request),
    RecoverLease(recover_lease::Request),
    Rename(rename::Request),
    Rename2(rename2::Request),
    Delete(delete::Request),
    Concat(concat::Request),
    SetPermission(set_permission::Request),
    SetOwner(set_owner::Request),
    SetTimes(set_times::Request),
    SetReplication(set_replication::Request),
    SetAcl(set_acl::Request),
    SetXattr(set_xattrs::Request),
    RemoveXattr(set_xattrs::Removal),
    SetErasureCoding(set_erasure_coding::Request),
    UnsetErasureCoding(set_erasure_coding::Removal),
    SetStoragePolicy(set_storage_policy::Request),
    SetQuota(set_quota::Request),
    AllowSnapshot(allow_snapshot::Request),
    DisallowSnapshot(allow_snapshot::Disallowing),
    CreateSnapshot(create_snapshot::Request),
    RenameSnapshot(rename_snapshot::Request),
    DeleteSnapshot(delete_snapshot::Request),
}

/// Requests of which only the words differ: the plan, the fields that are paths, behind a `;` other fields that the
/// sentence names, and the sentence.
macro_rules! plain {
    ($($module:ident::$type:ident by $plan:ident, ($($path:ident),* $(; $($also:ident),+)?) $what:literal;)*) => {
        $(impl Plannable for ops::$module::$type {
            type Outcome = Planned;

            fn paths(&self) -> Paths<'_> {
                Paths::of([$(&*self.$path),*])
            }

            #[allow(unused_variables, reason = "a sentence need not name every path")]
            fn what(&self) -> String {
                let Self { $($path,)* $($($also,)+)? .. } = self;
                format!($what)
            }

            fn plan(&self, ns: &Namespace, ctx: &Context<'_>, _: &dyn BlockFacts) -> FsResult<Planned> {
                ops::$module::$plan(ns, ctx, self)
            }
        })*
    };
}

/// Requests about a path, or several, with outcomes of their own: the outcome, the plan, and the words before
/// the path.
macro_rules! in_steps {
    ($($module:ident => $outcome:ty, |$request:ident, $ns:ident, $ctx:ident, $facts:ident| $plan:expr, $what:literal;)*) => {
        $(impl Plannable for ops::$module::Request {
            type Outcome = $outcome;

            fn paths(&self) -> Paths<'_> {
                Paths::of([&self.path])
            }

            fn what(&self) -> String {
                format!("{}{}", $what, self.path)
            }

            fn plan(&self, $ns: &Namespace, $ctx: &Context<'_>, $facts: &dyn BlockFacts) -> FsResult<$outcome> {
                let $request = self;
                $plan
            }
        })*
    };
}

plain! {
    mkdirs::Request by plan, (path) "Cannot create directory {path}";
    fsync::Request by plan, (path) "Cannot fsync file {path}";
    abandon_block::Request by plan, (path; pool, block) "Cannot abandon block {pool}:{block} for file{path}";
    update_block_for_pipeline::Request by plan, (; pool, block)
        "Cannot get a new generation stamp and an access token for block {pool}:{block}";
    update_pipeline::Request by plan, () "Pipeline not updated";
    rename::Request by plan, (source, destination) "Cannot rename {source}";
    rename2::Request by plan, (source, destination) "Cannot rename {source}";
    delete::Request by plan, (path) "Cannot delete {path}";
    set_permission::Request by plan, (path) "Cannot set permission for {path}";
    set_owner::Request by plan, (path) "Cannot set owner for {path}";
    set_times::Request by plan, (path) "Cannot set times {path}";
    set_replication::Request by plan, (path) "Cannot set replication for {path}";
    set_xattrs::Request by plan, (path) "Cannot set XAttr on {path}";
    set_xattrs::Removal by plan_removal, (path) "Cannot remove XAttr entry on {path}";
    set_erasure_coding::Request by plan, (path) "Cannot set erasure coding policy on {path}";
    set_erasure_coding::Removal by plan_removal, (path) "Cannot unset erasure coding policy on {path}";
    set_quota::Request by plan, (path) "Cannot set quota on {path}";
    allow_snapshot::Request by plan, (path) "Cannot allow snapshot for {path}";
    allow_snapshot::Disallowing by plan_disallow, (path) "Cannot disallow snapshot for {path}";
    create_snapshot::Request by plan, (path) "Cannot create snapshot for {path}";
    rename_snapshot::Request by plan, (path) "Cannot rename snapshot for {path}";
    delete_snapshot::Request by plan, (path) "Cannot delete snapshot for {path}";
}

in_steps! {
    create => Freeing<Planned>, |req, ns, ctx, facts|
        release_lease::free(ops::create::plan(ns, ctx, req), ns, ctx, &req.path, facts),
        "Cannot create file";
    append => Freeing<Planned>, |req, ns, ctx, facts|
        release_lease::free(ops::append::plan(ns, ctx, req, facts), ns, ctx, &req.path, facts),
        "Cannot append to file";
    truncate => Freeing<ops::truncate::Plan>, |req, ns, ctx, facts|
        release_lease::free(ops::truncate::plan(ns, ctx, req), ns, ctx, &req.path, facts),
        "Cannot truncate for ";
    add_block => ops::add_block::Plan, |req, ns, ctx, facts| ops::add_block::plan(ns, ctx, req, facts),
        "Cannot add block to ";
    complete => ops::complete::Plan, |req, ns, ctx, facts| ops::complete::plan(ns, ctx, req, facts),
        "Cannot complete file ";
    recover_lease => release_lease::Plan, |req, ns, ctx, facts| ops::recover_lease::plan(ns, ctx, req, facts),
        "Cannot recover the lease of ";
}

impl Plannable for ops::concat::Request {
    type Outcome = Planned;

    fn paths(&self) -> Paths<'_> {
        Paths::with(&self.target, &self.sources)
    }

    fn what(&self) -> String {
        format!("Cannot concat {}", self.target)
    }

    fn plan(&self, ns: &Namespace, ctx: &Context<'_>, _: &dyn BlockFacts) -> FsResult<Planned> {
        ops::concat::plan(ns, ctx, self)
    }
}

impl Plannable for ops::set_acl::Request {
    type Outcome = Planned;

    fn paths(&self) -> Paths<'_> {
        Paths::of([&self.path])
    }

    fn what(&self) -> String {
        let beginning = match self.change {
            Change::Replace(_) => "Cannot set ACL on",
            Change::Merge(_) => "Cannot modify ACL entries on",
            Change::Remove(_) => "Cannot remove ACL entries on",
            Change::RemoveDefault => "Cannot remove default ACL entries on",
            Change::RemoveAll => "Cannot remove ACL on",
        };
        format!("{beginning} {}", self.path)
    }

    fn plan(&self, ns: &Namespace, ctx: &Context<'_>, _: &dyn BlockFacts) -> FsResult<Planned> {
        ops::set_acl::plan(ns, ctx, self)
    }
}

impl Plannable for ops::set_storage_policy::Request {
    type Outcome = Planned;

    fn paths(&self) -> Paths<'_> {
        Paths::of([&self.path])
    }

    fn what(&self) -> String {
        let verb = if self.policy.is_some() { "set" } else { "unset" };
        format!("Cannot {verb} storage policy for {}", self.path)
    }

    fn plan(&self, ns: &Namespace, ctx: &Context<'_>, _: &dyn BlockFacts) -> FsResult<Planned> {
        ops::set_storage_policy::plan(ns, ctx, self)
    }
}

#[cfg(test)]
mod tests;
