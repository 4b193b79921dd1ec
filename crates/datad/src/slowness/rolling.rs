//! Times of the recent past, summed up in windows, as Hadoop's rolling averages are.

use base::Moment;
use std::collections::VecDeque;

/// The windows that a sum spans. When a new window begins, the oldest is dropped.
const WINDOWS: u64 = 36;

/// A sum of measurements over the last windows of time. Each window is `window_ns` nanoseconds long.
#[derive(Debug)]
pub struct Rolling {
    window_ns: u64,
    /// The latest last.
    windows: VecDeque<Window>,
}

#[derive(Debug)]
struct Window {
    number: u64,
    sum_ns: u64,
    count: u64,
}

/// The number and the mean of the measurements that are young enough to count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    pub count: u64,
    pub mean_ms: f64,
}

impl Rolling {
    /// Times count for `memory_ms`, or a thirty-sixth less.
    pub fn new(memory_ms: u64) -> Self {
        let window_ns = (memory_ms.saturating_mul(1_000_000) / WINDOWS).max(1);
        Self { window_ns, windows: VecDeque::new() }
    }

    /// Adds `count` measurements that took `sum_ns` together.
    pub fn add(&mut self, sum_ns: u64, count: u64, now: Moment) {
        let number = now.ns / self.window_ns;
        self.forget(number);
        match self.windows.back_mut().filter(|window| window.number >= number) {
            Some(window) => {
                window.sum_ns = window.sum_ns.saturating_add(sum_ns);
                window.count = window.count.saturating_add(count);
            }
            None => self.windows.push_back(Window { number, sum_ns, count }),
        }
    }

    pub fn measured(&mut self, now: Moment) -> Measured {
        self.forget(now.ns / self.window_ns);
        let count = self.windows.iter().fold(0, |sum: u64, window| sum.saturating_add(window.count));
        let sum_ns: f64 = self.windows.iter().map(|window| window.sum_ns as f64).sum();
        Measured { count, mean_ms: sum_ns / 1e6 / count.max(1) as f64 }
    }

    fn forget(&mut self, number: u64) {
        while self.windows.front().is_some_and(|window| window.number + WINDOWS <= number) {
            self.windows.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_mean_is_over_all_times_that_are_not_forgotten() {
        let mut rolling = Rolling::new(36_000);
        let at = Moment::from_ms;
        assert_eq!(rolling.measured(at(0)), Measured::default());
        rolling.add(100 * MS, 1, at(500));
        rolling.add(8 * MS, 4, at(1_500));
        assert_eq!(rolling.measured(at(35_999)), Measured { count: 5, mean_ms: 21.6 });
        assert_eq!(rolling.measured(at(36_000)), Measured { count: 4, mean_ms: 2.0 });
        assert_eq!(rolling.measured(at(37_000)), Measured::default());
    }

    /// The memory may be shorter than a window can be, and the clock may be read by two threads in either order.
    #[test]
    fn a_short_memory_and_a_late_thread_are_no_trouble() {
        let mut rolling = Rolling::new(0);
        rolling.add(MS, 1, Moment { ns: 1_000 });
        rolling.add(3 * MS, 1, Moment { ns: 999 });
        assert_eq!(rolling.measured(Moment { ns: 1_000 }), Measured { count: 2, mean_ms: 2.0 });
        rolling.add(u64::MAX, u64::MAX, Moment { ns: 1_001 });
        rolling.add(u64::MAX, u64::MAX, Moment { ns: 1_001 });
        assert!(rolling.measured(Moment { ns: 1_001 }).mean_ms.is_finite());
        assert!(rolling.windows.len() <= WINDOWS as usize);
    }
}
