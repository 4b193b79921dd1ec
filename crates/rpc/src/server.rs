//! The listening end: accepts connections and runs a task for each.

mod admission;
mod connection;
mod load;
pub mod negotiation;
mod outbox;
mod room;
#[cfg(test)]
mod tests;

pub use load::Load;
pub(crate) use outbox::Outbox;
pub(crate) use room::Paid;

use crate::{RpcError, Service};
use base::Caller;
use connection::Connection;
use env::{Descriptors, descriptors::Place};
use parking_lot::Mutex;
use room::Room;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Makes the caller from the effective user, the real one and the client's address, once a connection. It runs on the
/// connection's task: a look-up that waits belongs elsewhere. It may refuse, as for a user who may not act
/// for another.
pub type CallerResolver =
    Arc<dyn Fn(&str, Option<&str>, IpAddr) -> Result<Arc<Caller>, RpcError> + Send + Sync>;

/// How much one connection may cost, and all of them together.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest frame. Hadoop: `ipc.maximum.data.length`.
    pub frame_bytes_max: usize,
    /// The time from the first byte of a frame to its last; longer frames get a second more for each 64 KiB. It also
    /// bounds the whole of what precedes the first call.
    pub frame_deadline: Duration,
    /// Replies that wait for a client that does not read: beyond it nothing more is read from the client.
    pub reply_bytes_max: usize,
    /// Calls not yet answered: beyond it nothing more is read from the client.
    pub calls_in_flight_max: usize,
    /// How long a client may leave replies unread before it is cut off.
    pub write_deadline: Duration,
    /// Requests of all connections that are read or not yet answered: beyond it a connection waits for others
    /// before it is read. A short chunk for each connection comes on top.
    pub request_bytes_max: usize,
    /// Replies of all connections that wait for their clients: beyond it none may leave much unread.
    pub unread_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes_max: 128 << 20,
            frame_deadline: Duration::from_secs(30),
            // Chosen by eye: many listings, and far below what one client should be able to pin.
            reply_bytes_max: 16 << 20,
            calls_in_flight_max: 16_384,
            write_deadline: Duration::from_secs(120),
            // Chosen by eye: some of the longest requests at once, and far below the memory of any server.
            request_bytes_max: 512 << 20,
            unread_bytes_max: 256 << 20,
        }
    }
}

pub struct ServerConfig {
    /// Port 0 chooses a free one.
    pub address: SocketAddr,
    pub service: Arc<dyn Service>,
    pub limits: Limits,
    /// Finds the groups of a caller. Without it callers have no groups, and no user may act for another.
    pub caller_resolver: Option<CallerResolver>,
    /// The `host:port` at which HTTP is served, for a message to those who send an HTTP request here.
    pub http_hint: Option<String>,
    /// The file descriptors that all connections of the process share. By default there are plenty.
    pub descriptors: Arc<Descriptors>,
    /// Where calls are counted and timed.
    pub calls: Arc<measures::Calls>,
}

impl ServerConfig {
    pub fn new(address: SocketAddr, service: Arc<dyn Service>) -> Self {
        const PLENTY: usize = 1 << 20;
        let descriptors = Arc::new(Descriptors::new(PLENTY));
        Self {
            address,
            service,
            limits: Limits::default(),
            caller_resolver: None,
            http_hint: None,
            descriptors,
            calls: Arc::default(),
        }
    }
}

/// A listening socket and its connections. Dropped, it stops listening and closes them.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// The state that all connections of a server share.
pub(crate) struct Shared {
    service: Arc<dyn Service>,
    limits: Limits,
    caller_resolver: Option<CallerResolver>,
    http_hint: Option<String>,
    room: Arc<Room>,
    descriptors: Arc<Descriptors>,
    calls: Arc<measures::Calls>,
    /// The open connections; `None` once the server is shutting down.
    connections: Mutex<Option<HashMap<u64, Arc<Outbox>>>>,
    next_connection: AtomicU64,
    /// Bytes of all connections since the start.
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Server {
    /// Listens. To be called within a tokio runtime, whose threads will serve the connections.
    ///
    /// # Errors
    /// `AddrInUse` if the port is taken, `AddrNotAvailable` if the address is not one of this machine; or the system's
    /// reason, no descriptor left for example.
    pub fn bind(config: ServerConfig) -> io::Result<Server> {
        let listener = listen(config.address)?;
        let address = listener.local_addr()?;
        let limits = &config.limits;
        let room = Room::new(limits.request_bytes_max, limits.frame_bytes_max, limits.unread_bytes_max);
        let shared = Arc::new(Shared {
            room: Arc::new(room),
            descriptors: config.descriptors,
            service: config.service,
            limits: config.limits,
            caller_resolver: config.caller_resolver,
            http_hint: config.http_hint,
            calls: config.calls,
            connections: Mutex::new(Some(HashMap::new())),
            next_connection: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(admission::accept(listener, Arc::clone(&shared)));
        Ok(Server { shared, address, accepting })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    pub fn connection_count(&self) -> usize {
        self.shared.connections.lock().as_ref().map_or(0, HashMap::len)
    }

    /// A handle that tells at any time how much this server has under way.
    pub fn load(&self) -> Load {
        Load { shared: Arc::downgrade(&self.shared) }
    }

    /// Stops listening and closes all connections; replies already made are still written where the client
    /// takes them at once.
    pub async fn shutdown(mut self) {
        self.stop();
        let _ = (&mut self.accepting).await;
    }

    fn stop(&self) {
        self.accepting.abort();
        let connections = self.shared.connections.lock().take();
        for outbox in connections.into_iter().flatten().map(|(_, outbox)| outbox) {
            outbox.shut();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// Enters a connection, unless the server is shutting down.
    fn enter(&self, outbox: &Arc<Outbox>) -> Option<u64> {
        let number = self.next_connection.fetch_add(1, Ordering::Relaxed);
        self.connections.lock().as_mut()?.insert(number, Arc::clone(outbox));
        Some(number)
    }

    fn leave(&self, number: u64) {
        if let Some(connections) = self.connections.lock().as_mut() {
            connections.remove(&number);
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    // Enough for every client of a cluster to reconnect at once after a takeover.
    const BACKLOG: i32 = 4096;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn set_options(stream: &TcpStream) -> io::Result<()> {
    // An idle client may stay as long as it lives; one whose machine is gone is found out by and by.
    const IDLE_BEFORE_PROBE: Duration = Duration::from_secs(300);
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(IDLE_BEFORE_PROBE))
}

async fn serve(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>, place: Place) {
    // Behind all else, for the socket is closed by then.
    let _place = place;
    if let Err(error) = set_options(&stream) {
        tracing::debug!(%peer, %error, "the connection was gone at once");
        return;
    }
    let outbox = Arc::new(Outbox::default());
    let Some(number) = shared.enter(&outbox) else { return };
    let _entry = Entry { shared: &shared, outbox: &outbox, number };
    let result =
        Connection::new(stream, (peer, number), Arc::clone(&shared), Arc::clone(&outbox)).run().await;
    if let Err(error) = result {
        tracing::debug!(%peer, %error, "connection closed");
    }
}

/// A connection's place in the list of the open ones; gone with its task, however that ends.
struct Entry<'a> {
    shared: &'a Shared,
    outbox: &'a Outbox,
    number: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.outbox.abandon();
        self.shared.leave(self.number);
    }
}
