//! What an edit adds to the usage of the directories that have a quota.
//!
//! The charges are worked out from the edit's body in one place, and stand in the edit: `apply` adds them and
//! never walks upwards.

use crate::{Edit, Namespace, edit::Body, edit::codec::record_fields};
use base::{FsResult, InodeId};

/// The change of one directory's usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    pub directory: InodeId,
    pub inodes: i64,
    /// Bytes times replication.
    pub bytes: i64,
}

record_fields! { Charge { directory, inodes, bytes } }

/// The charges of an edit on the state that it was planned on. No directory has a quota yet.
pub(crate) fn of(_ns: &Namespace, _body: &Body) -> Vec<Charge> {
    Vec::new()
}

/// Whether the quotas have room for what the edit charges.
pub(crate) fn verify(_ns: &Namespace, _edit: &Edit) -> FsResult<()> {
    Ok(())
}
