//! Rules left out on purpose, for tests that show that each is needed.
//!
//! Only the feature `broken` lets [`Rules`] name one, and no shipped program has it: elsewhere all rules are kept.

/// One rule that a metadata server or a data server breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A data server obeys every metadata server that calls itself active, whoever it has heard before.
    OldClaimsObeyed,
    /// A new active trusts what was reported while another one gave the orders: no storage is stale.
    TakeoverTrustsReports,
    /// A report counts as one under the orders of the new active although it was begun before its server had heard
    /// that one.
    EarlyReportsTrusted,
    /// A report that began before a takeover, or before its server registered anew, counts as if it had begun behind that.
    ReportsOutliveTakeovers,
    /// Unknown replicas are deleted at once: whether the log holds deletions back, whether their ids were skipped, and
    /// how many they are, is not minded.
    UnknownDeletedAtOnce,
    /// What a data server has said is believed on whichever of its connections it arrives: a full report, or news, that is older
    /// than a deletion brings the deleted replica back.
    LateWordsTrusted,
    /// A message is taken whatever session it belongs to: one of a data server's earlier process counts as news.
    AnySession,
    /// An order to delete is forgotten when it has gone out: a report that was made before it was carried out has the replica count again.
    OrdersForgotten,
    /// An order to delete goes out as it was decided, though another replica may have been lost since.
    OrdersNotReconsidered,
    /// A data server may leave service as soon as one lap has looked at its blocks: that some of them need it is not minded.
    LeavingNotAwaited,
    /// Replicas on data servers that leave service count as if they were to stay.
    LeavingCounts,
}

/// The rules that a server keeps: all of them, but in tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    #[cfg(feature = "broken")]
    broken: Option<Broken>,
}

impl Rules {
    /// No rule is left out.
    #[cfg(feature = "broken")]
    pub const fn all() -> Self {
        Self { broken: None }
    }

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
        Self::OldClaimsObeyed,
        Self::TakeoverTrustsReports,
        Self::EarlyReportsTrusted,
        Self::ReportsOutliveTakeovers,
        Self::UnknownDeletedAtOnce,
        Self::LateWordsTrusted,
        Self::AnySession,
        Self::OrdersForgotten,
        Self::OrdersNotReconsidered,
        Self::LeavingNotAwaited,
        Self::LeavingCounts,
    ];
}
