//! Servers of this test's own, and a plain client to look behind the coordinator's back.

use base::GroupId;
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};
use zookeeper_client::{Acls, Client, CreateMode, Error};

/// Ends with the value.
pub struct Server {
    directory: tempfile::TempDir,
    address: String,
}

impl Server {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_ports(1).to_string();
        let address = script(&["start", path(directory.path()), &port]);
        Self { directory, address }
    }

    pub fn ensemble() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_ports(16).to_string();
        let address = script(&["ensemble", path(directory.path()), &port]);
        Self { directory, address }
    }

    /// The address of the server in the form that the coordinator takes.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn stop(&self) {
        script(&["stop", path(self.directory.path())]);
    }

    pub fn kill(&self) {
        script(&["kill", path(self.directory.path())]);
    }

    pub fn start_again(&self) {
        script(&["start", path(self.directory.path())]);
    }

    /// Ends one of an ensemble, counted from 1, by `stop` or `kill`, and starts it again.
    pub fn roll(&self, id: usize, how: &str) {
        let directory = self.one(id);
        script(&[how, path(&directory)]);
        script(&["start", path(&directory)]);
    }

    pub fn mode(&self, id: usize) -> String {
        script(&["mode", path(&self.one(id))])
    }

    fn one(&self, id: usize) -> PathBuf {
        self.directory.path().join(id.to_string())
    }

    /// Freezes the process, or thaws it.
    pub fn signal(&self, signal: &str) {
        let pid = std::fs::read_to_string(self.directory.path().join("pid")).unwrap();
        let status = Command::new("kill").arg(signal).arg(pid.trim()).status().unwrap();
        assert!(status.success());
    }

    /// Requests that the server has received in its life.
    pub fn packets_received(&self) -> u64 {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"srvr").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("Received: "));
        line.expect("srvr counts packets").parse().unwrap()
    }

    /// Asks as anybody could.
    pub fn plainly<T>(&self, ask: impl AsyncFnOnce(Client) -> T) -> T {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async { ask(Client::connect(&self.address).await.unwrap()).await })
    }

    /// Writes a node's value, whatever it was; `None` removes the node.
    pub fn write(&self, node: &str, value: Option<&[u8]>) {
        self.plainly(async |client| match value {
            None => client.delete(node, None).await.unwrap(),
            Some(value) => match client.set_data(node, value, None).await {
                Ok(_) => {}
                Err(Error::NoNode) => {
                    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
                    client.create(node, value, &options).await.unwrap();
                }
                Err(error) => panic!("{node}: {error}"),
            },
        });
    }

    pub fn wait_for_lock(&self, root: &str, group: GroupId, text: &str) {
        let node = format!("{root}/g/{}/lock", group.0);
        let deadline = Instant::now() + Duration::from_secs(10);
        self.plainly(async |client| {
            loop {
                let found = client.get_data(&node).await;
                if found.as_ref().is_ok_and(|(value, _)| value == text.as_bytes()) {
                    return;
                }
                assert!(Instant::now() < deadline, "{node} is not {text}: {found:?}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs scripts/zookeeper; what it says when it fails is the test's failure.
fn script(arguments: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/zookeeper");
    let output = Command::new(script).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "scripts/zookeeper {}: {said}", arguments.join(" "));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The first of so many ports in a row, below those that the kernel hands out by itself.
fn free_ports(count: u16) -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 20_000 + (std::process::id() % 500) as u16 * 20;
    loop {
        let first = start + NEXT.fetch_add(count, Ordering::Relaxed) % 2000;
        if (first..first + count).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return first;
        }
    }
}
