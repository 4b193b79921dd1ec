//! The answer to a call, and what the retry cache knows of one.

use crate::SnapshotId;
use base::{Block, CallOrigin, FsError, FsResult, InodeId};

/// The essentials of an answer. An edit carries them, so that a call repeated after a failover is answered
/// like the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reply {
    #[default]
    Unit,
    Bool(bool),
    /// A file that was created: its status says the rest.
    Created(InodeId),
    /// A file that was opened to be written on: its status and its last block say the rest.
    Appended(InodeId),
    /// A snapshot that was made.
    Snapshot(SnapshotId),
    /// A new last block of a file, and the offset in the file at which it begins.
    Block {
        inode: InodeId,
        block: Block,
        offset: u64,
    },
}

/// The retry cache's answer about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryLookup {
    /// Never seen, or forgotten.
    Miss,
    /// The very same request was carried out, and this was the answer.
    Hit(Reply),
    /// The call id was used for another request. Refuse with [`RetryLookup::mismatch_error`].
    Mismatch,
}

impl RetryLookup {
    pub fn mismatch_error(origin: &CallOrigin) -> FsError {
        FsError::InvalidArgument(format!(
            "Call {} of client {} was already used for another request.",
            origin.call_id, origin.client_id
        ))
    }

    /// `None`: go on and plan.
    ///
    /// # Errors
    /// [`FsError::InvalidArgument`] if the call id was used for another request.
    pub fn into_result(self, origin: &CallOrigin) -> FsResult<Option<Reply>> {
        match self {
            RetryLookup::Miss => Ok(None),
            RetryLookup::Hit(reply) => Ok(Some(reply)),
            RetryLookup::Mismatch => Err(Self::mismatch_error(origin)),
        }
    }
}
