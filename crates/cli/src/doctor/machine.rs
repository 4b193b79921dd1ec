//! Checks of this machine, by what its system tells.

use super::check::{Check, Outcome};
use crate::admin::size;
use std::{fs, net::ToSocketAddrs, path::PathBuf, process::Command};

/// A server with fewer file descriptors refuses connections on a busy day.
const DESCRIPTORS_MIN: u64 = 65_536;
/// Of the memory, in percent.
const MEMORY_FREE_MIN: u64 = 10;

pub fn checks() -> Vec<Check> {
    let mut checks = descriptors();
    if let Ok(text) = fs::read_to_string("/proc/meminfo") {
        checks.extend(memory(&text));
    }
    if let Ok(text) = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled") {
        checks.push(huge_pages(&text));
    }
    checks.push(clock());
    checks.push(own_name());
    checks
}

/// The servers that run here, else this shell, whose limit a server would get that is started from it.
fn descriptors() -> Vec<Check> {
    let servers = servers();
    let limits = |pid: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        descriptor_limit(&text)
    };
    let mut checks: Vec<Check> = servers
        .iter()
        .filter_map(|(pid, role)| {
            Some(descriptor_check(format!("file descriptors of clover {role} ({pid})"), limits(pid)?))
        })
        .collect();
    if checks.is_empty() {
        checks.extend(limits("self").map(|limit| descriptor_check("file descriptors here".into(), limit)));
    }
    checks
}

fn descriptor_check(name: String, limit: u64) -> Check {
    let found = if limit == u64::MAX { "unlimited".to_owned() } else { limit.to_string() };
    Check::new(name, format!("{DESCRIPTORS_MIN} or more"), found).unless(
        limit >= DESCRIPTORS_MIN,
        Outcome::Warning,
        "Set LimitNOFILE=1048576 in the unit of the service, or `ulimit -n` before the start.",
    )
}

/// The soft limit in the text of `/proc/PID/limits`.
fn descriptor_limit(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// The servers of Clover on this machine: process ids with `meta`, `data` or `demo`.
pub fn servers() -> Vec<(String, String)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let told = processes.filter_map(|entry| {
        let pid = entry.file_name().into_string().ok().filter(|name| name.parse::<u32>().is_ok())?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some((pid, role(&line)?))
    });
    let mut servers: Vec<_> = told.collect();
    servers.sort();
    servers
}

/// The role in a command line as `/proc` has it.
fn role(line: &[u8]) -> Option<String> {
    let mut words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let program = PathBuf::from(words.next()?.into_owned());
    if program.file_name()? != "clover" {
        return None;
    }
    let word = words.find(|word| !word.starts_with('-'))?;
    ["meta", "data", "demo"].contains(&&*word).then(|| word.into_owned())
}

fn memory(text: &str) -> Vec<Check> {
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
    };
    let mut checks = Vec::new();
    if let (Some(all), Some(free)) = (of("MemTotal"), of("MemAvailable")) {
        checks.push(
            Check::new(
                "memory available",
                format!("{MEMORY_FREE_MIN} % or more"),
                format!("{} of {}", size(free), size(all)),
            )
            .unless(
                free.saturating_mul(100) >= all.saturating_mul(MEMORY_FREE_MIN),
                Outcome::Warning,
                "End other programs, or add memory: docs/operating/sizing.md says how much a server needs.",
            ),
        );
    }
    if let (Some(all), Some(free)) = (of("SwapTotal"), of("SwapFree")) {
        let used = all.saturating_sub(free);
        checks.push(Check::new("swap", "unused", format!("{} of {} used", size(used), size(all))).unless(
            used == 0,
            Outcome::Warning,
            "A server that waits for swapped pages looks dead to others: `swapoff -a`, or vm.swappiness=1.",
        ));
    }
    checks
}

fn huge_pages(text: &str) -> Check {
    let found = text.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or("?").to_owned();
    let is_good = found != "always";
    Check::new("transparent huge pages", "madvise or never", found).unless(
        is_good,
        Outcome::Warning,
        "They make a server's memory larger than its data: write `madvise` to /sys/kernel/mm/transparent_hugepage/enabled.",
    )
}

/// By the programs that keep clocks.
fn clock() -> Check {
    let said = |program: &str, words: &[&str]| {
        let output =
            Command::new(program).args(words).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let is_kept =
        said("chronyc", &["-n", "tracking"]).map(|text| !text.contains("Not synchronised")).or_else(|| {
            let text = said("timedatectl", &["show", "--property=NTPSynchronized", "--value"])?;
            Some(text.trim() == "yes")
        });
    let found = match is_kept {
        Some(true) => "synchronised",
        Some(false) => "not synchronised",
        None => "neither chronyc nor timedatectl answers",
    };
    let outcome = if is_kept.is_none() { Outcome::Unknown } else { Outcome::Warning };
    Check::new("clock of this machine", "synchronised", found).unless(
        is_kept == Some(true),
        outcome,
        "Install chrony, or have another NTP client keep the clock.",
    )
}

/// The name of this machine leads to an address, and the address back to the name.
fn own_name() -> Check {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    let required = "leads to an address and back";
    let address = (name.as_str(), 0).to_socket_addrs().ok().and_then(|mut all| all.next()).map(|it| it.ip());
    let Some(address) = address else {
        return Check::new("name of this machine", required, format!("{name} has no address")).unless(
            false,
            Outcome::Warning,
            "Name it in DNS or in /etc/hosts: data servers are known by their names.",
        );
    };
    let output = Command::new("getent").args(["hosts", &address.to_string()]).output();
    let back = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let is_back = is_named(&back, &name);
    let found = match is_back {
        true => format!("{name} is {address} and back"),
        false => {
            format!("{name} is {address}, and that is {}", back.split_whitespace().nth(1).unwrap_or("nobody"))
        }
    };
    Check::new("name of this machine", required, found).unless(
        is_back,
        Outcome::Warning,
        "Have DNS or /etc/hosts name the address by this name first.",
    )
}

/// Whether a line of `getent hosts` has a name, in full or without its domain.
fn is_named(line: &str, name: &str) -> bool {
    let first = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    line.split_whitespace().skip(1).any(|known| known == name || first(known) == first(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_texts_are_understood() {
        let limits = "Limit   Soft Limit  Hard Limit  Units\nMax open files            1024                 524288      files\n";
        assert_eq!(descriptor_limit(limits), Some(1_024));
        assert_eq!(descriptor_limit("Max open files  unlimited unlimited files"), Some(u64::MAX));
        assert_eq!(descriptor_limit(""), None);
        assert_eq!(role(b"/usr/bin/clover\0meta\0--config\0x\0").as_deref(), Some("meta"));
        assert_eq!(role(b"clover\0admin\0group\0"), None);
        assert_eq!(role(b"/bin/sh\0meta\0"), None);
        assert!(is_named("10.0.0.1  meta-1.example meta-1", "meta-1"));
        assert!(!is_named("10.0.0.1  other", "meta-1") && !is_named("", "meta-1"));
        assert_eq!(huge_pages("[always] madvise never").outcome, Outcome::Warning);
        assert_eq!(huge_pages("always [madvise] never").outcome, Outcome::Good);
    }

    #[test]
    fn little_memory_and_swap_in_use_are_warned_of() {
        let text = "MemTotal: 1000 kB\nMemAvailable: 99 kB\nSwapTotal: 100 kB\nSwapFree: 90 kB\n";
        let checks = memory(text);
        assert_eq!(checks.iter().map(|check| check.outcome).collect::<Vec<_>>(), [Outcome::Warning; 2]);
        assert_eq!(checks[1].found, "10.00 KiB of 100.00 KiB used");
        let text = "MemTotal: 1000 kB\nMemAvailable: 100 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n";
        assert!(memory(text).iter().all(|check| check.outcome == Outcome::Good));
    }
}
