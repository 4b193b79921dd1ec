//! The process itself, under the names that Prometheus's own libraries give to these numbers.

use procfs::WithCurrentSystemInfo;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use std::fmt;

/// Writes `process_…` and `clover_build_info`. A number that the system does not tell is left out, as Prometheus's libraries do.
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

    let Ok(process) = procfs::process::Process::myself() else { return Ok(()) };
    if let Ok(stat) = process.stat() {
        let ticks_per_second = procfs::ticks_per_second() as f64;
        let cpu_s = ConstCounter::new((stat.utime + stat.stime) as f64 / ticks_per_second);
        let help = "Time on processors";
        cpu_s.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, cpu_s.metric_type())?)?;
        gauge(encoder, "process_resident_memory_bytes", "Memory in use", stat.rss_bytes().get() as f64)?;
        gauge(encoder, "process_virtual_memory_bytes", "Memory that is mapped", stat.vsize as f64)?;
        gauge(encoder, "process_threads", "Threads", stat.num_threads as f64)?;
        if let Ok(boot_s) = procfs::boot_time_secs() {
            let start_s = boot_s as f64 + stat.starttime as f64 / ticks_per_second;
            gauge(encoder, "process_start_time_seconds", "When the process began, since 1970", start_s)?;
        }
    }
    if let Ok(open) = process.fd_count() {
        gauge(encoder, "process_open_fds", "Open file descriptors", open as f64)?;
    }
    if let Ok(limits) = process.limits()
        && let procfs::process::LimitValue::Value(most) = limits.max_open_files.soft_limit
    {
        gauge(encoder, "process_max_fds", "File descriptors that the process may have", most as f64)?;
    }
    Ok(())
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
}
