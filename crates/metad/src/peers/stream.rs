//! A connection to another member, either way.

use env::Clock;
use socket2::{SockRef, TcpKeepalive};
use std::{
    io::{self, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

/// Small messages go at once; a machine that is gone without a word is found out in seconds.
pub fn set_options(stream: &TcpStream) -> io::Result<()> {
    const SECOND: Duration = Duration::from_secs(1);
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(SECOND).with_interval(SECOND).with_retries(3))?;
    socket.set_tcp_user_timeout(Some(3 * SECOND))
}

/// A stream whose reads and writes end at a deadline, however slowly the bytes trickle.
pub struct Deadline<'a> {
    stream: &'a TcpStream,
    clock: Arc<dyn Clock>,
    /// The time limit for bytes that are read before anything was written.
    first_ns: u64,
    end_ns: u64,
}

impl<'a> Deadline<'a> {
    pub fn new(stream: &'a TcpStream, clock: Arc<dyn Clock>, first: Duration, all: Duration) -> Self {
        let now_ns = clock.moment().ns;
        let at_ns = |period: Duration| now_ns + period.as_nanos() as u64;
        Self { stream, clock, first_ns: at_ns(first), end_ns: at_ns(all) }
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.first_ns.saturating_sub(self.clock.moment().ns);
        if left == 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long"));
        }
        Ok(Duration::from_nanos(left))
    }
}

impl Read for Deadline<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer)
    }
}

impl Write for Deadline<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.first_ns = self.end_ns;
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
