//! Allows the deletion of replicas that no file has, which an unclean election had held back.

use crate::{
    BlockChange, Context, Namespace, Reply,
    codec::record_fields,
    edit::{Edit, Planned},
    operation::{Applying, Operation, rules_without_inodes},
};
use base::{Epoch, FsError, FsResult};

#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The value of [`crate::UnknownReplicas::held_since`] that the operator has seen.
    pub held_since: Epoch,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AllowDeletionsEdit {
    pub held_since: Epoch,
}

record_fields! { AllowDeletionsEdit { held_since } }

/// The service has checked before that the caller may give this order: this is no call on the tree.
///
/// # Errors
/// [`FsError::InvalidArgument`] if another loss has held them back since the operator looked, and nobody has seen what
/// that one would delete.
pub fn plan(ns: &Namespace, ctx: &Context<'_>, req: &Request) -> FsResult<Planned<AllowDeletionsEdit>> {
    match ns.tree.unknown.held_since() {
        None => Ok(Planned::NoChange(Reply::Unit)),
        Some(epoch) if epoch == req.held_since => {
            let edit = AllowDeletionsEdit { held_since: epoch };
            Ok(Planned::Edit(Edit::of_service(ns, ctx, edit)))
        }
        Some(epoch) => Err(FsError::InvalidArgument(format!(
            "Deletions are held back since epoch {epoch}, not since epoch {}: look again at what would be deleted",
            req.held_since
        ))),
    }
}

impl Operation for AllowDeletionsEdit {
    fn answer(&self) -> Option<Reply> {
        Some(Reply::Unit)
    }

    // No read sees the data servers' replicas.
    rules_without_inodes!();

    fn apply(&self, ns: &mut Namespace, applying: &mut Applying<'_>) -> Reply {
        ns.tree.unknown.allow();
        applying.changes.push(BlockChange::UnknownReplicas(ns.tree.unknown.clone()));
        Reply::Unit
    }
}
