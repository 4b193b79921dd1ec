//! Distributions of durations, as Prometheus reads them.

use measures::Figures;
use prometheus_client::{
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};
use std::fmt;

/// The ranges of all histograms of durations, by their upper ends in nanoseconds: from 10 us to 30 s, about three of one to the next.
const BOUNDS_NS: [u64; 14] = [
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    3_000_000_000,
    10_000_000_000,
    30_000_000_000,
];

/// Writes a histogram in seconds for each of `sets`, told apart by their labels. The name ends with `_seconds`. Without a set nothing is written.
///
/// # Errors
/// The text that is written to takes no more.
pub fn put_times<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    sets: impl IntoIterator<Item = (Vec<(&'a str, &'a str)>, &'a Figures)>,
) -> fmt::Result {
    let mut sets = sets.into_iter().peekable();
    if sets.peek().is_none() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (labels, figures) in sets {
        let upper_ends = BOUNDS_NS.iter().map(|bound| *bound as f64 / 1e9).chain([f64::MAX]);
        let buckets: Vec<(f64, u64)> = upper_ends.zip(figures.between(&BOUNDS_NS)).collect();
        let (sum_s, count) = (figures.sum_ns as f64 / 1e9, figures.count());
        match labels.is_empty() {
            true => family.encode_histogram::<NoLabelSet>(sum_s, count, &buckets, None)?,
            false => {
                let labels = labels.as_slice();
                family
                    .encode_family(&labels)?
                    .encode_histogram::<NoLabelSet>(sum_s, count, &buckets, None)?;
            }
        }
    }
    Ok(())
}
