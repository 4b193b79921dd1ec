//! A member's own clock: it starts anywhere and goes a little fast or slow.

use base::{Moment, Timestamp};

#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
    /// Its nanoseconds in a million true ones.
    rate: u64,
    /// What the wall clock shows beyond the true time; it may jump.
    wall_ahead_ms: i64,
}

impl Clock {
    pub fn new(start_ns: u64, rate: u64) -> Self {
        Self { start_ns, rate, wall_ahead_ms: 0 }
    }

    pub fn moment(&self, now_ns: u64) -> Moment {
        Moment { ns: self.start_ns + (u128::from(now_ns) * u128::from(self.rate) / 1_000_000) as u64 }
    }

    /// The true time at which the clock will show `moment`, or just after.
    pub fn true_ns(&self, moment: Moment) -> u64 {
        let passed = u128::from(moment.ns.saturating_sub(self.start_ns));
        (passed * 1_000_000).div_ceil(u128::from(self.rate)) as u64
    }

    pub fn timestamp(&self, now_ns: u64) -> Timestamp {
        let ms = 1_800_000_000_000 + now_ns / 1_000_000;
        Timestamp::from_ms(ms.saturating_add_signed(self.wall_ahead_ms))
    }

    pub fn jump_wall(&mut self, by_ms: i64) {
        self.wall_ahead_ms += by_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_reached_when_it_was_said_to_be() {
        for rate in [950_000, 1_000_000, 1_049_999] {
            let clock = Clock::new(77_000_000_123, rate);
            let deadline = clock.moment(5_000_000_000).plus_ms(400);
            let at = clock.true_ns(deadline);
            assert!(clock.moment(at) >= deadline && clock.moment(at - 2) < deadline);
        }
    }
}
