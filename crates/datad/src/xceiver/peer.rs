//! The other end of a connection, for messages and limits.

use crate::short_circuit::Process;
use std::{fmt, net::SocketAddr};
use tokio::net::UnixStream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Network(SocketAddr),
    /// A process of this machine.
    Local(Process),
}

impl Peer {
    /// The process that has connected, as the system names it; one that it does not name has the number 0.
    pub fn of(socket: &UnixStream) -> Self {
        let found = socket.peer_cred();
        let (user, id) =
            found.map_or((u32::MAX, 0), |credentials| (credentials.uid(), credentials.pid().unwrap_or(0)));
        Self::Local(Process { user, id })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(address) => address.fmt(f),
            Self::Local(process) => write!(f, "process {} of user {}", process.id, process.user),
        }
    }
}
