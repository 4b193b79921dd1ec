//! The arguments of a plan besides its request, and its answers.

use crate::{Limits, Looks, Renewals, questions::Told, shares::Room};
use base::{Block, CallOrigin, Caller, Moment, Timestamp};

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
    /// The looks at large subtrees that were taken before. With `None`, the plan looks at all that it needs.
    pub looks: Option<&'a Looks>,
    /// What homes have told the root group about their files. With `None`, no other group has files.
    pub told: Option<&'a Told>,
    /// Whether the call has asked the root group for an allowance of a quota, and where its plan notes what it lacks. With `None`, the service itself plans: a
    /// quota that groups share refuses nothing then.
    pub room: Option<&'a Room>,
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
