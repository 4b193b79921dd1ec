//! Checks of what a server's configuration names on this machine: directories, ports, ZooKeeper.

use super::check::{Check, Outcome};
use crate::{
    admin::size,
    config::{self, settings::Settings},
    user,
};
use coord::ZooKeeperConfig;
use metad::config::CoordinatorConfig;
use std::{
    fs,
    io::{self, ErrorKind, Write},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How often a file is synced to see how long that takes.
const SYNCS: usize = 16;
/// Of a journal, and of a disk for blocks.
const JOURNAL_SYNC_MAX: Duration = Duration::from_millis(50);
const DATA_SYNC_MAX: Duration = Duration::from_millis(500);
/// Of a disk, in percent.
const FREE_MIN: u64 = 5;

/// The directories, ports and coordinator that a configuration file names, to be checked.
#[derive(Debug, Default)]
pub struct Places {
    directories: Vec<(PathBuf, Duration)>,
    ports: Vec<(&'static str, SocketAddr)>,
    zookeeper: Option<ZooKeeperConfig>,
}

impl Places {
    /// Reads them out of a server's configuration file.
    ///
    /// # Errors
    /// The file cannot be read, or no server would start with it.
    pub fn of(file: &Path) -> anyhow::Result<Self> {
        let text = Settings::text_of(file)?;
        let is_data = config::is_of_data_server(&text);
        let mut settings = Settings::defaults(if is_data { config::DATA } else { config::META });
        settings.read_toml(&text, &file.display().to_string())?;
        let mut places = Self::default();
        let user = user::of_this_process()?;
        let ports: &[&'static str] = if is_data {
            let all = config::data::config(&settings, &user)?;
            let directories = all.store.volumes.iter().map(|volume| volume.path.clone());
            places.directories.extend(directories.map(|path| (path, DATA_SYNC_MAX)));
            &["transfer_address", "ipc_address", "data_http_address"]
        } else {
            let all = config::meta::config(&settings, &user)?;
            places.directories.push((all.name_directory.clone(), JOURNAL_SYNC_MAX));
            if let CoordinatorConfig::ZooKeeper(zookeeper) = &all.group.coordinator {
                places.zookeeper = Some(zookeeper.clone());
            }
            &["rpc_address", "http_address", "peer_address"]
        };
        places.ports.extend(ports.iter().filter_map(|key| Some((*key, settings.address(key)?))));
        Ok(places)
    }

    /// Looks at all of it. It blocks.
    pub fn checks(&self) -> Vec<Check> {
        let mut checks: Vec<Check> =
            self.directories.iter().flat_map(|(path, sync_max)| directory(path, *sync_max)).collect();
        checks.extend(self.ports.iter().map(|(key, address)| port(key, *address)));
        if let Some(zookeeper) = &self.zookeeper {
            checks.extend(self::zookeeper(zookeeper));
        }
        checks
    }
}

fn directory(path: &Path, sync_max: Duration) -> Vec<Check> {
    let name = path.display();
    let missing = |found: String| {
        Check::new(format!("directory {name}"), "there, and writable", found).unless(
            false,
            Outcome::Failed,
            "Make it and give it to the user of the server; `clover meta format` makes that of a metadata server.",
        )
    };
    let mut took = match syncs(path) {
        Ok(took) => took,
        Err(error) => return vec![missing(error.to_string())],
    };
    took.sort();
    let (median, worst) = (took[took.len() / 2], took[took.len() - 1]);
    let ms = |of: Duration| format!("{:.1} ms", of.as_secs_f64() * 1_000.0);
    let mut checks = vec![
        Check::new(format!("directory {name}"), "there, and writable", "it is"),
        Check::new(
            format!("a sync in {name}"),
            format!("{} or less", ms(sync_max)),
            format!("{}, at worst {}", ms(median), ms(worst)),
        )
        .unless(
            median <= sync_max,
            Outcome::Warning,
            "Give it a disk of its own, or a faster one: every change waits for this.",
        ),
    ];
    if let Ok(room) = rustix::fs::statvfs(path) {
        let (all, free) = (room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize);
        checks.push(
            Check::new(
                format!("room in {name}"),
                format!("{FREE_MIN} % free"),
                format!("{} of {}", size(free), size(all)),
            )
            .unless(
                free.saturating_mul(100) >= all.saturating_mul(FREE_MIN),
                Outcome::Warning,
                "Make room on that disk.",
            ),
        );
    }
    checks
}

/// How long syncs of a small file take in a directory. The file is gone afterwards.
fn syncs(directory: &Path) -> io::Result<Vec<Duration>> {
    let path = directory.join(format!(".clover-doctor-{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
    let mut measure = || {
        let begun = Instant::now();
        file.write_all(&[0; 4_096])?;
        file.sync_data()?;
        Ok(begun.elapsed())
    };
    let took = (0..SYNCS).map(|_| measure()).collect();
    fs::remove_file(&path)?;
    took
}

fn port(key: &str, address: SocketAddr) -> Check {
    let check = |found: String| Check::new(format!("{key} {address}"), "free, or used by Clover", found);
    match TcpListener::bind(address) {
        Ok(_) => check("free".into()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => match owner(address.port()) {
            Some((pid, program)) => check(format!("used by {program} ({pid})")).unless(
                program == "clover",
                Outcome::Failed,
                "End that program, or give the server another port.",
            ),
            None => check("used".into()).unless(
                false,
                Outcome::Unknown,
                "Run this as root to see by which program: `ss -ltnp` shows it too.",
            ),
        },
        Err(error) => check(error.to_string()).unless(
            false,
            Outcome::Failed,
            "The address has to be one of this machine, and ports below 1024 are for root.",
        ),
    }
}

/// The process that listens on a port, with its program's name.
fn owner(port: u16) -> Option<(String, String)> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let sockets: Vec<String> = tables.iter().flat_map(|table| listening(table, port)).collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    // `/proc/self` and the like are names of one that has a number as well.
    let numbers = processes.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    for entry in numbers {
        let links = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        let is_it = |link: &fs::DirEntry| {
            fs::read_link(link.path())
                .is_ok_and(|to| sockets.iter().any(|socket| to.as_os_str() == socket.as_str()))
        };
        if links.into_iter().any(|link| is_it(&link)) {
            let program = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            return Some((entry.file_name().to_string_lossy().into_owned(), program.trim().to_owned()));
        }
    }
    None
}

/// The sockets that listen on a port, as links in `/proc/PID/fd` name them.
fn listening(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let rows = table.lines().skip(1).filter_map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let (_, hex) = cells.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(hex, 16) == Ok(port) && *cells.get(3)? == LISTEN;
        is_it.then(|| format!("socket:[{}]", cells.get(9).copied().unwrap_or_default()))
    });
    rows.collect()
}

fn zookeeper(config: &ZooKeeperConfig) -> Vec<Check> {
    let name = format!("ZooKeeper {}", config.servers);
    let reached = match coord::ZooKeeper::connect(config.clone()) {
        Ok(coordinator) => match coord::wait(|done| coordinator.read_cluster(done)) {
            Ok(Some(_)) => Ok(format!("it has a cluster below {}", config.root)),
            Ok(None) => Ok(format!("it answers, and has no cluster below {} yet", config.root)),
            Err(error) => Err(error.to_string()),
        },
        Err(error) => Err(error.to_string()),
    };
    let is_good = reached.is_ok();
    let found = reached.unwrap_or_else(|error| error);
    vec![
        Check::new(&name, "answers, and lets us read", found).unless(
            is_good,
            Outcome::Failed,
            "Start ZooKeeper, and look at `coordinator` and `coordinator_auth_file` of this file: nobody can take over without it.",
        ),
        Check::new(
            format!("rights in {name}"),
            "records are ours alone",
            match config.auth {
                Some(_) => "made with user and password",
                None => "open to everybody",
            },
        )
        .unless(
            config.auth.is_some(),
            Outcome::Warning,
            "Every program that reaches ZooKeeper can name another active: set `coordinator_auth_file`.",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_has_an_owner() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (pid, _) = owner(address.port()).expect("this process listens there");
        assert_eq!(pid, std::process::id().to_string());
        assert_eq!(port("rpc_address", address).outcome, Outcome::Failed, "a test is no server");
        drop(listener);
        assert_eq!(port("rpc_address", address).found, "free");
        assert_eq!(port("rpc_address", "192.0.2.1:1".parse().unwrap()).outcome, Outcome::Failed);
    }

    #[test]
    fn only_sockets_that_listen_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 00000000:0000 0A 0:0 00:0 0 0 0 4711 1\n   1: 0100007F:1F90 00000000:0000 01 0:0 00:0 0 0 0 4712 1\n";
        assert_eq!(listening(table, 8_080), ["socket:[4711]"]);
        assert!(listening(table, 80).is_empty() && listening("", 80).is_empty());
    }

    #[test]
    fn a_directory_is_measured_and_left_as_it_was() {
        let directory = std::env::temp_dir().join(format!("clover-doctor-test-{}", std::process::id()));
        assert_eq!(
            super::directory(&directory, DATA_SYNC_MAX)[0].outcome,
            Outcome::Failed,
            "it is not there"
        );
        fs::create_dir_all(&directory).unwrap();
        let checks = super::directory(&directory, Duration::MAX);
        assert_eq!(checks.len(), 3);
        assert!(checks[..2].iter().all(|check| check.outcome == Outcome::Good), "{checks:?}");
        assert_eq!(super::directory(&directory, Duration::ZERO)[1].outcome, Outcome::Warning);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        fs::remove_dir_all(&directory).unwrap();
    }
}
