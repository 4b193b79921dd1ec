//! The thread towards one member: connects, proves itself, sends what is queued, and begins again.

use super::{
    PeerEvent, Shared, codec, frame,
    handshake::{self, Session},
    letter::Letter,
    queue::Queue,
    stream::{Deadline, set_options},
};
use base::{MemberId, MemberLife, Moment};
use bytes::BytesMut;
use env::pulse;
use parking_lot::Mutex;
use std::{
    io,
    net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// How long a member may take to answer a connection, or to take any byte from it. A disk does not hold its threads
/// up, so a member that needs longer is gone or cut off.
const PATIENCE: Duration = Duration::from_millis(2_000);
/// How long the other port of a member that refuses is tried.
const PROBE: Duration = Duration::from_millis(200);
/// Between attempts while it is to be found out whether the member's process has ended. A process that ends closes one port after the other.
const PAUSE_IN_QUESTION: Duration = Duration::from_millis(10);
/// Between attempts. A refused connection costs nothing; a member that is back shall be found at once.
const PAUSE: Duration = Duration::from_millis(100);
/// After the other side has refused us: that does not mend itself.
const PAUSE_REFUSED: Duration = Duration::from_millis(1_000);
/// The most bytes that are written in one go.
const BATCH_BYTES: usize = 1 << 20;
/// A refusal that goes on is told this often.
const REMIND_MS: u64 = 500;

/// The way to one member.
pub struct Sender {
    address: String,
    link: Arc<Link>,
}

struct Link {
    queue: Queue,
    /// The connection that is being written to, with its number. It is kept here to end a write that does not end by itself.
    stream: Mutex<Option<(u64, TcpStream)>>,
}

impl Link {
    fn cut(&self) {
        self.queue.close();
        if let Some((_, stream)) = &*self.stream.lock() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Waits until the connection with this number has ended, and then cuts it. Nothing comes over it, so the writer would not notice before its next letter
    /// but one.
    fn cut_when_ended(&self, number: u64, mut stream: TcpStream) {
        let _ = stream.set_read_timeout(None);
        let _ = io::copy(&mut stream, &mut io::sink());
        let current = self.stream.lock();
        if let Some((_, stream)) = current.as_ref().filter(|(of, _)| *of == number) {
            self.queue.close();
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Sender {
    pub fn start(shared: Arc<Shared>, to: MemberId, address: String) -> Self {
        let link = Arc::new(Link { queue: Queue::default(), stream: Mutex::new(None) });
        let (thread, target) = (link.clone(), address.clone());
        std::thread::Builder::new()
            .name(format!("peer-{to}"))
            .spawn(move || run(&shared, &thread, to, &target))
            .expect("a thread can be started");
        Self { address, link }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// True if the connection had to be given up.
    pub fn send(&self, letter: Letter) -> bool {
        let is_full = !self.link.queue.push(letter);
        if is_full {
            self.link.cut();
        }
        is_full
    }

    /// Sends for a thread that must not wait for long: if the queue stays locked for longer than `patience`, nothing is
    /// sent.
    pub fn send_within(&self, patience: Duration, letter: Letter) {
        self.link.queue.push_within(patience, letter);
    }

    /// The connection is made anew, if there is one.
    pub fn reconnect(&self) {
        self.link.cut();
    }

    /// The member is there: a pause between attempts ends now.
    pub fn hurry(&self) {
        self.link.queue.end_pause();
    }

    pub fn stop(&self) {
        self.link.queue.stop();
        self.link.cut();
    }
}

fn run(shared: &Shared, link: &Arc<Link>, to: MemberId, address: &str) {
    let _watched = shared.pulses.begin(format!("peer-{to}"));
    let (mut told, mut told_gone): (Option<Moment>, Option<Moment>) = (None, None);
    while !link.queue.is_stopped() {
        let in_question = shared.endings.in_question(shared.env.clock.moment(), to);
        let connected = {
            let _rest = pulse::rest();
            connect(shared, to, address)
        };
        let pause = match connected {
            Ok((stream, session)) => {
                (told, told_gone) = (None, None);
                serve(shared, link, to, stream, session);
                // Perhaps it was our own doing: the next attempt tells.
                Duration::ZERO
            }
            Err(Failed::Refused(why)) => {
                tell(
                    shared,
                    &mut told,
                    || tracing::warn!(%to, address, why, "the other member is not one of ours"),
                );
                PAUSE_REFUSED
            }
            Err(Failed::Unreachable(error)) => {
                // A connection that was made and ended may have given way to others: that says nothing of the process.
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    tell(shared, &mut told_gone, || (shared.hear)(PeerEvent::Gone(to)));
                    in_question.into_iter().for_each(|life| find_out(shared, life));
                }
                tell(
                    shared,
                    &mut told,
                    || tracing::debug!(%to, address, %error, "the other member cannot be reached"),
                );
                let in_question = shared.endings.in_question(shared.env.clock.moment(), to);
                if in_question.is_some() { PAUSE_IN_QUESTION } else { PAUSE }
            }
        };
        if !pause.is_zero() {
            let _rest = pulse::rest();
            link.queue.pause(pause);
        }
    }
}

/// The port for members of this life has refused since the life came into question. If its port for clients does as well, the process has ended.
fn find_out(shared: &Shared, life: MemberLife) {
    let to = life.store.member;
    let rpc = shared.places.lock().get(&to).and_then(|places| places.rpc.clone());
    let Some((_, address)) = rpc.filter(|(of, _)| *of == life) else { return };
    let has_refused = {
        let _rest = pulse::rest();
        refuses(&address)
    };
    if has_refused && shared.endings.refused(shared.env.clock.moment(), life) {
        tracing::info!(%to, boot = life.boot, "the other member's process has ended, as its host shows");
        (shared.hear)(PeerEvent::Ended(life));
    }
}

/// Whether each address that the name has refuses a connection.
fn refuses(address: &str) -> bool {
    let refuses = |address: SocketAddr| match TcpStream::connect_timeout(&address, PROBE) {
        Ok(_) => false,
        Err(error) => error.kind() == io::ErrorKind::ConnectionRefused,
    };
    let addresses = address.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    addresses.is_ok_and(|addresses| !addresses.is_empty() && addresses.into_iter().all(refuses))
}

/// Runs `say` now and again while something goes on.
fn tell(shared: &Shared, told: &mut Option<Moment>, say: impl FnOnce()) {
    let now = shared.env.clock.moment();
    if told.is_none_or(|told| now.ms_since(told) >= REMIND_MS) {
        *told = Some(now);
        say();
    }
}

enum Failed {
    Unreachable(io::Error),
    Refused(String),
}

fn connect(shared: &Shared, to: MemberId, address: &str) -> Result<(TcpStream, Session), Failed> {
    let stream = open(shared, to, address).map_err(Failed::Unreachable)?;
    let mut nonce = [0; 32];
    shared.env.random.fill(&mut nonce);
    let mut bounded = Deadline::new(&stream, shared.env.clock.clone(), PATIENCE, PATIENCE);
    let (me, secret) = (&shared.identity, &shared.secret);
    let session = match handshake::connect(&mut bounded, me, secret, shared.terms(), to, nonce) {
        Ok(session) => session,
        Err(handshake::HandshakeError::Frame(frame::FrameError::Io(error))) => {
            return Err(Failed::Unreachable(error));
        }
        Err(error) => {
            shared.counters.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Failed::Refused(error.to_string()));
        }
    };
    if let Err(why) = shared.admit(&session.other) {
        shared.counters.refused.fetch_add(1, Ordering::Relaxed);
        return Err(Failed::Refused(why));
    }
    stream.set_write_timeout(Some(PATIENCE)).map_err(Failed::Unreachable)?;
    Ok((stream, session))
}

fn open(shared: &Shared, to: MemberId, address: &str) -> io::Result<TcpStream> {
    let mut failed = None;
    let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    shared.places.lock().entry(to).or_default().reached_at =
        addresses.iter().map(|address| address.ip().to_canonical()).collect();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                set_options(&stream)?;
                return Ok(stream);
            }
            // A name of which one address refuses and another does not answer refuses not.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => _ = failed.get_or_insert(error),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address")))
}

/// Sends until the connection ends.
fn serve(shared: &Shared, link: &Arc<Link>, to: MemberId, mut stream: TcpStream, session: Session) {
    let number = shared.connection_count.fetch_add(1, Ordering::Relaxed);
    *link.stream.lock() = stream.try_clone().ok().map(|stream| (number, stream));
    link.queue.open();
    if shared.is_stopping() {
        return;
    }
    if let Ok(copy) = stream.try_clone() {
        let link = link.clone();
        let watching = std::thread::Builder::new().name(format!("peer-end-{to}"));
        let started = watching.spawn(move || link.cut_when_ended(number, copy));
        if let Err(error) = started {
            tracing::warn!(%to, %error, "no thread notices at once when the connection ends");
        }
    }
    (shared.hear)(PeerEvent::Connected(to));
    tracing::debug!(%to, version = %session.version, "connected");
    let error = send_all(link, &mut stream, session);
    link.stream.lock().take();
    link.queue.close();
    let _ = stream.shutdown(Shutdown::Both);
    if link.queue.is_stopped() {
        return;
    }
    match error {
        Some(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            shared.counters.stuck.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%to, "the other member has taken nothing for {} ms", PATIENCE.as_millis());
        }
        Some(error) => tracing::debug!(%to, %error, "the connection has ended"),
        None => tracing::debug!(%to, "the connection was given up"),
    }
    (shared.hear)(PeerEvent::Gone(to));
}

/// `None`: the queue was closed by another thread.
fn send_all(link: &Link, stream: &mut TcpStream, session: Session) -> Option<io::Error> {
    let Session { version, mut sealer, .. } = session;
    let (mut letters, mut bytes) = (Vec::new(), BytesMut::new());
    while link.queue.take(BATCH_BYTES, &mut letters).is_ok() {
        bytes.clear();
        for letter in letters.drain(..).filter(|letter| version >= letter.since()) {
            let start = sealer.begin(&mut bytes);
            codec::encode(version, &letter, &mut bytes);
            sealer.seal(&mut bytes, start);
        }
        let written = {
            let _rest = pulse::rest();
            io::Write::write_all(stream, &bytes)
        };
        if let Err(error) = written {
            return Some(error);
        }
        if bytes.capacity() > 4 * BATCH_BYTES {
            bytes = BytesMut::new();
        }
    }
    None
}
