//! The network between a coordinator and its server, which can be cut.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

pub struct Proxy {
    address: String,
    shared: Arc<Shared>,
}

struct Shared {
    server: String,
    is_cut: AtomicBool,
    /// Answers do not pass, requests do.
    is_deaf: AtomicBool,
    /// Becomes deaf with the next request that writes.
    is_deaf_to_writes: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared {
            server: server.into(),
            is_cut: AtomicBool::new(false),
            is_deaf: AtomicBool::new(false),
            is_deaf_to_writes: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let accepting = Arc::downgrade(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Some(shared) = accepting.upgrade() else { return };
                if !shared.is_cut.load(Ordering::SeqCst) {
                    shared.join(client);
                }
            }
        });
        Self { address, shared }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Connections break, and new ones are not served.
    pub fn cut(&self) {
        self.shared.is_cut.store(true, Ordering::SeqCst);
        self.shared.break_all();
    }

    pub fn mend(&self) {
        for fault in [&self.shared.is_cut, &self.shared.is_deaf, &self.shared.is_deaf_to_writes] {
            fault.store(false, Ordering::SeqCst);
        }
    }

    /// Connections break once.
    pub fn break_all(&self) {
        self.shared.break_all();
    }

    /// Answers are swallowed from the next request on that writes.
    pub fn deafen_to_writes(&self) {
        self.shared.is_deaf_to_writes.store(true, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Whether the first request of a packet is ZooKeeper's `setData` or `multi`: its length, its number, its kind.
fn writes(packet: &[u8]) -> bool {
    let kind = packet.get(8..12).map(|kind| i32::from_be_bytes(kind.try_into().expect("four bytes")));
    matches!(kind, Some(5 | 14))
}

impl Shared {
    fn join(self: &Arc<Self>, client: TcpStream) {
        let Ok(server) = TcpStream::connect(&self.server) else { return };
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
            self.open.lock().unwrap().push(stream.try_clone().unwrap());
        }
        let ends = [(&client, &server, false), (&server, &client, true)];
        for (from, to, is_answer) in ends {
            let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let shared = self.clone();
            thread::spawn(move || {
                let mut buffer = [0; 16 << 10];
                while let Ok(length @ 1..) = from.read(&mut buffer) {
                    if !is_answer
                        && shared.is_deaf_to_writes.load(Ordering::SeqCst)
                        && writes(&buffer[..length])
                    {
                        shared.is_deaf.store(true, Ordering::SeqCst);
                    }
                    let is_swallowed = is_answer && shared.is_deaf.load(Ordering::SeqCst);
                    if !is_swallowed && to.write_all(&buffer[..length]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    }

    fn break_all(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // The ends notice.
        thread::sleep(Duration::from_millis(10));
    }
}
