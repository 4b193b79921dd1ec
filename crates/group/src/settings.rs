//! The numbers of a member.

use crate::IdSteps;

/// Numbers of a member. All members of a group use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// How often an active says that it is there.
    pub beacon_ms: u64,
    /// How long a member that has granted the lease makes no claim.
    pub lease_ms: u64,
    /// A member in sync that is silent for so long is taken out. Shorter than the lease, so that an active
    /// that lives wins the race against those who would follow it.
    pub silence_ms: u64,
    /// Likewise one that speaks but does not make durable what it was sent.
    pub ack_silence_ms: u64,
    /// How much later each further member in rank claims.
    pub rank_backoff_ms: u64,
    /// How soon the others hear of a commit when no entry carries the news.
    pub idle_flush_ms: u64,
    /// An active whose own disk, or whose commit without a coordinator, stands still for so long gives up.
    pub stall_ms: u64,
    /// A thread that completes nothing for so long, and waits for no disk or other machine, hangs: then the member
    /// says nothing more.
    pub hang_ms: u64,
    /// How soon a change of the view with an unknown answer is sent again.
    pub change_retry_ms: u64,
    /// How long a claim stands without an answer.
    pub claim_answer_ms: u64,
    /// How soon the view is read again after somebody else changed it.
    pub reread_ms: u64,
    /// How often the view learns what has committed while entries do. A store restored from a copy that is older than that
    /// cannot be elected.
    pub hint_ms: u64,
    /// How long no data server must have reached the active, while some reach another member, before it hands over to that
    /// one. Several of the data servers' heartbeat intervals: they do not reach all members in the same moment.
    pub deaf_ms: u64,
    /// Committed entries kept in memory for members that are a little behind.
    pub window_bytes: usize,
    pub id_steps: IdSteps,
    /// A rule that this member breaks, for tests.
    #[cfg(feature = "broken")]
    pub broken: Option<crate::Broken>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            beacon_ms: 50,
            lease_ms: 400,
            silence_ms: 250,
            ack_silence_ms: 500,
            rank_backoff_ms: 20,
            idle_flush_ms: 5,
            stall_ms: 1_000,
            hang_ms: 1_000,
            change_retry_ms: 100,
            claim_answer_ms: 300,
            reread_ms: 1_000,
            hint_ms: 1_000,
            deaf_ms: 15_000,
            window_bytes: 32 << 20,
            id_steps: IdSteps::default(),
            #[cfg(feature = "broken")]
            broken: None,
        }
    }
}

impl Settings {
    /// The holder of a lease counts on this much of it only: clocks drift, messages take time.
    pub(crate) const LEASE_HELD_PERCENT: u64 = 85;
    const HANG_MS_MIN: u64 = 500;

    /// How long a grant still holds once the host of the active's process has said that the process is gone. Were that wrong,
    /// because something between the hosts rejects connections, the active would notice it by its next beacon, which is rejected.
    /// From then on the active counts the grant no more. The second beacon is for machines that are busy.
    pub(crate) const fn grant_ends_ms(&self) -> u64 {
        2 * self.beacon_ms
    }

    /// Whether this rule is left out.
    pub(crate) const fn breaks(&self, rule: crate::broken::Broken) -> bool {
        #[cfg(feature = "broken")]
        return matches!(self.broken, Some(broken) if broken as u8 == rule as u8);
        #[cfg(not(feature = "broken"))]
        {
            let _ = rule;
            false
        }
    }

    /// The longest lease that is granted, in milliseconds.
    pub(crate) const LEASE_MS_MAX: u64 = 60_000;

    /// Whether the numbers fit together; the sentence names those that do not.
    ///
    /// # Errors
    /// Two settings contradict each other, or one is out of its bounds. The text names the settings and their values.
    pub fn check(&self) -> Result<(), String> {
        let held_ms = self.lease_ms * Self::LEASE_HELD_PERCENT / 100;
        let orders = [
            (self.beacon_ms >= 5, format!("beacon_ms {} is under 5", self.beacon_ms)),
            (
                self.beacon_ms * 3 <= self.silence_ms,
                format!(
                    "silence_ms {} does not leave room for three beacons of {} ms",
                    self.silence_ms, self.beacon_ms
                ),
            ),
            (
                self.silence_ms < held_ms,
                format!(
                    "silence_ms {} is not under {held_ms}, the part of lease_ms {} that a holder counts on: \
                     an active that lives would lose against those who follow",
                    self.silence_ms, self.lease_ms
                ),
            ),
            (
                self.lease_ms <= Self::LEASE_MS_MAX,
                format!("lease_ms {} is over {}", self.lease_ms, Self::LEASE_MS_MAX),
            ),
            (
                self.stall_ms > self.silence_ms,
                format!("stall_ms {} is not over silence_ms {}", self.stall_ms, self.silence_ms),
            ),
            (
                self.hang_ms >= Self::HANG_MS_MIN,
                format!(
                    "hang_ms {} is under {}: threads that wait for work say every 200 ms that they live",
                    self.hang_ms,
                    Self::HANG_MS_MIN
                ),
            ),
            (self.hint_ms >= 100, format!("hint_ms {} is under 100", self.hint_ms)),
            (self.change_retry_ms > 0 && self.reread_ms > 0, "a retry without a pause".to_owned()),
        ];
        match orders.into_iter().find(|(holds, _)| !holds) {
            Some((_, sentence)) => Err(sentence),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_contradict_each_other_are_named() {
        assert_eq!(Settings::default().check(), Ok(()));
        let slow = Settings { silence_ms: 400, ..Settings::default() };
        assert!(slow.check().unwrap_err().starts_with("silence_ms 400 is not under 340"));
        let rare = Settings { beacon_ms: 100, ..Settings::default() };
        assert!(rare.check().unwrap_err().contains("three beacons"));
        let hasty = Settings { hang_ms: 499, ..Settings::default() };
        assert!(hasty.check().unwrap_err().starts_with("hang_ms 499 is under 500"));
    }
}
