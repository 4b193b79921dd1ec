//! Facts about this process and this machine, read from the operating system, for monitoring pages.

use procfs::{Current, LoadAverage, Meminfo, WithCurrentSystemInfo, process::Process};

/// The process and its machine at one moment. A number that the system does not tell is 0.
#[derive(Clone, Debug, Default)]
pub struct ProcessFacts {
    /// Memory in use, and memory that is mapped.
    pub resident_bytes: u64,
    pub mapped_bytes: u64,
    pub threads: u64,
    /// Time on processors.
    pub cpu_ns: u64,
    /// When the process began, in milliseconds since 1970.
    pub started_ms: u64,
    pub open_files: u64,
    /// How many files may be open.
    pub files_max: u64,
    /// The machine's memory.
    pub memory_bytes: u64,
    pub free_bytes: u64,
    pub swap_bytes: u64,
    pub swap_free_bytes: u64,
    /// The machine's mean load of the last minute.
    pub load: f32,
    pub host_name: String,
    /// The release of the system's kernel.
    pub kernel: String,
    /// When the file of the program was made, in milliseconds since 1970.
    pub program_ms: u64,
}

impl ProcessFacts {
    pub fn now() -> Self {
        let mut facts = Self::default();
        if let Ok(process) = Process::myself() {
            if let Ok(stat) = process.stat() {
                let ticks = procfs::ticks_per_second();
                facts.resident_bytes = stat.rss_bytes().get();
                facts.mapped_bytes = stat.vsize;
                facts.threads = stat.num_threads as u64;
                facts.cpu_ns = (stat.utime + stat.stime).saturating_mul(1_000_000_000 / ticks);
                let booted_ms = procfs::boot_time_secs().unwrap_or_default() * 1_000;
                facts.started_ms = booted_ms + stat.starttime * 1_000 / ticks;
            }
            facts.open_files = process.fd_count().unwrap_or_default() as u64;
            if let Ok(limits) = process.limits()
                && let procfs::process::LimitValue::Value(most) = limits.max_open_files.soft_limit
            {
                facts.files_max = most;
            }
        }
        if let Ok(memory) = Meminfo::current() {
            facts.memory_bytes = memory.mem_total;
            facts.free_bytes = memory.mem_free;
            (facts.swap_bytes, facts.swap_free_bytes) = (memory.swap_total, memory.swap_free);
        }
        (facts.host_name, facts.kernel) = (told("hostname"), told("osrelease"));
        facts.program_ms = program_ms().unwrap_or_default();
        facts.load = LoadAverage::current().map(|load| load.one).unwrap_or_default();
        facts
    }
}

/// The file is found even if another one has its name by now.
fn program_ms() -> Option<u64> {
    let made = std::fs::metadata("/proc/self/exe").and_then(|file| file.modified()).ok()?;
    Some(made.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis() as u64)
}

/// A fact of `/proc/sys/kernel`.
fn told(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_of_this_process() {
        let facts = ProcessFacts::now();
        assert!(facts.resident_bytes > 0 && facts.mapped_bytes >= facts.resident_bytes && facts.threads > 0);
        assert!(facts.started_ms > 1_600_000_000_000 && facts.open_files > 2 && facts.memory_bytes > 0);
        assert!(facts.program_ms > 1_600_000_000_000 && facts.program_ms <= facts.started_ms + 60_000);
        assert!(!facts.host_name.is_empty() && !facts.kernel.is_empty());
    }
}
