//! The numbers of both machines.

use crate::broken::Broken;

/// Numbers of the directory log. All groups use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// How long the root group makes nothing visible without a group after it has granted it the directory lease.
    pub lease_ms: u64,
    /// How often a group asks for the lease.
    pub renew_ms: u64,
    /// How soon a Hello without an answer is said again.
    pub hello_ms: u64,
    /// How long a call or an ordered operation waits before its client is told to come again.
    pub hold_ms: u64,
    /// How soon homes are asked again when something was in the way, or no answer came.
    pub ask_again_ms: u64,
    /// How soon entries are sent again that a group has not received.
    pub resend_ms: u64,
    /// A group that has not received an entry of this age gets no lease any more.
    pub behind_ms: u64,
    /// A group that lacks more entries than this is welcomed without a lease.
    pub lag_max: u64,
    /// Entries that a group has not acknowledged, at most; later ones are sent when it has.
    pub in_flight_max: u64,
    /// The bytes of entries in one message, at most (or one entry).
    pub append_bytes_max: usize,
    /// The bytes of visible entries kept in memory for groups that are a little behind.
    pub window_bytes: usize,
    /// Calls that wait at a home, at most.
    pub calls_max: usize,
    /// Asks that a home has taken and holds that it has given, at most.
    pub asks_max: usize,
    /// Ordered operations that wait for homes or for each other, at most.
    pub ops_max: usize,
    /// Marks of one entry, one ask or one call, at most. More would be a path deeper than any that is allowed.
    pub marks_max: usize,
    /// A rule that this machine breaks, for tests.
    #[cfg(feature = "broken")]
    pub broken: Option<Broken>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease_ms: 1_000,
            renew_ms: 200,
            hello_ms: 200,
            hold_ms: 5_000,
            ask_again_ms: 10,
            resend_ms: 200,
            behind_ms: 500,
            lag_max: 1_000,
            in_flight_max: 4_096,
            append_bytes_max: 1 << 20,
            window_bytes: 32 << 20,
            calls_max: 100_000,
            asks_max: 4_096,
            ops_max: 4_096,
            marks_max: 8_192,
            #[cfg(feature = "broken")]
            broken: None,
        }
    }
}

impl Settings {
    /// The holder of a lease counts on this much of it only: clocks drift, messages take time.
    pub const LEASE_HELD_PERCENT: u64 = 85;

    /// How long a group counts on the lease, from the sending of its request.
    pub const fn held_ms(&self) -> u64 {
        self.lease_ms * Self::LEASE_HELD_PERCENT / 100
    }

    /// Whether the numbers fit together; the sentence names those that do not.
    ///
    /// # Errors
    /// Two settings contradict each other, or one is out of its bounds. The text names the settings and their values.
    pub fn check(&self) -> Result<(), String> {
        let orders = [
            (
                self.renew_ms > 0 && self.renew_ms * 3 <= self.held_ms(),
                format!(
                    "renew_ms {} does not leave room for three requests in {} ms",
                    self.renew_ms,
                    self.held_ms()
                ),
            ),
            (
                self.behind_ms < self.lease_ms,
                format!("behind_ms {} is not under lease_ms {}", self.behind_ms, self.lease_ms),
            ),
            (
                self.hold_ms > 2 * self.lease_ms,
                format!("hold_ms {} does not outlast two leases of {} ms", self.hold_ms, self.lease_ms),
            ),
            (
                self.hello_ms > 0 && self.ask_again_ms > 0 && self.resend_ms > 0,
                "a retry without a pause".to_owned(),
            ),
            (
                self.lag_max <= self.in_flight_max,
                format!("lag_max {} is over in_flight_max {}", self.lag_max, self.in_flight_max),
            ),
        ];
        match orders.into_iter().find(|(holds, _)| !holds) {
            Some((_, sentence)) => Err(sentence),
            None => Ok(()),
        }
    }
}

impl Settings {
    pub(crate) const fn breaks(&self, rule: Broken) -> bool {
        #[cfg(feature = "broken")]
        return matches!(self.broken, Some(broken) if broken as u8 == rule as u8);
        #[cfg(not(feature = "broken"))]
        {
            let _ = rule;
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_contradict_each_other_are_named() {
        assert_eq!(Settings::default().check(), Ok(()));
        let rare = Settings { renew_ms: 300, ..Settings::default() };
        assert!(rare.check().unwrap_err().contains("three requests in 850 ms"));
        let hasty = Settings { hold_ms: 2_000, ..Settings::default() };
        assert!(hasty.check().unwrap_err().contains("two leases"));
    }
}
