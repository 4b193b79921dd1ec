//! How long the calls of an RPC port take, as Prometheus reads it.

use crate::times::put_times;
use measures::{MethodFigures, STAGES};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter},
};
use std::fmt;

/// Writes `…_call_seconds`, by protocol, method and stage, and `…_calls_refused` behind `prefix`.
///
/// # Errors
/// The text that is written to takes no more.
pub fn put_calls(
    encoder: &mut DescriptorEncoder<'_>,
    prefix: &str,
    methods: &[MethodFigures],
) -> fmt::Result {
    let sets = methods.iter().flat_map(|of| {
        let stages = STAGES.into_iter().zip(&of.stages);
        stages.map(|(stage, figures)| {
            let labels = vec![("protocol", short(of.protocol)), ("method", of.method), ("stage", stage)];
            (labels, figures)
        })
    });
    let help = "How long calls of a method waited for a thread (queue), had one until they were answered (processing), and both (total)";
    put_times(encoder, (&format!("{prefix}_call_seconds"), help), sets)?;
    if methods.iter().all(|of| of.refused == 0) {
        return Ok(());
    }
    let help = "Calls of a method that were answered by an error";
    let name = format!("{prefix}_calls_refused");
    let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
    for of in methods.iter().filter(|of| of.refused > 0) {
        let labels = [("protocol", short(of.protocol)), ("method", of.method)];
        ConstCounter::new(of.refused).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// The last part of a protocol's name: no two have the same.
fn short(protocol: &str) -> &str {
    protocol.rsplit('.').next().unwrap_or(protocol)
}
