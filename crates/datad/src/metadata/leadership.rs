//! Which metadata server is obeyed.

use parking_lot::Mutex;

/// The newest claim to be the active server. A claim counts only if it comes with a newer transaction id than
/// the one before: an old active that does not know yet that it was replaced is not obeyed again.
#[derive(Default)]
pub struct Leadership {
    newest: Mutex<Option<Claim>>,
}

#[derive(Clone, Copy)]
struct Claim {
    server: usize,
    transaction: u64,
}

impl Leadership {
    /// A server has said what it is. Answers whether it is to be obeyed.
    pub fn observe(&self, server: usize, is_active: bool, transaction: u64) -> bool {
        let mut newest = self.newest.lock();
        let held = *newest;
        let is_mine = held.is_some_and(|claim| claim.server == server);
        if !is_active {
            if is_mine {
                *newest = None;
            }
            return false;
        }
        if held.is_some_and(|claim| claim.server != server && transaction < claim.transaction) {
            return false;
        }
        let transaction = transaction.max(held.filter(|_| is_mine).map_or(0, |claim| claim.transaction));
        *newest = Some(Claim { server, transaction });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_claim_is_not_obeyed() {
        let leadership = Leadership::default();
        assert!(leadership.observe(0, true, 10));
        assert!(!leadership.observe(1, false, 10));
        assert!(leadership.observe(1, true, 11), "a takeover");
        assert!(!leadership.observe(0, true, 10), "the old active has not noticed");
        assert!(leadership.observe(1, true, 11));
        assert!(!leadership.observe(1, false, 12), "it stepped down");
        assert!(leadership.observe(0, true, 12));
    }
}
