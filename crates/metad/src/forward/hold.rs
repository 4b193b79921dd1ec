//! How many calls may be here at a time, waiting or on their way.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Bounds of what one member holds for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldLimits {
    pub count_max: u64,
    pub bytes_max: u64,
    /// How long a call may wait for an active, from its arrival here.
    pub wait_ms: u64,
}

impl Default for HoldLimits {
    fn default() -> Self {
        // Chosen by eye: every client of a large cluster with a call or two, in a memory that a switch may cost.
        Self { count_max: 100_000, bytes_max: 256 << 20, wait_ms: 8_000 }
    }
}

/// The calls that are here.
#[derive(Debug, Default)]
pub struct Hold {
    count: AtomicU64,
    bytes: AtomicU64,
}

impl Hold {
    /// Room for a call of so many bytes, until the ticket is dropped. `None` where there is none.
    pub fn enter(self: &Arc<Self>, limits: &HoldLimits, bytes: u64) -> Option<Ticket> {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let held = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let ticket = Ticket { hold: Arc::clone(self), bytes };
        // One call is always let in, however large: it has passed the limit of a frame.
        let fits = count < limits.count_max && (held == 0 || held + bytes <= limits.bytes_max);
        fits.then_some(ticket)
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// A call's room.
#[derive(Debug)]
pub struct Ticket {
    hold: Arc<Hold>,
    bytes: u64,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.hold.count.fetch_sub(1, Ordering::Relaxed);
        self.hold.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_count_nor_bytes_go_over_their_bounds_and_room_comes_back() {
        let limits = HoldLimits { count_max: 2, bytes_max: 100, wait_ms: 1 };
        let hold = Arc::new(Hold::default());
        let first = hold.enter(&limits, 60).unwrap();
        assert!(hold.enter(&limits, 41).is_none(), "101 bytes");
        let second = hold.enter(&limits, 40).unwrap();
        assert!(hold.enter(&limits, 0).is_none(), "a third call");
        assert_eq!((hold.count(), hold.bytes()), (2, 100));
        drop((first, second));
        assert_eq!((hold.count(), hold.bytes()), (0, 0));
        assert!(hold.enter(&limits, 1_000).is_some(), "a large call alone");
    }
}
