//! The process itself, under the names that Prometheus's own libraries give to these numbers.

use env::ProcessFacts;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use std::fmt;

/// Writes `process_…` and `clover_build_info`.
///
/// # Errors
/// The text that is written to takes no more.
pub fn put_process(encoder: &mut DescriptorEncoder<'_>, version: &str) -> fmt::Result {
    let build = [("version", version)];
    let one = ConstGauge::new(1_i64);
    let mut info = encoder.encode_descriptor(
        "clover_build_info",
        "The version of this program; the value is always 1",
        None,
        one.metric_type(),
    )?;
    one.encode(info.encode_family(&build)?)?;

    let facts = ProcessFacts::now();
    let cpu_s = ConstCounter::new(facts.cpu_ns as f64 / 1e9);
    let help = "Time on processors";
    cpu_s.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, cpu_s.metric_type())?)?;
    let gauges = [
        ("process_resident_memory_bytes", "Memory in use", facts.resident_bytes as f64),
        ("process_virtual_memory_bytes", "Memory that is mapped", facts.mapped_bytes as f64),
        ("process_threads", "Threads", facts.threads as f64),
        ("process_start_time_seconds", "When the process began, since 1970", facts.started_ms as f64 / 1e3),
        ("process_open_fds", "Open file descriptors", facts.open_files as f64),
        ("process_max_fds", "File descriptors that the process may have", facts.files_max as f64),
    ];
    gauges.into_iter().try_for_each(|(name, help, value)| gauge(encoder, name, help, value))
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}
