//! Rules left out on purpose, for tests that show that each is needed.
//!
//! Only the feature `broken` lets [`Rules`] name one, and no shipped program has it: elsewhere all rules are kept.

/// One rule that a server breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The marks of entries that a new active has inherited are not noted: a read tells of them before they have
    /// committed.
    InheritedTakenAsCommitted,
    /// The marks of its own edits are not noted.
    OwnTakenAsCommitted,
    /// A proof counts for answers of any reign.
    ProofOfAnyReign,
    /// An answer goes out as soon as it is evaluated, whether or not the lease still holds.
    ReadsNeedNoProof,
    /// An answer of the coordinator counts for reads that were begun after the question.
    ProofOfLaterReads,
    /// Refusals are not remembered: a late copy of a call is decided anew.
    RefusalsForgotten,
    /// No answer that changed nothing is noted in the journal: a later active carries out an older copy of its call.
    AnswersNotNoted,
    /// The block map hears of a change that may cost replicas before its edit has committed.
    DeletionsDoNotWait,
    /// A member that does not lead answers a read although its tree does not show everything up to the read point.
    PointsNotWaitedFor,
    /// A read point counts for reads that came after it was asked for.
    PointsOfLaterReads,
    /// The end of a log is compared with a read point by its number alone. A deposed active may have written that end.
    PointsOfAnyEpoch,
}

/// The rules that a server keeps: all of them, but in tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    #[cfg(feature = "broken")]
    broken: Option<Broken>,
}

impl Rules {
    /// All rules but this one.
    #[cfg(feature = "broken")]
    pub const fn without(rule: Broken) -> Self {
        Self { broken: Some(rule) }
    }

    pub(crate) const fn break_rule(self, rule: Broken) -> bool {
        #[cfg(feature = "broken")]
        return matches!(self.broken, Some(broken) if broken as u8 == rule as u8);
        #[cfg(not(feature = "broken"))]
        {
            let _ = rule;
            false
        }
    }
}

#[cfg(feature = "broken")]
impl Broken {
    /// All rules, in the order above.
    pub const ALL: [Broken; 11] = [
        Self::InheritedTakenAsCommitted,
        Self::OwnTakenAsCommitted,
        Self::ProofOfAnyReign,
        Self::ReadsNeedNoProof,
        Self::ProofOfLaterReads,
        Self::RefusalsForgotten,
        Self::AnswersNotNoted,
        Self::DeletionsDoNotWait,
        Self::PointsNotWaitedFor,
        Self::PointsOfLaterReads,
        Self::PointsOfAnyEpoch,
    ];
}
