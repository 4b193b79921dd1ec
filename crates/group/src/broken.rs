//! Rules left out on purpose, for tests that show that each is needed.
//!
//! Only the feature `broken` lets settings name one, and no shipped program has it: elsewhere [`crate::Settings`]'s `breaks` is
//! always false. A member whose settings name one of these breaks that one rule and keeps all others; the model check
//! and the simulation must catch it. A rule whose absence no check notices is either not needed or not tested.

/// One rule that a member breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Broken {
    /// The minimum is compared with the in-sync set that a pending change would make, not with the confirmed
    /// one: an active below the minimum commits because it has asked for a standby.
    MinimumCountedOnPending,
    /// An entry commits when the active's own disk has it; standbys get it afterwards.
    CommitBeforeReplication,
    /// A member that is neither in sync nor an exile claims as well, if no better one does (the paper's
    /// election of a junior by its serial number).
    JuniorClaims,
    /// A shrunk in-sync set counts as soon as it was asked for, before the coordinator has confirmed it.
    ShrinkBeforeConfirmed,
    /// The promise is not made durable: after a restart the member obeys whom it had fenced. (The disk breaks
    /// this one, not the member.)
    #[cfg(feature = "broken")]
    PromiseNotKept,
    /// Entries of one serial number count as equal, whatever their epochs and chains: nothing is ever cut
    /// off.
    LogsComparedBySn,
    /// A member enters the in-sync set as soon as it holds what a fresh active knows to be committed, before
    /// the first entry of the epoch has committed.
    ExpandAtLocalCommit,
    /// A lease counts when the in-sync members have granted it; exiles, who may be elected, are forgotten.
    LeaseOfInSyncOnly,
    /// A member acknowledges the end of its log, not the last entry that it has compared.
    AckOfOwnEnd,
    /// A change with an unknown answer counts as lost when the view read next is still the old one.
    UnknownTakenAsLost,
    /// Lowering the minimum leaves the exiles where they are, though entries commit without them from now on.
    LoweredMinimumKeepsExiles,
    /// A claim does not wait for the leases that the claimant itself has granted.
    ClaimBeforeGrantsEnd,
    /// A grant ends early as soon as a connection to the active broke, whatever has become of the active's process.
    EndsGrantsAtABreak,
    /// A grant that was asked for before a connection broke is counted on.
    CountsOldGrants,
    /// Reads and proposals are taken before the first entry of the epoch has committed.
    ServesBeforeFirstCommit,
    /// A member that has promised a later epoch still takes entries of an earlier one.
    ObeysOlderEpochs,
    /// A member is let in on the word of a process that may have ended since, and once more as soon as the coordinator
    /// has refused that.
    LetsInOldLives,
    /// Any answer of the coordinator is taken for the answer to the change that was asked for last.
    AnyAnswerTaken,
    /// A member that contradicts its active gives up its own log, whether or not an unclean election explains the difference.
    GivesUpOnAnyWord,
    /// A member claims although another has shown that it lacks what has committed, or that the view is older than a promise.
    IgnoresEvidence,
    /// After a start, the first claim with a minimum of one, and reads below the minimum, wait for nobody.
    LonelyFirstClaim,
    /// The view learns what has committed when it is changed for another reason only.
    NoHints,
    /// A claimant with a torn tail asks only those that are in sync without the old active.
    ForgetsOldActive,
    /// A claimant that has just begun waits for, and adopts entries from, those only that are complete by the view it found.
    FirstClaimHearsTheViewOnly,
    /// A first claim begins its epoch as soon as those who have answered can commit, however many others are silent.
    FirstClaimInAnyCompany,
    /// At a start, only the watermark tells what has committed: that an epoch's entries prove its first to have committed is not minded.
    EntriesProveNothing,
    /// A first claim waits for a member that has shown more than this log holds no longer than for any other.
    WaitsNoLonger,
    /// A member that needs an image stays in sync.
    KeepsThoseThatNeedImages,
    /// Whether a member needs an image rests on its word about what has committed, not on the entries that it holds.
    ImageByWordAlone,
    /// An order by which somebody has led stands for silent members for ever, though the group has served since.
    OrderStandsForEver,
}

#[cfg(feature = "broken")]
impl Broken {
    /// All rules, in the order above.
    pub const ALL: [Broken; 30] = [
        Self::MinimumCountedOnPending,
        Self::CommitBeforeReplication,
        Self::JuniorClaims,
        Self::ShrinkBeforeConfirmed,
        Self::PromiseNotKept,
        Self::LogsComparedBySn,
        Self::ExpandAtLocalCommit,
        Self::LeaseOfInSyncOnly,
        Self::AckOfOwnEnd,
        Self::UnknownTakenAsLost,
        Self::LoweredMinimumKeepsExiles,
        Self::ClaimBeforeGrantsEnd,
        Self::EndsGrantsAtABreak,
        Self::CountsOldGrants,
        Self::ServesBeforeFirstCommit,
        Self::ObeysOlderEpochs,
        Self::LetsInOldLives,
        Self::AnyAnswerTaken,
        Self::GivesUpOnAnyWord,
        Self::IgnoresEvidence,
        Self::LonelyFirstClaim,
        Self::NoHints,
        Self::ForgetsOldActive,
        Self::FirstClaimHearsTheViewOnly,
        Self::FirstClaimInAnyCompany,
        Self::EntriesProveNothing,
        Self::WaitsNoLonger,
        Self::KeepsThoseThatNeedImages,
        Self::ImageByWordAlone,
        Self::OrderStandsForEver,
    ];
}
