//! The last hour of a server's calls, as a ring of samples.

use parking_lot::Mutex;
use std::{collections::VecDeque, time::Duration};

/// The time from one sample to the next.
pub const PERIOD: Duration = Duration::from_secs(5);
/// An hour of samples; 30 KiB.
const SAMPLES_MAX: usize = 720;
/// Ranges of durations, each a fifth longer than the one before: from 10 µs to a minute.
const RANGES: usize = 87;

/// The durations at which ranges end, in nanoseconds.
pub fn bounds_ns() -> Vec<u64> {
    (0..RANGES as i32).map(|power| (10_000.0 * 1.2f64.powi(power)) as u64).collect()
}

/// All calls since a server's start: how many lasted up to each bound, and longer than all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    pub counts: Vec<u64>,
}

/// Some seconds of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The end, in milliseconds since 1970.
    pub at_ms: u64,
    pub per_second: f64,
    /// The durations that half of the calls, and 99 of 100, did not exceed. `None`: there were no calls.
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
}

#[derive(Debug, Default)]
pub struct History {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The counts at the last look, and its time in milliseconds.
    last: Option<(u64, Calls)>,
    samples: VecDeque<Sample>,
}

impl History {
    /// Takes note of the counts at a time in milliseconds since 1970. Counts that have fallen are those of a new server.
    pub fn note(&self, at_ms: u64, calls: Calls) {
        let mut kept = self.kept.lock();
        let sample =
            kept.last.as_ref().and_then(|(before_ms, before)| between(*before_ms, before, at_ms, &calls));
        kept.last = Some((at_ms, calls));
        if let Some(sample) = sample {
            kept.samples.push_back(sample);
            if kept.samples.len() > SAMPLES_MAX {
                kept.samples.pop_front();
            }
        }
    }

    pub fn samples(&self) -> Vec<Sample> {
        self.kept.lock().samples.iter().copied().collect()
    }
}

fn between(before_ms: u64, before: &Calls, at_ms: u64, calls: &Calls) -> Option<Sample> {
    let ms = at_ms.checked_sub(before_ms).filter(|ms| *ms > 0)?;
    if before.counts.len() != calls.counts.len() {
        return None;
    }
    let pairs = calls.counts.iter().zip(&before.counts);
    let counts: Vec<u64> = pairs.map(|(now, then)| now.checked_sub(*then)).collect::<Option<_>>()?;
    let total: u64 = counts.iter().sum();
    let per_second = total as f64 * 1_000.0 / ms as f64;
    let quantile = |share| quantile_ns(&counts, total, share);
    Some(Sample { at_ms, per_second, p50_ns: quantile(0.5), p99_ns: quantile(0.99) })
}

/// The end of the range in which the call stands behind which `share` of all calls are done.
fn quantile_ns(counts: &[u64], total: u64, share: f64) -> Option<u64> {
    if total == 0 {
        return None;
    }
    let wanted = ((total as f64 * share).ceil() as u64).max(1);
    let mut seen = 0;
    let bounds = bounds_ns();
    for (at, count) in counts.iter().enumerate() {
        seen += count;
        if seen >= wanted {
            return bounds.get(at).or(bounds.last()).copied();
        }
    }
    bounds.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(short: u64, long: u64) -> Calls {
        let mut counts = vec![0; RANGES + 1];
        (counts[0], counts[RANGES]) = (short, long);
        Calls { counts }
    }

    #[test]
    fn a_sample_is_what_came_between_two_looks() {
        let history = History::default();
        history.note(1_000, calls(5, 0));
        assert!(history.samples().is_empty());
        history.note(6_000, calls(103, 2));
        history.note(11_000, calls(103, 2));
        let [busy, idle] = history.samples()[..] else { panic!("two samples") };
        assert_eq!((busy.at_ms, busy.per_second), (6_000, 20.0));
        assert_eq!(busy.p50_ns, Some(10_000));
        assert!(busy.p99_ns.unwrap() > 50_000_000_000, "{busy:?}");
        assert_eq!((idle.per_second, idle.p99_ns), (0.0, None));
    }

    #[test]
    fn a_server_that_begins_anew_and_a_clock_that_goes_back_give_no_sample() {
        let history = History::default();
        history.note(5_000, calls(100, 0));
        history.note(10_000, calls(3, 0));
        assert!(history.samples().is_empty());
        history.note(9_000, calls(4, 0));
        assert!(history.samples().is_empty());
        history.note(14_000, calls(14, 0));
        assert_eq!(history.samples()[0].per_second, 2.0);
    }

    #[test]
    fn an_hour_is_kept() {
        let history = History::default();
        (1..2_000).for_each(|second| history.note(second * 5_000, calls(second, 0)));
        let samples = history.samples();
        assert_eq!(samples.len(), SAMPLES_MAX);
        assert_eq!(samples.last().unwrap().at_ms, 1_999 * 5_000);
    }
}
