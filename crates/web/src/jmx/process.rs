//! The beans of Java itself, as far as they are true of a process without Java.

use super::{Beans, Counters, Record};
use crate::stacks::java_word;
use env::{Clock, ProcessFacts, SystemClock, threads};
use proto::bean;
use serde_json::{Value, json};
use std::cell::LazyCell;

/// The record `JvmMetrics`.
const JVM: Record = Record {
    name: "JvmMetrics",
    counters: Counters::Only(&[
        "GcCount",
        "GcTimeMillis",
        "GcNumWarnThresholdExceeded",
        "GcNumInfoThresholdExceeded",
        "GcTotalExtraSleepTime",
    ]),
};

/// `JvmMetrics` of a service (`NameNode`, `DataNode`) and Java's own `Runtime`, `Memory` and `OperatingSystem`. The heap is the memory that the
/// process has in use; there is no garbage, so its collection takes no time.
pub fn put_process_beans(beans: &mut Beans<'_>, service: &str, facts: impl FnOnce() -> ProcessFacts) {
    let facts = LazyCell::new(facts);
    let name = format!("Hadoop:service={service},name=JvmMetrics");
    beans.put_record(name, JVM, "JvmMetrics", || jvm(service, &facts));
    beans.put("java.lang:type=Runtime".to_owned(), bean::RUNTIME, || runtime(&facts));
    beans.put("java.lang:type=Memory".to_owned(), bean::MEMORY, || memory(&facts));
    beans.put("java.lang:type=OperatingSystem".to_owned(), bean::OPERATING_SYSTEM, || system(&facts));
}

fn jvm(service: &str, facts: &ProcessFacts) -> Value {
    let mebibytes = |bytes: u64| json!(bytes as f64 / f64::from(1 << 20));
    let states = threads::states();
    let in_state = |java: &str| -> u64 {
        states.iter().filter(|(state, _)| java_word(*state) == java).map(|(_, count)| count).sum()
    };
    let mut jvm = json!({
        "tag.Context": "jvm",
        "tag.ProcessName": service,
        "tag.SessionId": null,
        "tag.Hostname": facts.host_name,
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
        "ThreadsRunnable": in_state("RUNNABLE"),
        "ThreadsBlocked": in_state("BLOCKED"),
        "ThreadsWaiting": in_state("WAITING"),
        // The system does not tell a wait with an end from one without.
        "ThreadsTimedWaiting": 0,
        "ThreadsTerminated": in_state("TERMINATED"),
    });
    if service == "NameNode" {
        // Hadoop's DataNode does not watch its collections.
        jvm["GcTimePercentage"] = 0.into();
    }
    jvm
}

fn runtime(facts: &ProcessFacts) -> Value {
    let now_ms = SystemClock.timestamp().ms;
    json!({
        "Name": format!("{}@{}", std::process::id(), facts.host_name),
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
    })
}

fn memory(facts: &ProcessFacts) -> Value {
    let usage =
        |used: u64, max: i64| -> Value { json!({ "committed": used, "init": 0, "max": max, "used": used }) };
    json!({
        "HeapMemoryUsage": usage(facts.resident_bytes, facts.memory_bytes as i64),
        "NonHeapMemoryUsage": usage(0, -1),
        "ObjectPendingFinalizationCount": 0,
        "Verbose": false,
        "ObjectName": "java.lang:type=Memory",
    })
}

fn system(facts: &ProcessFacts) -> Value {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    json!({
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
    })
}
