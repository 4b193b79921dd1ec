//! Which metadata server a data server obeys.
//!
//! The members of a group all hear everything; the active one alone gives orders. Each answer to a heartbeat carries
//! a claim: whether its server is active, and a number. Clover's members put the epoch in front (`epoch * 2^40 +
//! serial number of the log`), Hadoop's NameNodes count transactions, so that both read the same way: the highest
//! claim that was heard is the one to obey, and no older one is obeyed again, not even when the newer one has stepped
//! down since.
//!
//! The epoch is remembered for as long as the data server's process runs. A data server that has restarted registers
//! anew, and no member trusts what its storages hold before it has answered it; and a member whose lease has ended
//! gives no orders.

use crate::broken::{Broken, Rules};
use base::{Epoch, Sn};

/// Bits of a claim's number below the epoch: a trillion entries of a log.
const SN_BITS: u32 = 40;

/// What a metadata server says of itself to data servers: whether it is active, with a number that orders such claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub is_active: bool,
    pub number: u64,
}

impl Claim {
    /// The claim of a member that serves in this epoch, or in none. The epoch is in front, so that a new active is
    /// believed over every claim of the one before; the rest grows with each commit. The claim does not waver with the
    /// lease: a stock data server that hears "not active" does not take the same number again, and would wait for the
    /// next commit.
    pub fn of(serves_in: Option<Epoch>, committed: Sn) -> Self {
        let committed = committed.0.min((1 << SN_BITS) - 1);
        Self {
            is_active: serves_in.is_some(),
            number: serves_in.map_or(0, |epoch| epoch.0 << SN_BITS) + committed,
        }
    }

    /// The epoch in which its server says that it serves.
    pub fn epoch(&self) -> Option<Epoch> {
        self.is_active.then_some(Epoch(self.number >> SN_BITS))
    }
}

/// The highest claim to be the active server that a data server has heard.
#[derive(Clone, Debug, Default)]
pub struct Leadership {
    newest: Option<Mandate>,
    /// Its server still says so.
    is_held: bool,
    rules: Rules,
}

/// The right of a metadata server to give orders, as long as no other has a newer one.
#[derive(Clone, Copy, Debug)]
pub struct Mandate {
    server: usize,
    number: u64,
}

impl Mandate {
    pub fn epoch(&self) -> u64 {
        self.number >> SN_BITS
    }

    fn is_same_reign(&self, other: &Self) -> bool {
        self.server == other.server && self.epoch() == other.epoch()
    }
}

/// A claim that is obeyed.
#[derive(Clone, Copy, Debug)]
pub struct Obeyed {
    pub mandate: Mandate,
    /// The first word of this server in this epoch. Nothing is deleted there before it knows what there is under its
    /// own orders: it is sent a full report.
    pub is_new: bool,
}

impl Leadership {
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// A server, by its place among the members of its group, has said what it is. Answers with the mandate under which it is to
    /// be obeyed, if it is.
    pub fn observe(&mut self, server: usize, claim: Claim) -> Option<Obeyed> {
        if !claim.is_active {
            self.is_held &= self.newest.is_some_and(|newest| newest.server != server);
            return None;
        }
        let mandate = Mandate { server, number: claim.number };
        let held = self.newest;
        let is_same = held.is_some_and(|held| held.is_same_reign(&mandate));
        let is_newer = held.is_none_or(|held| mandate.number > held.number);
        if !is_same && !is_newer && !self.rules.break_rule(Broken::OldClaimsObeyed) {
            return None;
        }
        let is_new = !is_same || !self.is_held;
        // Two heartbeats of one server may overtake each other.
        let number = mandate.number.max(held.filter(|_| is_same).map_or(0, |held| held.number));
        *self = Self { newest: Some(Mandate { server, number }), is_held: true, rules: self.rules };
        Some(Obeyed { mandate, is_new })
    }

    /// The server that is obeyed at the moment.
    pub fn active(&self) -> Option<usize> {
        self.newest.filter(|_| self.is_held).map(|newest| newest.server)
    }

    /// The server's mandate, if it is the one obeyed.
    pub fn mandate_of(&self, server: usize) -> Option<Mandate> {
        self.newest.filter(|newest| self.is_held && newest.server == server)
    }

    /// The epoch of the highest claim heard.
    pub fn epoch(&self) -> u64 {
        self.newest.map_or(0, |newest| newest.epoch())
    }

    /// Whether no other server has claimed more since. An order is carried out as long as its mandate stands; no claim
    /// may be observed in between. So work under an older claim is done before the newer one is known, and later
    /// reports show it.
    pub fn stands(&self, mandate: &Mandate) -> bool {
        self.newest.is_some_and(|newest| newest.is_same_reign(mandate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(epoch: u64, sn: u64) -> u64 {
        Claim::of(Some(Epoch(epoch)), Sn(sn)).number
    }

    fn observe(leadership: &mut Leadership, server: usize, is_active: bool, number: u64) -> Option<Obeyed> {
        leadership.observe(server, Claim { is_active, number })
    }

    fn is_obeyed(leadership: &mut Leadership, server: usize, number: u64) -> bool {
        observe(leadership, server, true, number).is_some()
    }

    #[test]
    fn a_claim_has_the_epoch_in_front_and_does_not_run_into_it() {
        assert_eq!(Claim::of(None, Sn(7)), Claim { is_active: false, number: 7 });
        assert!(number(5, 0) > number(4, u64::MAX), "the next epoch counts more than any log");
    }

    #[test]
    fn an_older_claim_is_not_obeyed() {
        let leadership = &mut Leadership::default();
        assert!(is_obeyed(leadership, 0, 10));
        assert!(observe(leadership, 1, false, 10).is_none());
        assert!(is_obeyed(leadership, 1, 11), "a takeover");
        assert!(!is_obeyed(leadership, 0, 10), "the old active has not noticed");
        assert!(is_obeyed(leadership, 1, 11));
        assert!(observe(leadership, 1, false, 12).is_none(), "it stepped down");
        assert_eq!(leadership.active(), None);
        assert!(is_obeyed(leadership, 0, 12));
        assert_eq!(leadership.active(), Some(0));
    }

    #[test]
    fn nobody_of_an_older_epoch_is_obeyed_after_the_newer_one_has_stepped_down() {
        let leadership = &mut Leadership::default();
        assert!(is_obeyed(leadership, 0, number(4, 900)));
        assert!(is_obeyed(leadership, 1, number(5, 880)), "its log may even be shorter");
        assert!(observe(leadership, 1, false, number(5, 890)).is_none());
        assert!(!is_obeyed(leadership, 0, number(4, 901)), "it was frozen, and has not noticed yet");
        assert_eq!(leadership.epoch(), 5);
        assert!(is_obeyed(leadership, 0, number(6, 891)));
    }

    #[test]
    fn a_member_is_new_once_in_an_epoch() {
        let mut leadership = Leadership::default();
        let mut is_new = |server, number| observe(&mut leadership, server, true, number).unwrap().is_new;
        assert!(is_new(0, number(4, 1)));
        assert!(!is_new(0, number(4, 2)));
        assert!(!is_new(0, number(4, 1)), "two heartbeats that overtook each other");
        assert!(is_new(1, number(5, 2)));
        assert!(is_new(0, number(6, 2)));
        assert!(is_new(0, number(7, 2)), "it took the group again: others may have commanded meanwhile");
    }

    #[test]
    fn what_an_older_claim_ordered_is_not_carried_out_after_a_newer_one() {
        let leadership = &mut Leadership::default();
        let old = observe(leadership, 0, true, number(1, 1)).unwrap().mandate;
        assert!(leadership.stands(&old));
        observe(leadership, 0, true, number(1, 2)).unwrap();
        assert!(leadership.stands(&old), "the same reign");
        observe(leadership, 1, true, number(2, 2)).unwrap();
        assert!(!leadership.stands(&old));
        assert!(leadership.mandate_of(0).is_none());
    }
}
