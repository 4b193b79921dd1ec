//! The answer to a call, and what the retry cache knows of one.

use crate::SnapshotId;
use base::{Block, CallOrigin, CopyOfCall, FsError, FsResult, InodeId};

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
    /// The very same request was answered and has changed nothing, and this was the latest of its copies that was answered. A later
    /// copy is planned; no other copy is carried out ([`RetryLookup::forbids`]).
    Noted(CopyOfCall),
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

    /// Whether this copy is not to be carried out, since it or a later one was answered and has changed nothing.
    pub fn forbids(self, origin: &CallOrigin) -> bool {
        match self {
            // A client that does not count may have sent this copy just now.
            RetryLookup::Noted(answered) => origin.copy().is_some_and(|copy| copy <= answered),
            RetryLookup::Miss | RetryLookup::Hit(_) | RetryLookup::Mismatch => false,
        }
    }

    /// `None`: go on and plan, unless the lookup [forbids](RetryLookup::forbids) it.
    ///
    /// # Errors
    /// [`FsError::InvalidArgument`] if the call id was used for another request.
    pub fn into_result(self, origin: &CallOrigin) -> FsResult<Option<Reply>> {
        match self {
            RetryLookup::Miss | RetryLookup::Noted(_) => Ok(None),
            RetryLookup::Hit(reply) => Ok(Some(reply)),
            RetryLookup::Mismatch => Err(Self::mismatch_error(origin)),
        }
    }
}
