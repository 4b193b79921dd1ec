//! How long things of one kind take.

use crate::figures::{Figures, empty};
use hdrhistogram::Histogram;
use parking_lot::Mutex;

/// The durations of all things of one kind, since the start of the process.
#[derive(Debug)]
pub struct Times {
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    durations: Histogram<u64>,
    sum_ns: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self { kept: Mutex::new(Kept { durations: empty(), sum_ns: 0 }) }
    }
}

impl Times {
    /// Takes a duration in, in nanoseconds.
    pub fn record_ns(&self, duration_ns: u64) {
        let mut kept = self.kept.lock();
        kept.durations.saturating_record(duration_ns);
        kept.sum_ns = kept.sum_ns.saturating_add(duration_ns);
    }

    pub fn figures(&self) -> Figures {
        let kept = self.kept.lock();
        Figures { durations: kept.durations.clone(), sum_ns: kept.sum_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_summed_and_ranked() {
        let times = Times::default();
        for ms in 1..=100 {
            times.record_ns(ms * 1_000_000);
        }
        let figures = times.figures();
        assert_eq!((figures.count(), figures.sum_ns, figures.mean_ns()), (100, 5_050_000_000, 50_500_000));
        let near = |quantile, ms: u64| {
            let found = figures.quantile_ns(quantile);
            assert!(found.abs_diff(ms * 1_000_000) <= ms * 1_000_000 / 16, "{found} is not about {ms} ms");
        };
        near(0.5, 50);
        near(0.99, 99);
        let counts = figures.between(&[20_000_000, 50_000_000]);
        assert_eq!(counts.iter().sum::<u64>(), 100);
        assert!(counts[0].abs_diff(20) <= 2 && counts[1].abs_diff(30) <= 4, "{counts:?}");
    }

    #[test]
    fn durations_beyond_all_measure_count_as_the_longest() {
        let times = Times::default();
        times.record_ns(u64::MAX);
        times.record_ns(u64::MAX);
        times.record_ns(0);
        let figures = times.figures();
        assert_eq!((figures.count(), figures.sum_ns), (3, u64::MAX));
        assert_eq!(figures.between(&[1_000_000_000]), [1, 2]);
    }

    #[test]
    fn without_a_duration_all_figures_are_nothing() {
        let figures = Times::default().figures();
        assert_eq!((figures.count(), figures.mean_ns(), figures.quantile_ns(0.99)), (0, 0, 0));
        assert_eq!(figures.between(&[1]), [0, 0]);
    }
}
