//! The mean of the durations of the last minute or more, out of sums that only grow.

use base::Moment;
use measures::Figures;
use parking_lot::Mutex;

/// A mean is taken over at least so much time.
const WINDOW_MS: u64 = 60_000;

/// The sums at two looks: the mean is taken since the older one.
#[derive(Debug, Default)]
pub struct Lately(Mutex<[Seen; 2]>);

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    at: Option<Moment>,
    count: u64,
    sum_ns: u64,
}

impl Lately {
    /// The mean in milliseconds since the look before last that was taken at least a minute ago, or since the start; `None` if nothing has happened
    /// since.
    pub fn mean_ms(&self, figures: &Figures, now: Moment) -> Option<u64> {
        let mut seen = self.0.lock();
        let [older, newer] = *seen;
        let mean_ns = figures
            .sum_ns
            .saturating_sub(older.sum_ns)
            .checked_div(figures.count().saturating_sub(older.count));
        if newer.at.is_none_or(|at| now.ms_since(at) >= WINDOW_MS) {
            *seen = [newer, Seen { at: Some(now), count: figures.count(), sum_ns: figures.sum_ns }];
        }
        mean_ns.map(|ns| ns / 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_slow_long_ago_is_forgotten() {
        let (times, lately) = (measures::Times::default(), Lately::default());
        let at = Moment::from_ms;
        assert_eq!(lately.mean_ms(&times.figures(), at(0)), None);
        times.record_ns(4_000_000_000);
        assert_eq!(lately.mean_ms(&times.figures(), at(1_000)), Some(4_000));
        assert_eq!(lately.mean_ms(&times.figures(), at(60_000)), Some(4_000));
        times.record_ns(2_000_000);
        assert_eq!(lately.mean_ms(&times.figures(), at(120_000)), Some(2_001));
        times.record_ns(2_000_000);
        assert_eq!(lately.mean_ms(&times.figures(), at(120_001)), Some(2));
    }
}
