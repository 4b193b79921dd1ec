//! The requests for changes, as values of one type.

use crate::{BlockFacts, Context, Namespace, Plannable, Step, ops, paths::Paths};
use base::FsResult;

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

#[cfg(test)]
mod tests;
