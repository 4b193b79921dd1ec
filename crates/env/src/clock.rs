//! Two clocks: one that people read, one that never goes back.

use base::{Moment, Timestamp};

pub trait Clock: Send + Sync {
    /// Wall-clock time; it may jump.
    fn timestamp(&self) -> Timestamp;
    /// Monotonic time that goes on while the machine sleeps (CLOCK_BOOTTIME).
    fn moment(&self) -> Moment;
}

/// The machine's clocks.
#[derive(Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    pub fn new() -> Self {
        Self
    }
}

impl Clock for SystemClock {
    fn timestamp(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_ms(since.as_millis() as u64)
    }

    fn moment(&self) -> Moment {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Moment { ns: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 }
    }
}
