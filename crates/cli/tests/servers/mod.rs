//! A metadata server and data servers, each a process of its own that a test may kill.

use crate::demo::clover;
use client::{Config, FileSystem};
use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

static CLUSTERS: AtomicU32 = AtomicU32::new(0);
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Servers {
    directory: PathBuf,
    address: String,
    meta: Child,
    /// `None`: it was killed.
    data: Vec<Option<Child>>,
}

impl Servers {
    /// Returns when all of so many data servers are there.
    pub async fn start(count: usize) -> Self {
        let number = CLUSTERS.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("clover-servers-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        // Free now, and nobody else is likely to ask for it in the next moment.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let settings = [
            format!("name_dir={}", directory.join("name").display()),
            format!("rpc_address={address}"),
            "http_address=".into(),
            "safe_mode_extension_ms=0".into(),
        ];
        let words: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let made = clover(&directory).args(["meta", "format"]).args(&words).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let meta = clover(&directory)
            .arg("meta")
            .args(&words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let data = (0..count).map(|server| Some(start_data(&directory, server, &address))).collect();
        let servers = Self { directory, address, meta, data };
        servers.wait_for_all().await;
        servers
    }

    async fn wait_for_all(&self) {
        let began = Instant::now();
        loop {
            let fs = self.connect(&[]);
            let known = tokio::time::timeout(Duration::from_secs(5), fs.data_servers()).await;
            if known.is_ok_and(|known| known.is_ok_and(|known| known.len() == self.data.len())) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "the data servers are not there");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A client with these properties.
    pub fn connect(&self, properties: &[(&str, &str)]) -> FileSystem {
        let mut config = Config::new();
        for (name, value) in properties {
            config.set(name, value);
        }
        FileSystem::connect(&format!("hdfs://{}", self.address), &config).unwrap()
    }

    /// kill -9.
    pub fn kill(&mut self, server: usize) {
        let mut process = self.data[server].take().expect("it lives");
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// The living data servers whose newest replica has so many bytes at least.
    pub fn holders(&self, bytes: u64) -> Vec<usize> {
        let holds = |server: &usize| {
            self.data[*server].is_some()
                && self.newest_replica(*server).is_some_and(|path| length_of(&path) >= bytes)
        };
        (0..self.data.len()).filter(holds).collect()
    }

    /// The block file of the replica with the highest id, being written or finished.
    pub fn newest_replica(&self, server: usize) -> Option<PathBuf> {
        let mut found = Vec::new();
        let mut waiting = vec![data_directory(&self.directory, server)];
        while let Some(directory) = waiting.pop() {
            for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.file_type().unwrap().is_dir() {
                    waiting.push(entry.path());
                } else if let Some(id) = name.strip_prefix("blk_").and_then(|id| id.parse::<u64>().ok()) {
                    found.push((id, entry.path()));
                }
            }
        }
        found.into_iter().max().map(|(_, path)| path)
    }
}

/// 0 where it has just been moved.
fn length_of(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

fn data_directory(directory: &Path, server: usize) -> PathBuf {
    directory.join(format!("data-{server}"))
}

fn start_data(directory: &Path, server: usize, metadata: &str) -> Child {
    let mut command = clover(directory);
    command.arg("data").args(["--set", &format!("metadata_servers={metadata}")]);
    command.args(["--set", &format!("data_dirs={}", data_directory(directory, server).display())]);
    for key in ["transfer_address", "ipc_address", "data_http_address"] {
        command.args(["--set", &format!("{key}=127.0.0.1:0")]);
    }
    command.args(["--set", "heartbeat_interval_ms=500ms"]);
    std::fs::create_dir_all(data_directory(directory, server)).unwrap();
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

impl Drop for Servers {
    fn drop(&mut self) {
        for process in self.data.iter_mut().flatten().chain([&mut self.meta]) {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
