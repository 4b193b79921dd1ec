//! The connections that others make to this member. Each has a thread, which does the handshake and then reads.

use super::{
    PeerEvent, Shared, codec, frame,
    handshake::{self, Session},
    letter::Letter,
    strangers::{Entry, Place, Strangers},
    stream::{Deadline, set_options},
};
use env::pulse;
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io::{self, ErrorKind, Read},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The time limit for the whole handshake.
const HANDSHAKE: Duration = Duration::from_millis(2_000);
/// The time limit for the first frame, which a member sends as soon as it is connected.
const HELLO: Duration = Duration::from_millis(1_000);
/// Connections that wait to be accepted. The system may grant fewer.
const BACKLOG: i32 = 1_024;
/// Connections that have proved nothing yet.
const STRANGERS_MAX: usize = 64;
/// How long those that are on their way out are waited for at a time.
const ENDING: Duration = Duration::from_millis(1);
/// A line about refused strangers is written this often, however many there are.
const LINE_MS: u64 = 1_000;

pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Makes a waiting [`run`] look whether it shall end.
pub fn wake(address: SocketAddr) {
    let _ = TcpStream::connect_timeout(&address, Duration::from_millis(200));
}

pub fn run(shared: &Arc<Shared>, socket: &TcpListener) {
    // They take of what is kept back from clients: the members' own connections are to find some in any case.
    let strangers_max = STRANGERS_MAX.min(shared.env.descriptors.kept_back() / 8);
    let strangers = Strangers::new(strangers_max);
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        // A connection whose place was needed keeps its descriptor until its thread has noticed.
        while open.load(Ordering::Acquire) > 2 * strangers_max && !shared.is_stopping() {
            std::thread::sleep(ENDING);
        }
        let accepted = socket.accept();
        if shared.is_stopping() {
            return;
        }
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, most likely: connections that close make room.
                tracing::warn!(%error, "no connection of another member can be accepted");
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        let stream = Arc::new(stream);
        let address = from.ip().to_canonical();
        let place = match strangers.enter(stream.clone(), address, |from| shared.is_of_members(from)) {
            Entry::Taken(place, given_up) => {
                if let Some(other) = given_up {
                    refuse(shared, other, "it had proved nothing yet, and its place was needed");
                }
                place
            }
            Entry::Refused => {
                refuse(shared, address, "too many connections have proved nothing yet");
                continue;
            }
        };
        let (shared, open) = (shared.clone(), Open::new(&open));
        let started = std::thread::Builder::new()
            .name("peer-read".into())
            .spawn(move || serve(open, &shared, stream, address, place));
        if let Err(error) = started {
            tracing::warn!(%error, "no thread for another member's connection");
        }
    }
}

fn refuse(shared: &Shared, from: IpAddr, why: &str) {
    let count = shared.counters.refused.fetch_add(1, Ordering::Relaxed) + 1;
    let now = shared.env.clock.moment();
    let mut told = shared.refusal_told.lock();
    if told.is_none_or(|told| now.ms_since(told) >= LINE_MS) {
        *told = Some(now);
        tracing::warn!(%from, why, refused_so_far = count, "a connection to the members' port was refused");
    }
}

/// Counts the socket of a stranger.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// `open` comes first, so that it goes last: the socket is closed by then.
fn serve(open: Open, shared: &Arc<Shared>, stream: Arc<TcpStream>, from: IpAddr, place: Place) {
    if set_options(&stream).is_err() {
        return;
    }
    let mut nonce = [0; 32];
    shared.env.random.fill(&mut nonce);
    let mut bounded = Deadline::new(&stream, shared.env.clock.clone(), HELLO, HANDSHAKE);
    let (me, secret) = (&shared.identity, &shared.secret);
    let session = match handshake::accept(&mut bounded, me, secret, shared.terms(), nonce) {
        Ok(session) => session,
        Err(error) => return refuse(shared, from, &error.to_string()),
    };
    drop(place);
    drop(open);
    if let Err(why) = shared.admit(&session.other) {
        return refuse(shared, from, &why);
    }
    let number = shared.connection_count.fetch_add(1, Ordering::Relaxed);
    let Ok(copy) = stream.try_clone() else { return };
    let member = session.other.store.member;
    shared.places.lock().entry(member).or_default().came_from = Some(from);
    {
        let mut incoming = shared.incoming.lock();
        if let Some((_, old)) = incoming.insert(member, (number, copy)) {
            let _ = old.shutdown(Shutdown::Both);
        }
        // The old one may just have ended by itself.
        shared.endings.lives(session.other.life());
    }
    if let Some(sender) = shared.senders.lock().get(&member) {
        sender.hurry();
    }
    let life = session.other.life();
    let is_closed_there = !shared.is_stopping() && read_all(shared, session, &stream);
    let was_current = {
        let mut incoming = shared.incoming.lock();
        let is_current = incoming.get(&member).is_some_and(|(current, _)| *current == number);
        if is_current {
            incoming.remove(&member);
        }
        if is_current && is_closed_there && shared.is_trusted(life) {
            shared.endings.closed(shared.env.clock.moment(), life);
        }
        is_current
    };
    if was_current && !shared.is_stopping() {
        // Ours to it will hardly be better; the new one tells when the member is there again.
        (shared.hear)(PeerEvent::Gone(member));
        if let Some(sender) = shared.senders.lock().get(&member) {
            sender.reconnect();
        }
    }
}

/// Returns whether the other side's host has closed the connection.
fn read_all(shared: &Shared, session: Session, stream: &TcpStream) -> bool {
    let Session { other, version, mut opener, .. } = session;
    let member = other.store.member;
    let _watched = shared.pulses.begin(format!("peer-read of member {member}"));
    let mut stream = io::BufReader::with_capacity(256 << 10, Breathing::new(stream));
    while !shared.is_stopping() {
        let letter = match opener.read(&mut stream, frame::BODY_BYTES_MAX) {
            Ok(body) => {
                shared.counters.received_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
                codec::decode(version, body).map_err(|error| error.to_string())
            }
            Err(frame::FrameError::Io(error)) => {
                tracing::debug!(%member, %error, "a member's connection has ended");
                return matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset);
            }
            Err(error) => Err(error.to_string()),
        };
        match letter {
            Ok(Some(Letter::Group(message))) => {
                (shared.hear)(PeerEvent::Said { from: other.store, boot: other.boot, message });
            }
            Ok(Some(Letter::Watched { left_ms })) => (shared.hear)(PeerEvent::Watched { left_ms }),
            Ok(Some(Letter::FatalRequests(text))) => (shared.hear)(PeerEvent::Told { text }),
            Ok(None) => {
                shared.counters.unknown.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                shared.counters.malformed.fetch_add(1, Ordering::Relaxed);
                let _ = stream.get_ref().stream.shutdown(Shutdown::Both);
                tracing::error!(%member, error, "a member's message makes no sense; its connection ends");
                return false;
            }
        }
    }
    false
}

/// A stream whose reader shows that it lives while nothing comes.
struct Breathing<'a> {
    stream: &'a TcpStream,
}

impl<'a> Breathing<'a> {
    fn new(stream: &'a TcpStream) -> Self {
        // If this fails, the socket is broken, and the next read fails as well.
        let _ = stream.set_read_timeout(Some(pulse::IDLE));
        Self { stream }
    }
}

impl Read for Breathing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.stream.read(buffer);
            pulse::step();
            match read {
                // Nothing has come for a while. A peer that is gone shows as another kind of error, `TimedOut`.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}
