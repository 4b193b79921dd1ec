//! The answer of a call, reconstructed from its edit alone.

use super::{Body, Edit};
use crate::Reply;

impl Edit {
    /// The answer to the call that made this edit, as [`crate::Applied::reply`] had it, for one that is repeated after the
    /// retry cache has forgotten it. `None`: the call is planned anew, and recognises its own repetition from the tree.
    pub fn answer(&self) -> Option<Reply> {
        Some(match &self.body {
            Body::AddBlock(_) | Body::NewStamp(_) => return None,
            Body::Mkdirs(_) | Body::Complete(_) | Body::Delete(_) | Body::SetReplication(_) => {
                Reply::Bool(true)
            }
            Body::Create(edit) => Reply::Created(edit.id),
            Body::Append(edit) => Reply::Appended(edit.inode),
            Body::Rename(edit) if edit.answers => Reply::Bool(true),
            Body::Truncate(edit) => Reply::Bool(edit.cut.is_none()),
            Body::TruncateCopy(_) => Reply::Bool(false),
            Body::CreateSnapshot(edit) => Reply::Snapshot(edit.id),
            Body::Rename(_)
            | Body::AbandonBlock(_)
            | Body::Cleanup(_)
            | Body::SetPermission(_)
            | Body::SetOwner(_)
            | Body::SetTimes(_)
            | Body::SetAcl(_)
            | Body::SetXattrs(_)
            | Body::Fsync(_)
            | Body::UpdatePipeline(_)
            | Body::StartRecovery(_)
            | Body::FinishRecovery(_)
            | Body::Concat(_)
            | Body::SetSnapshottable(_)
            | Body::RenameSnapshot(_)
            | Body::DeleteSnapshot(_)
            | Body::Sweep(_)
            | Body::SetQuota(_)
            | Body::SetStoragePolicy(_)
            | Body::AllowDeletions(_)
            | Body::RaiseLevel(_) => Reply::Unit,
        })
    }
}
