//! What servers tell the service manager, heard on a socket as systemd's.

mod demo;

use demo::{clover, signal};
use std::{
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// The other end of NOTIFY_SOCKET.
struct Manager {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Manager {
    fn listen(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        Self { socket, heard: Vec::new() }
    }

    /// Starts a server that speaks to this manager, and that is to say that it lives within each 300 ms.
    fn start(&self, path: &Path, mut server: Command) -> Child {
        server.env("NOTIFY_SOCKET", path).env("WATCHDOG_USEC", "300000").env_remove("WATCHDOG_PID");
        server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Waits for so many lines that begin so, from now on.
    fn wait_for(&mut self, start: &str, count: usize) {
        let (began, from) = (Instant::now(), self.heard.len());
        while self.heard[from..].iter().filter(|line| line.starts_with(start)).count() < count {
            assert!(began.elapsed() < PATIENCE, "{count} of {start:?} were not told: {:?}", self.heard);
            let mut bytes = [0; 4096];
            if let Ok(length) = self.socket.recv(&mut bytes) {
                let text = std::str::from_utf8(&bytes[..length]).unwrap();
                self.heard.extend(text.lines().map(str::to_owned));
            }
        }
    }

    /// The server's whole life: it starts, is ready, says how it is and that it lives, and is asked to stop.
    fn see_a_life(&mut self, mut server: Child, state: &str) {
        self.wait_for("READY=1", 1);
        assert_eq!(self.heard[0], "STATUS=starting");
        self.wait_for("WATCHDOG=1", 3);
        self.wait_for(state, 1);
        signal(&server, "-STOP");
        // What was sent before is heard first.
        while self.socket.recv(&mut [0; 4096]).is_ok() {}
        self.heard.clear();
        signal(&server, "-CONT");
        self.wait_for("WATCHDOG=1", 1);
        signal(&server, "-TERM");
        self.wait_for("STOPPING=1", 1);
        assert!(server.wait().unwrap().success(), "{:?}", self.heard);
    }
}

#[test]
fn a_metadata_server_and_a_data_server_tell_their_lives() {
    let directory = std::env::temp_dir().join(format!("clover-supervisor-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let set = |command: &mut Command, pairs: &[&str]| {
        for pair in pairs {
            command.args(["--set", pair]);
        }
    };
    let name_dir = format!("name_dir={}", directory.join("name").display());
    let meta_keys = [&*name_dir, "rpc_address=127.0.0.1:0", "http_address="];
    let mut format = clover(&directory);
    set(format.args(["meta", "format"]), &meta_keys);
    assert!(format.output().unwrap().status.success());

    let mut meta = clover(&directory);
    set(meta.arg("meta"), &meta_keys);
    let path = directory.join("meta.socket");
    let mut manager = Manager::listen(&path);
    let server = manager.start(&path, meta);
    manager.see_a_life(server, "STATUS=active; member 1, epoch ");

    // Nobody answers where its metadata server is said to be, and it is sound all the same.
    let data_dir = directory.join("data");
    std::fs::create_dir(&data_dir).unwrap();
    let mut data = clover(&directory);
    let data_dirs = format!("data_dirs={}", data_dir.display());
    let addresses =
        ["transfer_address", "ipc_address", "data_http_address"].map(|key| format!("{key}=127.0.0.1:0"));
    set(data.arg("data"), &[&data_dirs, "metadata_servers=127.0.0.1:1"]);
    set(&mut data, &addresses.each_ref().map(String::as_str));
    let path = directory.join("data.socket");
    let mut manager = Manager::listen(&path);
    let server = manager.start(&path, data);
    manager.see_a_life(server, "STATUS=registering; metadata servers: 0 of 1");
    std::fs::remove_dir_all(&directory).unwrap();
}
