//! The choice of the metadata server that this data server obeys.
//!
//! The members of a group all hear everything; the active one alone gives orders. Each answer to a heartbeat carries
//! a claim: whether its server is active, and a number. Clover's members put the epoch in front (`epoch * 2^40 +
//! serial number of the log`), Hadoop's NameNodes count transactions, so that both read the same way: the highest
//! claim that was heard is the one to obey, and no older one is obeyed again, not even when the newer one has stepped
//! down since.
//!
//! The epoch is remembered for as long as this process runs. A data server that has restarted registers anew,
//! and no member trusts what its storages hold before it has answered it; and a member whose lease has ended
//! gives no orders.

use parking_lot::Mutex;

/// Bits of a claim's number below the epoch.
const SN_BITS: u32 = 40;

/// The highest claim to be the active server.
#[derive(Default)]
pub struct Leadership {
    newest: Mutex<Newest>,
}

#[derive(Default)]
struct Newest {
    claim: Option<Claim>,
    /// Its server still says so.
    is_held: bool,
}

/// The right of a metadata server to give orders, as long as no other has a newer one.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    server: usize,
    number: u64,
}

impl Claim {
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
    pub claim: Claim,
    /// The first word of this server in this epoch.
    pub is_new: bool,
}

impl Leadership {
    /// A server has said what it is. Answers with the claim under which it is to be obeyed, if it is.
    pub fn observe(&self, server: usize, is_active: bool, number: u64) -> Option<Obeyed> {
        let mut newest = self.newest.lock();
        if !is_active {
            newest.is_held &= newest.claim.is_some_and(|claim| claim.server != server);
            return None;
        }
        let claim = Claim { server, number };
        let held = newest.claim;
        let is_same = held.is_some_and(|held| held.is_same_reign(&claim));
        let is_newer = held.is_none_or(|held| number > held.number);
        if !is_same && !is_newer {
            return None;
        }
        let is_new = !is_same || !newest.is_held;
        // Two heartbeats of one server may overtake each other.
        let number = number.max(held.filter(|_| is_same).map_or(0, |held| held.number));
        *newest = Newest { claim: Some(Claim { server, number }), is_held: true };
        Some(Obeyed { claim, is_new })
    }

    /// The server that is obeyed at the moment.
    pub fn active(&self) -> Option<usize> {
        let newest = self.newest.lock();
        newest.claim.filter(|_| newest.is_held).map(|claim| claim.server)
    }

    /// The server's claim, if it is the one obeyed.
    pub fn claim_of(&self, server: usize) -> Option<Claim> {
        let newest = self.newest.lock();
        newest.claim.filter(|claim| newest.is_held && claim.server == server)
    }

    /// The epoch of the highest claim heard.
    pub fn epoch(&self) -> u64 {
        self.newest.lock().claim.map_or(0, |claim| claim.epoch())
    }

    /// Does `work`, which must be short, if the claim still stands, and lets no newer one in meanwhile. So work under
    /// an older claim is done before the newer one is known, and later reports show it.
    pub fn while_standing<T>(&self, claim: Claim, work: impl FnOnce() -> T) -> Option<T> {
        let newest = self.newest.lock();
        newest.claim.is_some_and(|held| held.is_same_reign(&claim)).then(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(epoch: u64, sn: u64) -> u64 {
        (epoch << SN_BITS) + sn
    }

    fn is_obeyed(leadership: &Leadership, server: usize, number: u64) -> bool {
        leadership.observe(server, true, number).is_some()
    }

    #[test]
    fn an_older_claim_is_not_obeyed() {
        let leadership = Leadership::default();
        assert!(is_obeyed(&leadership, 0, 10));
        assert!(leadership.observe(1, false, 10).is_none());
        assert!(is_obeyed(&leadership, 1, 11), "a takeover");
        assert!(!is_obeyed(&leadership, 0, 10), "the old active has not noticed");
        assert!(is_obeyed(&leadership, 1, 11));
        assert!(leadership.observe(1, false, 12).is_none(), "it stepped down");
        assert_eq!(leadership.active(), None);
        assert!(is_obeyed(&leadership, 0, 12));
        assert_eq!(leadership.active(), Some(0));
    }

    #[test]
    fn nobody_of_an_older_epoch_is_obeyed_after_the_newer_one_has_stepped_down() {
        let leadership = Leadership::default();
        assert!(is_obeyed(&leadership, 0, number(4, 900)));
        assert!(is_obeyed(&leadership, 1, number(5, 880)), "its log may even be shorter");
        assert!(leadership.observe(1, false, number(5, 890)).is_none());
        assert!(!is_obeyed(&leadership, 0, number(4, 901)), "it was frozen, and has not noticed yet");
        assert_eq!(leadership.epoch(), 5);
        assert!(is_obeyed(&leadership, 0, number(6, 891)));
    }

    #[test]
    fn a_member_is_new_once_in_an_epoch() {
        let leadership = Leadership::default();
        let is_new = |server, number| leadership.observe(server, true, number).unwrap().is_new;
        assert!(is_new(0, number(4, 1)));
        assert!(!is_new(0, number(4, 2)));
        assert!(!is_new(0, number(4, 1)), "two heartbeats that overtook each other");
        assert!(is_new(1, number(5, 2)));
        assert!(is_new(0, number(6, 2)));
        assert!(is_new(0, number(7, 2)), "it took the group again: others may have commanded meanwhile");
    }

    #[test]
    fn what_an_older_claim_ordered_is_not_carried_out_after_a_newer_one() {
        let leadership = Leadership::default();
        let old = leadership.observe(0, true, number(1, 1)).unwrap().claim;
        assert_eq!(leadership.while_standing(old, || "done"), Some("done"));
        leadership.observe(0, true, number(1, 2)).unwrap();
        assert_eq!(leadership.while_standing(old, || "done"), Some("done"), "the same reign");
        leadership.observe(1, true, number(2, 2)).unwrap();
        assert_eq!(leadership.while_standing(old, || "done"), None);
        assert!(leadership.claim_of(0).is_none());
    }
}
