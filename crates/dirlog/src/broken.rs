//! Rules left out on purpose, for tests that show that each is needed.
//!
//! Only the feature `broken` lets settings name one, and no shipped program has it: elsewhere `Settings::breaks` is
//! always false. A machine whose settings name one of these breaks that one rule and keeps all others; the search or a story must
//! notice it. A rule whose absence no check notices is either not needed or not tested.

/// One rule that a machine breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Broken {
    /// Root: an entry is visible once it has committed, also where leased groups have not received it.
    VisibleAtCommit,
    /// Root: a new active makes entries visible before the leases that the old one granted are over.
    NewRootWaitsForNobody,
    /// Root: a new active takes everything in its log for visible.
    NewRootDoubtsNothing,
    /// Root: an active grants leases though its own may be over and nothing proves that it is still the active.
    LeaseByDeposed,
    /// Both: the own group's lease counts until its end, also after a hand-over has let go of it.
    LeaseOutlivesHandOver,
    /// Root: entries may be purged once all groups have applied them, committed or not.
    PurgesUncommitted,
    /// Root: the answer that is remembered for a call carried out before goes out at once.
    RetryBeforeVisible,
    /// Root: an ask counts as over once its entry is appended.
    AskOverOnceAppended,
    /// Root: holds count whatever session they were given in.
    HoldsWithoutSessions,
    /// Root: a refusal does not compare the sessions of the facts on which it rests.
    RefusesWithoutComparing,
    /// Root: a fact counts though an entry has changed since what it tells of.
    FactsOutliveEntries,
    /// Root: the facts of a refusal are released before what else it rests on is visible.
    RefusalsHoldNothing,
    /// Root: a group without which an entry became visible goes on in its session.
    AbsentKeepTheirSession,
    /// Root: a group that has not received entries for long keeps getting leases.
    RenewsTheSlow,
    /// Home: an entry is applied when it is received.
    AppliedBeforeVisible,
    /// Home: a plan does not wait for what is in doubt.
    PlansDoNotWait,
    /// Home: a read does not wait for what is in doubt.
    ReadsDoNotWait,
    /// Home: a plan does not wait for holds.
    PlansIgnoreHolds,
    /// Home: a hold is told before everything that was seen for it has committed.
    HoldOnUncommitted,
    /// Home: a lapsed lease ends all holds.
    LapseEndsHolds,
    /// Home: a welcomed group serves before it has received what its session begins with.
    ServesBeforeReceiving,
    /// Home: a Hello is said without a proof that its sender leads its group.
    HelloUnproved,
    /// Home: a hold is told without such a proof.
    HoldUnproved,
    /// Root: a Hello that was said to another root is taken.
    HelloToAnyRoot,
    /// Home: the lease is tested after evaluation only.
    NoLeaseBefore,
    /// Home: entries that were received from an older root active stay.
    OldEntriesStay,
    /// Home: an unknown chain is taken.
    AnyChainTaken,
    /// Home: an ask that comes after its end is given a hold.
    LateAsksHeld,
    /// Home: entries are entered while calls wait for earlier ones.
    EntersAtOnce,
    /// Home: calls that wait for a hold keep entries out as well.
    HoldsKeepEntriesOut,
}

#[cfg(feature = "broken")]
impl Broken {
    /// All rules, in the order above.
    pub const ALL: [Broken; 30] = [
        Self::VisibleAtCommit,
        Self::NewRootWaitsForNobody,
        Self::NewRootDoubtsNothing,
        Self::LeaseByDeposed,
        Self::LeaseOutlivesHandOver,
        Self::PurgesUncommitted,
        Self::RetryBeforeVisible,
        Self::AskOverOnceAppended,
        Self::HoldsWithoutSessions,
        Self::RefusesWithoutComparing,
        Self::FactsOutliveEntries,
        Self::RefusalsHoldNothing,
        Self::AbsentKeepTheirSession,
        Self::RenewsTheSlow,
        Self::AppliedBeforeVisible,
        Self::PlansDoNotWait,
        Self::ReadsDoNotWait,
        Self::PlansIgnoreHolds,
        Self::HoldOnUncommitted,
        Self::LapseEndsHolds,
        Self::ServesBeforeReceiving,
        Self::HelloUnproved,
        Self::HoldUnproved,
        Self::HelloToAnyRoot,
        Self::NoLeaseBefore,
        Self::OldEntriesStay,
        Self::AnyChainTaken,
        Self::LateAsksHeld,
        Self::EntersAtOnce,
        Self::HoldsKeepEntriesOut,
    ];
}
