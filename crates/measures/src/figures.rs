//! A copy of the measures at one moment.

use hdrhistogram::Histogram;

/// A distribution of durations at one moment.
#[derive(Clone, Debug)]
pub struct Figures {
    pub(crate) durations: Histogram<u64>,
    /// The sum of all durations, in nanoseconds.
    pub sum_ns: u64,
}

impl Default for Figures {
    fn default() -> Self {
        Self { durations: empty(), sum_ns: 0 }
    }
}

impl Figures {
    /// Takes another distribution in.
    pub fn add(&mut self, other: &Self) {
        self.durations.add(&other.durations).expect("all of them have one range");
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// How many durations there were.
    pub fn count(&self) -> u64 {
        self.durations.len()
    }

    /// The mean in nanoseconds; 0 if nothing was measured.
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns / self.count().max(1)
    }

    /// The duration in nanoseconds that the share `quantile` (0 to 1) of all durations did not exceed, to a sixteenth of it; 0 if
    /// nothing was measured.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        match self.count() {
            0 => 0,
            _ => self.durations.value_at_quantile(quantile),
        }
    }

    /// How many durations lie in each of the ranges that end at `bounds_ns`, in nanoseconds and rising. The last number counts the durations
    /// beyond all bounds. A duration near a bound may be counted on its other side: durations are known to a sixteenth.
    pub fn between(&self, bounds_ns: &[u64]) -> Vec<u64> {
        let mut counts = vec![0; bounds_ns.len() + 1];
        for step in self.durations.iter_recorded() {
            let at = bounds_ns.partition_point(|bound| *bound < step.value_iterated_to());
            counts[at] += step.count_since_last_iteration();
        }
        counts
    }
}

/// The shortest duration that is told from shorter ones, in nanoseconds.
const SHORTEST_NS: u64 = 1_000;

/// Longer durations count as this one, in nanoseconds.
pub(crate) const LONGEST_NS: u64 = 100_000_000_000;

pub(crate) fn empty() -> Histogram<u64> {
    // One significant digit takes 3 KiB.
    Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, 1).expect("these bounds are in order")
}
