//! The beans of Java itself, as far as they are true of a process without Java.

use super::Bean;
use env::{Clock, ProcessFacts, SystemClock};
use proto::bean;
use serde_json::{Value, json};

/// `JvmMetrics` of a service (`NameNode`, `DataNode`) and Java's own `Runtime`, `Memory` and `OperatingSystem`. The heap is the memory that the
/// process has in use; there is no garbage, so its collection takes no time.
pub fn process_beans(service: &str, facts: &ProcessFacts) -> Vec<Bean> {
    let host = &facts.host_name;
    let mebibytes = |bytes: u64| json!(bytes as f64 / f64::from(1 << 20));
    let now_ms = SystemClock.timestamp().ms;
    let memory =
        |used: u64, max: i64| -> Value { json!({ "committed": used, "init": 0, "max": max, "used": used }) };
    let mut jvm = json!({
        "tag.Context": "jvm",
        "tag.ProcessName": service,
        "tag.SessionId": null,
        "tag.Hostname": host,
        "MemNonHeapUsedM": 0.0,
        "MemNonHeapCommittedM": 0.0,
        "MemNonHeapMaxM": -1.0,
        "MemHeapUsedM": mebibytes(facts.resident_bytes),
        "MemHeapCommittedM": mebibytes(facts.resident_bytes),
        "MemHeapMaxM": mebibytes(facts.memory_bytes),
        "MemMaxM": mebibytes(facts.memory_bytes),
        "GcCount": 0,
        "GcTimeMillis": 0,
        "GcNumWarnThresholdExceeded": 0,
        "GcNumInfoThresholdExceeded": 0,
        "GcTotalExtraSleepTime": 0,
        "ThreadsNew": 0,
        "ThreadsRunnable": facts.threads,
        "ThreadsBlocked": 0,
        "ThreadsWaiting": 0,
        "ThreadsTimedWaiting": 0,
        "ThreadsTerminated": 0,
    });
    if service == "NameNode" {
        // Hadoop's DataNode does not watch its collections.
        jvm["GcTimePercentage"] = 0.into();
    }
    let runtime = json!({
        "Name": format!("{}@{host}", std::process::id()),
        "Pid": std::process::id(),
        "StartTime": facts.started_ms,
        "Uptime": now_ms.saturating_sub(facts.started_ms),
        "VmName": "Clover (no Java)",
        "VmVendor": "Clover",
        "VmVersion": env!("CARGO_PKG_VERSION"),
        "SpecName": "Clover",
        "SpecVendor": "Clover",
        "SpecVersion": env!("CARGO_PKG_VERSION"),
        "ObjectName": "java.lang:type=Runtime",
    });
    let heap = json!({
        "HeapMemoryUsage": memory(facts.resident_bytes, facts.memory_bytes as i64),
        "NonHeapMemoryUsage": memory(0, -1),
        "ObjectPendingFinalizationCount": 0,
        "Verbose": false,
        "ObjectName": "java.lang:type=Memory",
    });
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let system = json!({
        "Name": "Linux",
        "Arch": if cfg!(target_arch = "x86_64") { "amd64" } else { std::env::consts::ARCH },
        "Version": facts.kernel,
        "AvailableProcessors": processors,
        "SystemLoadAverage": facts.load,
        "SystemCpuLoad": (f64::from(facts.load) / processors as f64).min(1.0),
        "CpuLoad": (f64::from(facts.load) / processors as f64).min(1.0),
        "ProcessCpuTime": facts.cpu_ns,
        "OpenFileDescriptorCount": facts.open_files,
        "MaxFileDescriptorCount": facts.files_max,
        "CommittedVirtualMemorySize": facts.mapped_bytes,
        "TotalPhysicalMemorySize": facts.memory_bytes,
        "FreePhysicalMemorySize": facts.free_bytes,
        "TotalMemorySize": facts.memory_bytes,
        "FreeMemorySize": facts.free_bytes,
        "TotalSwapSpaceSize": facts.swap_bytes,
        "FreeSwapSpaceSize": facts.swap_free_bytes,
        "ObjectName": "java.lang:type=OperatingSystem",
    });
    vec![
        Bean::new(format!("Hadoop:service={service},name=JvmMetrics"), "JvmMetrics", jvm),
        Bean::new("java.lang:type=Runtime", bean::RUNTIME, runtime),
        Bean::new("java.lang:type=Memory", bean::MEMORY, heap),
        Bean::new("java.lang:type=OperatingSystem", bean::OPERATING_SYSTEM, system),
    ]
}
