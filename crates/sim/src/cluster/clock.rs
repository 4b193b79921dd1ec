//! A member's own clock: it starts anywhere, goes a little fast or slow, and may stand still for a while.

use base::{Moment, Timestamp};

#[derive(Clone, Debug)]
pub struct Clock {
    start_ns: u64,
    /// Its nanoseconds in a million true ones.
    rate: u64,
    /// The time by which the wall clock is ahead of the true time; it may jump.
    wall_ahead_ms: i64,
    /// It stands, since this true time.
    stands_since_ns: Option<u64>,
    /// The readings at which the clock has stood still, and for how many true nanoseconds. It went on from that
    /// reading, and has been behind by that time ever since.
    stops: Vec<(Moment, u64)>,
    /// When it last went on by a jump, in true time.
    jumped_ns: Option<u64>,
}

impl Clock {
    pub fn new(start_ns: u64, rate: u64) -> Self {
        Self { start_ns, rate, wall_ahead_ms: 0, stands_since_ns: None, stops: Vec::new(), jumped_ns: None }
    }

    pub fn moment(&self, now_ns: u64) -> Moment {
        let went_ns = self.stands_since_ns.unwrap_or(now_ns) - self.lacks_ns();
        Moment { ns: self.start_ns + (u128::from(went_ns) * u128::from(self.rate) / 1_000_000) as u64 }
    }

    /// The true time at which the clock will show `moment`, or just after, if it does not stand until then.
    pub fn true_ns(&self, moment: Moment) -> u64 {
        let passed = u128::from(moment.ns.saturating_sub(self.start_ns));
        (passed * 1_000_000).div_ceil(u128::from(self.rate)) as u64 + self.lacks_ns()
    }

    fn lacks_ns(&self) -> u64 {
        self.stops.iter().map(|(_, ns)| ns).sum()
    }

    pub fn stands(&self) -> bool {
        self.stands_since_ns.is_some()
    }

    pub fn stop(&mut self, now_ns: u64) {
        self.stands_since_ns = self.stands_since_ns.or(Some(now_ns));
    }

    /// It goes again. `jumps`: it shows what it would show if it had never stood; otherwise it goes on from where it stood.
    pub fn go(&mut self, now_ns: u64, jumps: bool) {
        let Some(since_ns) = self.stands_since_ns else { return };
        if jumps {
            self.jumped_ns = Some(now_ns);
        } else {
            self.stops.push((self.moment(now_ns), now_ns - since_ns));
        }
        self.stands_since_ns = None;
    }

    pub fn jumped_since(&self, ns: u64) -> bool {
        self.jumped_ns.is_some_and(|at| at >= ns)
    }

    /// The moment that the clock would show if it had not stood still since it showed `since`.
    pub fn sound_moment(&self, since: Moment, now_ns: u64) -> Moment {
        let stood_ns = self.stands_since_ns.map_or(0, |since_ns| now_ns - since_ns);
        let later = self.stops.iter().filter(|(at, _)| *at >= since).map(|(_, ns)| ns).sum::<u64>();
        let lost_ns = u128::from(stood_ns + later) * u128::from(self.rate) / 1_000_000;
        Moment { ns: self.moment(now_ns).ns + lost_ns as u64 }
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

    #[test]
    fn a_clock_that_stood_jumps_or_goes_on_from_there() {
        let second = |number: u64| number * 1_000_000_000;
        let mut jumping = Clock::new(77, 1_000_000);
        jumping.stop(second(5));
        let mut other = jumping.clone();
        assert_eq!(jumping.moment(second(8)), jumping.moment(second(5)));
        assert_eq!(jumping.sound_moment(Moment { ns: 0 }, second(8)).ns, 77 + second(8));
        jumping.go(second(8), true);
        other.go(second(8), false);
        assert_eq!(
            (jumping.moment(second(9)).ns, other.moment(second(9)).ns),
            (77 + second(9), 77 + second(6))
        );
        assert_eq!(other.true_ns(Moment { ns: 77 + second(7) }), second(10));
        let (before, after) = (other.moment(second(4)), other.moment(second(9)));
        assert_eq!(other.sound_moment(before, second(10)).ns, 77 + second(10));
        assert_eq!(other.sound_moment(after, second(10)), other.moment(second(10)));
    }
}
