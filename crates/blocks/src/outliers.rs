//! Which of several latencies are much higher than most of the others: HDFS's rule.
//!
//! A latency is an outlier if it is above a threshold, above three times the median of all, and above the median by three
//! times their median absolute deviation. That deviation is scaled so that it is the standard deviation where latencies are
//! distributed normally (Leys et al., Detecting outliers, 2013). With few latencies nothing is said.

use std::collections::BTreeMap;

/// From a median absolute deviation to a standard deviation.
const DEVIATION_SCALE: f64 = 1.4826;
/// An outlier is above the median by so many deviations.
const DEVIATIONS: f64 = 3.0;
/// An outlier is above so many medians. Where most latencies are alike, their deviation is next to nothing.
const MEDIANS: f64 = 3.0;

/// The numbers of the rule that an operator may set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// With fewer latencies there are no outliers.
    pub count_min: usize,
    /// A latency up to here, in milliseconds, is none.
    pub low_threshold_ms: f64,
}

/// A latency that is much higher than the others, and why it is one. All numbers are milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outlier {
    pub latency_ms: f64,
    pub median_ms: f64,
    /// The scaled median absolute deviation.
    pub deviation_ms: f64,
    /// Outliers are above this.
    pub limit_ms: f64,
}

impl Outlier {
    /// Whether all numbers are such as a measurement gives.
    pub fn is_sound(&self) -> bool {
        let numbers = [self.latency_ms, self.median_ms, self.deviation_ms, self.limit_ms];
        numbers.iter().all(|number| number.is_finite() && *number >= 0.0)
    }
}

impl Rule {
    /// The outliers among these latencies, in milliseconds.
    pub fn outliers<K: Clone + Ord>(&self, latencies: &BTreeMap<K, f64>) -> BTreeMap<K, Outlier> {
        if latencies.is_empty() || latencies.len() < self.count_min {
            return BTreeMap::new();
        }
        let median_ms = median(latencies.values().copied().collect());
        let distances = latencies.values().map(|latency| (latency - median_ms).abs()).collect();
        let deviation_ms = median(distances) * DEVIATION_SCALE;
        let limit_ms =
            self.low_threshold_ms.max(median_ms * MEDIANS).max(median_ms + deviation_ms * DEVIATIONS);
        let outlier = |latency_ms| Outlier { latency_ms, median_ms, deviation_ms, limit_ms };
        let above = latencies.iter().filter(|(_, latency)| **latency > limit_ms);
        above.map(|(name, latency)| (name.clone(), outlier(*latency))).collect()
    }
}

/// Of at least one number. Of an even count it is the mean of the two in the middle.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() % 2 {
        0 => f64::midpoint(numbers[middle - 1], numbers[middle]),
        _ => numbers[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { count_min: 5, low_threshold_ms: 5.0 };

    fn numbered(latencies: &[f64]) -> BTreeMap<usize, f64> {
        latencies.iter().copied().enumerate().collect()
    }

    fn found(latencies: &[f64]) -> Vec<usize> {
        RULE.outliers(&numbered(latencies)).into_keys().collect()
    }

    #[test]
    fn nothing_is_said_of_few() {
        assert_eq!(found(&[1.0, 1.0, 1.0, 900.0]), [0; 0]);
        assert_eq!(found(&[1.0, 1.0, 1.0, 1.0, 900.0]), [4]);
        assert!(Rule { count_min: 0, ..RULE }.outliers(&BTreeMap::<u8, f64>::new()).is_empty());
    }

    #[test]
    fn a_latency_below_the_threshold_is_no_outlier_whatever_the_others_are() {
        assert_eq!(found(&[0.1, 0.1, 0.1, 0.1, 5.0]), [0; 0]);
        assert_eq!(found(&[0.1, 0.1, 0.1, 0.1, 5.1]), [4]);
    }

    #[test]
    fn an_outlier_is_above_three_medians() {
        assert_eq!(found(&[10.0, 10.0, 10.0, 10.0, 30.0]), [0; 0]);
        assert_eq!(found(&[10.0, 10.0, 10.0, 10.0, 30.1]), [4]);
    }

    #[test]
    fn an_outlier_is_above_the_median_by_three_deviations() {
        // The median is 50, the median distance from it 40: the limit is 50 + 3 * 1.4826 * 40.
        let spread = [10.0, 10.0, 50.0, 90.0, 90.0];
        let limit = 50.0 + 3.0 * 1.4826 * 40.0;
        let with = |latency| [&spread[..], &[50.0, latency]].concat();
        assert_eq!(found(&with(limit - 0.1)), [0; 0]);
        assert_eq!(found(&with(limit + 0.1)), [6]);
        let outlier = RULE.outliers(&numbered(&with(500.0)))[&6];
        assert_eq!((outlier.latency_ms, outlier.median_ms), (500.0, 50.0));
        assert!((outlier.limit_ms - limit).abs() < 1e-9 && outlier.is_sound());
    }

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        assert_eq!(median(vec![4.0, 1.0]), 2.5);
        assert_eq!(median(vec![9.0, 1.0, 2.0]), 2.0);
    }

    #[test]
    fn numbers_that_no_measurement_gives_are_not_sound() {
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
            assert!(!Outlier { latency_ms: wrong, ..Outlier::default() }.is_sound());
            assert!(!Outlier { median_ms: wrong, ..Outlier::default() }.is_sound());
            assert!(!Outlier { deviation_ms: wrong, ..Outlier::default() }.is_sound());
            assert!(!Outlier { limit_ms: wrong, ..Outlier::default() }.is_sound());
        }
    }
}
