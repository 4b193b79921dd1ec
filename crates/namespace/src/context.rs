//! The arguments of a plan besides its request, and its answers.

use crate::{Edit, Limits, Renewals, SnapshotId};
use base::{Block, CallOrigin, Caller, FsError, FsResult, InodeId, Moment, Timestamp};

/// The caller of a plan, the time, and the limits.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub caller: &'a Caller,
    /// `None` for what the service does of itself; such edits leave no trace in the retry cache.
    pub origin: Option<CallOrigin>,
    /// [`crate::fingerprint`] of the method and the request's bytes. Means nothing without `origin`.
    pub fingerprint: u64,
    pub now: Timestamp,
    /// The monotonic time that goes with `renewals`.
    pub moment: Moment,
    pub limits: &'a Limits,
    /// When each holder last renewed its leases. With `None`, no lease counts as expired.
    pub renewals: Option<&'a Renewals>,
}

/// The decision of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Planned {
    /// To be applied, appended and answered with [`crate::Applied::reply`].
    Edit(Edit),
    /// The state already is what was asked for.
    NoChange(Reply),
}

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

/// The facts about replicas that `plan` must know. None of them reaches `apply`.
pub trait BlockFacts {
    /// Whether enough finished replicas of exactly this stamp and length were reported
    /// (`dfs.namenode.replication.min`).
    fn is_complete(&self, block: &Block) -> bool;

    /// The length that a lone recovery should give to a block whose writer is gone: the shortest one
    /// among its finished replicas, or else among those being written. `None` where no replica is known.
    fn recovered_length(&self, block: &Block) -> Option<u64>;

    /// Whether any server was ever chosen for, or reported, a replica of the block.
    fn is_located(&self, block: &Block) -> bool;
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
