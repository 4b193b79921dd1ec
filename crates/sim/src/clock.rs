//! Time that passes when the scenario says so.

use base::{Moment, Timestamp};
use env::Clock;
use parking_lot::Mutex;

pub struct SimClock(Mutex<Times>);

#[derive(Clone, Copy)]
struct Times {
    wall: Timestamp,
    moment: Moment,
}

impl SimClock {
    pub fn new() -> Self {
        Self(Mutex::new(Times { wall: Timestamp::from_ms(1_800_000_000_000), moment: Moment::default() }))
    }

    pub fn advance_ms(&self, ms: u64) {
        let mut times = self.0.lock();
        times.wall.ms += ms;
        times.moment = times.moment.plus_ms(ms);
    }

    /// Sets the wall clock, as an administrator may.
    pub fn jump_wall_to(&self, wall: Timestamp) {
        self.0.lock().wall = wall;
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SimClock {
    fn timestamp(&self) -> Timestamp {
        self.0.lock().wall
    }

    fn moment(&self) -> Moment {
        self.0.lock().moment
    }
}
