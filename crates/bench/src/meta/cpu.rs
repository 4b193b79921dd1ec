//! The processor time that a process has spent, from the kernel's account in `/proc`.

use std::{collections::BTreeMap, fs, net::SocketAddr, path::PathBuf, time::Duration};

/// The unit of times in `/proc/*/stat` is USER_HZ, which Linux fixes at 100 towards programs.
const TICKS_A_SECOND: u64 = 100;

pub struct Process {
    directory: PathBuf,
}

impl Process {
    pub fn this() -> Process {
        Process { directory: PathBuf::from("/proc/self") }
    }

    /// A process by its number, while it runs.
    pub fn of(id: u32) -> Option<Process> {
        let directory = PathBuf::from(format!("/proc/{id}"));
        directory.exists().then_some(Process { directory })
    }

    /// The process of this machine that listens on the port of `address`, if it may be seen.
    pub fn listening_on(address: SocketAddr) -> Option<Process> {
        if !address.ip().is_loopback() {
            return None;
        }
        let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .flat_map(|table| listeners(&table, address.port()))
            .map(|inode| format!("socket:[{inode}]"))
            .collect();
        fs::read_dir("/proc")
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit()))
            .find(|process| holds_one_of(process, &sockets))
            .map(|directory| Process { directory })
    }

    /// User and system time of all its threads so far.
    pub fn time(&self) -> Option<Duration> {
        let stat = fs::read_to_string(self.directory.join("stat")).ok()?;
        ticks(&stat).map(|ticks| Duration::from_millis(ticks * 1000 / TICKS_A_SECOND))
    }

    /// What it has spent so far, thread by thread. `None`: it has ended.
    pub fn account(&self) -> Option<Account> {
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir(self.directory.join("task")).ok()?.flatten() {
            let spent = fs::read_to_string(entry.path().join("schedstat")).ok();
            let spent = spent.and_then(|text| text.split(' ').next()?.parse().ok());
            threads.extend(spent.map(|spent| (entry.file_name(), Duration::from_nanos(spent))));
        }
        Some(Account { all: self.time()?, threads })
    }

    pub fn name(&self) -> String {
        let name = fs::read_to_string(self.directory.join("comm")).unwrap_or_default();
        let id = self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        format!("{} ({id})", name.trim())
    }
}

/// The account of a process at some moment.
#[derive(Clone, Debug)]
pub struct Account {
    /// Of all its threads, those that have ended too, in ticks of 10 ms.
    all: Duration,
    /// Of the threads that run, to the nanosecond.
    threads: BTreeMap<std::ffi::OsString, Duration>,
}

/// Sums of ticks are wrong by so much: two times are cut off, before and after.
const TICKS_LOST_MAX: Duration = Duration::from_millis(2 * 2 * 1000 / TICKS_A_SECOND);

impl Account {
    /// What was spent since an earlier account: to the nanosecond, unless threads have ended with a good part of it.
    pub fn since(&self, earlier: &Account) -> Duration {
        let thread = |(name, spent): (&std::ffi::OsString, &Duration)| {
            spent.saturating_sub(earlier.threads.get(name).copied().unwrap_or_default())
        };
        let exact: Duration = self.threads.iter().map(thread).sum();
        let ticks = self.all.saturating_sub(earlier.all);
        match exact + TICKS_LOST_MAX < ticks {
            true => ticks,
            false => exact,
        }
    }
}

/// The inodes of listening sockets of a port, from a table like `/proc/net/tcp`.
fn listeners(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let (local, state, inode) = (columns.get(1)?, columns.get(3)?, columns.get(9)?);
            (local.ends_with(&suffix) && *state == LISTEN).then(|| (*inode).to_owned())
        })
        .collect()
}

fn holds_one_of(process: &std::path::Path, sockets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    descriptors
        .flatten()
        .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
        .any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
}

/// The sum of the fields utime and stime. A process's name may contain anything, so fields count from the
/// last parenthesis.
fn ticks(stat: &str) -> Option<u64> {
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_found_by_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:2328 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 4711 1 0 100\n\
            1: 0100007F:2328 0100007F:C000 01 00000000:00000000 00:00000000 00000000  1000  0 4712 1 0 100\n";
        assert_eq!(listeners(table, 9000), ["4711"]);
        assert!(listeners(table, 9001).is_empty());
    }

    #[test]
    fn times_are_read_past_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 2 3 4 150 25 0 0 20 0";
        assert_eq!(ticks(stat), Some(175));
    }

    #[test]
    fn threads_are_counted_to_the_nanosecond_unless_some_have_ended() {
        let account = |all_ms, threads: &[(&str, u64)]| Account {
            all: Duration::from_millis(all_ms),
            threads: threads.iter().map(|(name, ns)| ((*name).into(), Duration::from_nanos(*ns))).collect(),
        };
        let before = account(1_000, &[("7", 400), ("8", 50)]);
        assert_eq!(account(1_010, &[("7", 405), ("9", 3)]).since(&before), Duration::from_nanos(8));
        assert_eq!(account(1_100, &[("7", 405)]).since(&before), Duration::from_millis(100));
    }

    #[test]
    fn a_listener_of_this_process_is_this_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let process = Process::listening_on(listener.local_addr().unwrap()).unwrap();
        assert_eq!(process.directory, PathBuf::from(format!("/proc/{}", std::process::id())));
        assert!(process.time().is_some());
    }
}
