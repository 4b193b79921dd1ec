//! The machine that a report was made on.

use std::{fs, path::Path, process::Command};

pub struct Machine {
    /// Pairs of a name and what is known of it.
    pub facts: Vec<(&'static str, String)>,
}

impl Machine {
    /// `dir`: where the servers keep their files.
    pub fn look(dir: &Path) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let processors = read("/proc/cpuinfo");
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let java = Command::new("java").arg("-version").output();
        let java =
            java.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
        let facts = vec![
            ("processor", format!("{}, {cores} cores", value(&processors, "model name"))),
            ("memory", value(&read("/proc/meminfo"), "MemTotal")),
            ("system", format!("Linux {}", read("/proc/sys/kernel/osrelease").trim())),
            ("file system", file_system(&read("/proc/self/mountinfo"), dir)),
            ("load when it began", read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" ")),
            ("Java", java.lines().next().unwrap_or("none").to_owned()),
            ("Clover", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        Self { facts }
    }
}

/// The first value of a name in a list of `NAME : VALUE`.
fn value(text: &str, name: &str) -> String {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    let found = pairs.find(|(found, _)| found.trim() == name);
    found.map_or_else(|| "not known".to_owned(), |(_, value)| value.trim().to_owned())
}

/// The type of the file system that holds a directory.
fn file_system(mounts: &str, dir: &Path) -> String {
    let dir = fs::canonicalize(dir).unwrap_or_default();
    // 36 35 98:0 /root /mount/point options … - ext4 /dev/sda rw
    let mounts = mounts.lines().filter_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        Some((front.split(' ').nth(4)?, back.split(' ').next()?))
    });
    let holding = mounts.filter(|(point, _)| dir.starts_with(point));
    let last = holding.max_by_key(|(point, _)| point.len());
    last.map_or_else(|| "not known".to_owned(), |(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_what_the_system_tells() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Another\n";
        assert_eq!(value(text, "model name"), "Some CPU @ 2 GHz");
        assert_eq!(value(text, "colour"), "not known");
        let mounts = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /proc rw shared:3 - proc proc rw\n";
        assert_eq!(file_system(mounts, Path::new("/proc/self")), "proc");
        assert_eq!(file_system(mounts, Path::new("/usr")), "ext4");
    }
}
