//! A connection of the streaming protocol, the one that carries blocks: both directions, message by message.
//!
//! Data servers and clients meet here from opposite ends. The messages are those of `proto::data_transfer`. A SASL
//! handshake and its wrapping would go into [`split`].

use bytes::{Bytes, BytesMut};
use proto::data_transfer::{
    Error, Op, delimited, op,
    packet::{self, Packet, Taken},
};
use std::{io, net::SocketAddr, os::fd::BorrowedFd, path::Path, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream, tcp, unix},
    time::{Instant, timeout},
};

/// Read at once while packets of this size or more come in: a few packets, so that one read often brings the
/// beginning of the next.
const READ_BYTES: usize = 256 * 1024;

/// Read at once for headers and small packets.
const READ_BYTES_SMALL: usize = 8 * 1024;

/// The slowest sender of a packet, beside the time that it has in any case.
const PACKET_BYTES_A_SECOND: usize = 16 << 10;

#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other side ended the connection between two messages.
    #[error("the connection was closed")]
    Closed,
    #[error("nothing came for {0:?}")]
    Timeout(Duration),
    #[error("a packet was not whole after {0:?}")]
    Slow(Duration),
    #[error("{0}")]
    Wire(#[from] Error),
}

pub struct Inbound {
    half: ReadHalf,
    buffer: BytesMut,
    /// How long to wait for the next byte.
    pub timeout: Duration,
}

pub struct Outgoing {
    half: WriteHalf,
    /// How long a write may make no progress.
    pub timeout: Duration,
}

/// A connection through the network, or through a path of this machine.
pub enum Socket {
    Tcp(TcpStream),
    Local(UnixStream),
}

enum ReadHalf {
    Tcp(tcp::OwnedReadHalf),
    Local(unix::OwnedReadHalf),
}

enum WriteHalf {
    Tcp(tcp::OwnedWriteHalf),
    Local(unix::OwnedWriteHalf),
}

impl From<TcpStream> for Socket {
    fn from(socket: TcpStream) -> Self {
        Self::Tcp(socket)
    }
}

impl From<UnixStream> for Socket {
    fn from(socket: UnixStream) -> Self {
        Self::Local(socket)
    }
}

/// Both directions of a connection; each may wait `timeout` for the other side.
pub fn split(socket: impl Into<Socket>, timeout: Duration) -> (Inbound, Outgoing) {
    let (read, write) = match socket.into() {
        Socket::Tcp(socket) => {
            let (read, write) = socket.into_split();
            (ReadHalf::Tcp(read), WriteHalf::Tcp(write))
        }
        Socket::Local(socket) => {
            let (read, write) = socket.into_split();
            (ReadHalf::Local(read), WriteHalf::Local(write))
        }
    };
    (Inbound { half: read, buffer: BytesMut::new(), timeout }, Outgoing { half: write, timeout })
}

impl ReadHalf {
    async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Tcp(half) => half.read_buf(buffer).await,
            Self::Local(half) => half.read_buf(buffer).await,
        }
    }
}

impl WriteHalf {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(half) => half.write(bytes).await,
            Self::Local(half) => half.write(bytes).await,
        }
    }
}

impl Inbound {
    /// The next operation; [`StreamError::Closed`] when there is none.
    ///
    /// # Errors
    /// [`StreamError::Closed`] if the other side ended between two operations, [`StreamError::Wire`] if the bytes are
    /// no operation, [`StreamError::Io`] if the connection broke or ended within one, [`StreamError::Timeout`] if
    /// nothing came for the time limit.
    pub async fn op(&mut self) -> Result<Op, StreamError> {
        loop {
            if let Some(op) = op::take(&mut self.buffer)? {
                return Ok(op);
            }
            self.fill(1).await?;
        }
    }

    /// The next length-prefixed message. Nothing is lost when dropped before it is complete.
    ///
    /// # Errors
    /// As [`Inbound::op`], for a message.
    pub async fn message<M: prost::Message + Default + prost::Name>(&mut self) -> Result<M, StreamError> {
        loop {
            if let Some(message) = delimited::take(&mut self.buffer)? {
                return Ok(message);
            }
            self.fill(1).await?;
        }
    }

    /// The next length-prefixed message, when it has been received already.
    ///
    /// # Errors
    /// [`StreamError::Wire`] if the bytes received are not a message of this type, or promise one that is too long.
    pub fn message_at_hand<M: prost::Message + Default + prost::Name>(
        &mut self,
    ) -> Result<Option<M>, StreamError> {
        Ok(delimited::take(&mut self.buffer)?)
    }

    /// The next packet. Once it has begun to come it has the time limit, and a second more for each 16 KiB: a sender
    /// of a byte a second would hold its place for a day.
    ///
    /// # Errors
    /// As [`Inbound::op`], for a packet.
    pub async fn packet(&mut self) -> Result<Packet, StreamError> {
        let mut begun = None;
        loop {
            let needed = match packet::take(&mut self.buffer)? {
                Taken::Packet(packet) => return Ok(packet),
                Taken::More(needed) => needed,
            };
            if self.buffer.is_empty() {
                self.fill(needed).await?;
                continue;
            }
            let begun = *begun.get_or_insert_with(Instant::now);
            let bytes = self.buffer.len() + needed;
            let limit = self.timeout + Duration::from_secs((bytes / PACKET_BYTES_A_SECOND) as u64);
            let left = limit.saturating_sub(begun.elapsed());
            match self.fill_within(left.min(self.timeout), needed).await {
                Err(StreamError::Timeout(_)) if left < self.timeout => return Err(StreamError::Slow(limit)),
                filled => filled?,
            }
        }
    }

    /// The next byte, which no message is around.
    ///
    /// # Errors
    /// As [`Inbound::op`], for a byte.
    pub async fn byte(&mut self) -> Result<u8, StreamError> {
        while self.buffer.is_empty() {
            self.fill(1).await?;
        }
        Ok(self.buffer.split_to(1)[0])
    }

    /// Waits, for as long as it takes, until the other side says anything or ends the connection.
    pub async fn stirred(&mut self) {
        if self.buffer.is_empty() {
            let _ = self.half.read(&mut self.buffer).await;
        }
    }

    /// Reads at least a byte, and makes room for `needed`.
    async fn fill(&mut self, needed: usize) -> Result<(), StreamError> {
        self.fill_within(self.timeout, needed).await
    }

    async fn fill_within(&mut self, limit: Duration, needed: usize) -> Result<(), StreamError> {
        if self.buffer.capacity() - self.buffer.len() < needed {
            let usual = if needed > READ_BYTES_SMALL { READ_BYTES } else { READ_BYTES_SMALL };
            self.buffer.reserve(usual.max(needed));
        }
        let count = match timeout(limit, self.half.read(&mut self.buffer)).await {
            Ok(count) => count?,
            Err(_) => return Err(StreamError::Timeout(limit)),
        };
        match count {
            0 if self.buffer.is_empty() => Err(StreamError::Closed),
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            _ => Ok(()),
        }
    }

    /// Reads and forgets until the other side ends or `limit` has passed, so that closing the connection does
    /// not take back what was just said on it.
    pub async fn drain(&mut self, limit: Duration) {
        let _ = timeout(limit, async {
            loop {
                self.buffer.clear();
                self.buffer.reserve(READ_BYTES_SMALL);
                if !matches!(self.half.read(&mut self.buffer).await, Ok(count) if count > 0) {
                    return;
                }
            }
        })
        .await;
    }
}

/// Connects within `timeout`, to be [`split`].
///
/// # Errors
/// `TimedOut` if there is no connection within `timeout`; otherwise the system's reason, a refusal by the other
/// machine for example.
pub async fn connect(addr: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let socket = tokio::time::timeout(timeout, TcpStream::connect(addr)).await.map_err(|_| {
        io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {timeout:?}"))
    })??;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Connects to the server that listens at a path of this machine, to be [`split`].
///
/// # Errors
/// `TimedOut` if there is no connection within `timeout`; `NotFound` or `ConnectionRefused` if nobody listens there.
pub async fn connect_local(path: &Path, timeout: Duration) -> io::Result<UnixStream> {
    tokio::time::timeout(timeout, UnixStream::connect(path))
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {timeout:?}")))?
}

impl Outgoing {
    /// Whether the connection is one of this machine, over which open files can be handed.
    pub fn is_local(&self) -> bool {
        matches!(self.half, WriteHalf::Local(_))
    }

    /// Sends one byte, and open files with it. They stay open here as well.
    ///
    /// # Errors
    /// `Unsupported` if the connection goes through the network; `TimedOut` if nothing could be sent for the time limit; or
    /// those of [`descriptors::send`](crate::local::descriptors::send).
    pub async fn descriptors(&mut self, byte: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let WriteHalf::Local(half) = &self.half else { return Err(io::ErrorKind::Unsupported.into()) };
        let sent = crate::local::descriptors::send(half.as_ref(), byte, descriptors);
        timeout(self.timeout, sent).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    /// # Errors
    /// `TimedOut` if nothing could be sent for the time limit; or the system's reason, `BrokenPipe` for example, if the
    /// connection broke.
    pub async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = timeout(self.timeout, self.half.write(bytes)).await.map_err(|_| {
                io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("nothing could be sent for {:?}", self.timeout),
                )
            })??;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// # Errors
    /// Those of [`Outgoing::write`].
    pub async fn message(&mut self, message: &impl prost::Message) -> io::Result<()> {
        let bytes: Bytes = delimited::encoded(message);
        self.write(&bytes).await
    }

    /// Says that nothing more comes.
    pub async fn end(&mut self) {
        let _ = match &mut self.half {
            WriteHalf::Tcp(half) => half.shutdown().await,
            WriteHalf::Local(half) => half.shutdown().await,
        };
    }
}
