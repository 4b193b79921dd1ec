//! Whether a shape fits into the memory of this machine.

use super::stage::Kind;

const MIB: u64 = 1 << 20;
/// What a server of Clover's takes, with the names that a bench makes.
const SERVER: u64 = 256 * MIB;
/// Hadoop's JVMs: their heaps, and what they take beside.
const NAME_NODE: u64 = 2_560 * MIB;
const JOURNAL_NODE: u64 = 512 * MIB;

/// What the servers of a shape need.
pub fn needed(kind: Kind) -> u64 {
    match kind {
        Kind::Clover { groups, members } => u64::from(groups * members) * SERVER,
        Kind::Hadoop => NAME_NODE,
        Kind::HadoopHa => 2 * NAME_NODE + 3 * JOURNAL_NODE,
    }
}

/// The bytes that programs can have now. `None` if the system does not tell.
pub fn available() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Why a shape is left out.
pub fn obstacle(kind: Kind, available: Option<u64>) -> Option<String> {
    let (needed, available) = (needed(kind), available?);
    (needed > available).then(|| {
        format!(
            "its servers need about {} MiB of memory, and {} MiB are available",
            needed / MIB,
            available / MIB
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_that_does_not_fit_is_told_with_the_reason() {
        let text = "MemTotal:       24000000 kB\nMemFree: 1 kB\nMemAvailable:    2097152 kB\n";
        assert_eq!(parse(text), Some(2048 * MIB));
        let wide = obstacle(Kind::Clover { groups: 6, members: 4 }, parse(text)).unwrap_or_default();
        assert!(wide.contains("need about 6144 MiB") && wide.contains("2048 MiB are available"), "{wide}");
        assert_eq!(obstacle(Kind::Clover { groups: 2, members: 4 }, parse(text)), None);
        assert_eq!(obstacle(Kind::HadoopHa, None), None);
    }
}
