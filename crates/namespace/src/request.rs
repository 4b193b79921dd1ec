//! The requests for changes, as values: each knows the paths that it names, Hadoop's words for it, and its plan.

mod paths;

use crate::{
    BlockFacts, Context, Namespace, Planned,
    ops::{self, set_acl::Change},
};
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
    Mkdirs(mkdirs::Request),
    Create(create::Request),
    Append(append::Request),
    Truncate(truncate::Request),
    Fsync(fsync::Request),
    AbandonBlock(abandon_block::Request),
    UpdateBlockForPipeline(update_block_for_pipeline::Request),
    UpdatePipeline(update_pipeline::Request),
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

plain! {
    mkdirs::Request by plan, (path) "Cannot create directory {path}";
    create::Request by plan, (path) "Cannot create file{path}";
    truncate::Request by plan, (path) "Cannot truncate for {path}";
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

impl Plannable for ops::append::Request {
    fn paths(&self) -> Paths<'_> {
        Paths::of([&self.path])
    }

    fn what(&self) -> String {
        format!("Cannot append to file{}", self.path)
    }

    fn plan(&self, ns: &Namespace, ctx: &Context<'_>, facts: &dyn BlockFacts) -> FsResult<Planned> {
        ops::append::plan(ns, ctx, self, facts)
    }
}

impl Plannable for ops::concat::Request {
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
