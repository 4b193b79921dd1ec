//! How members of a group reach each other.
//!
//! Each member listens on a port of its own and connects to every other member: it sends over the connection that it
//! made, and hears over the one that the other made. Plain threads, so that neither a disk nor a client delays a
//! beacon.
//!
//! - [`handshake`]: both sides prove that they know the cluster's secret, say who they are, and agree on a
//!   [`version`]; each tells its [`release`]. [`frame`]: its bytes on a stream, with a length and a checksum.
//! - [`letter`]: what is sent; [`codec`]: the same as bytes. [`sealed`]: bytes on a stream, with a length and a proof of their sender.
//! - [`sender`]: the queue and the thread towards one member. [`listener`]: those who connect to us; [`strangers`] are
//!   those of them who have proved nothing yet. [`endings`]: what both together say about a process that is gone.
//!
//! ```text
//! connection   hello, challenge, proof, verdict, frame*
//! frame        length u32, tag 16, body
//! ```

pub mod codec;
mod endings;
pub mod frame;
pub mod handshake;
pub mod letter;
mod listener;
mod queue;
pub mod release;
pub mod sealed;
mod sender;
mod strangers;
mod stream;
pub mod version;

pub use handshake::{Identity, Secret};
pub use release::Release;

use base::{Level, MemberId, MemberLife, MemberStore, Moment};
use bytes::Bytes;
use endings::Endings;
use env::{Env, pulse::Pulses};
use group::Message;
use handshake::{Other, Terms};
use letter::Letter;
use parking_lot::Mutex;
use sender::Sender;
use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};
use version::Versions;

/// Something that another member did.
#[derive(Debug)]
pub enum PeerEvent {
    /// Our connection to it was made: what was under way before may be lost.
    Connected(MemberId),
    /// Its address refuses, or a connection has ended: its process is gone, probably.
    Gone(MemberId),
    /// The host of this life has closed its connection and refuses new ones, or a later life of its store answers: its process has ended.
    Ended(MemberLife),
    Said {
        from: MemberStore,
        boot: u64,
        message: Message,
    },
    /// A member tells of requests that have ended a server.
    Told {
        text: Bytes,
    },
    /// A member keeps events for so many milliseconds: a client watches.
    Watched {
        left_ms: u64,
    },
}

/// Hears what the others do, on the thread of the connection; the next message is read when it returns.
pub type Hear = Arc<dyn Fn(PeerEvent) + Send + Sync>;

/// Counts of connections and messages that were refused or lost so far.
#[derive(Debug, Default)]
pub struct PeerCounters {
    /// Connections of strangers: wrong secret, cluster, group or version.
    pub refused: AtomicU64,
    /// Frames and messages that made no sense; each ended its connection.
    pub malformed: AtomicU64,
    /// Messages of a kind that is not known here: passed over.
    pub unknown: AtomicU64,
    /// Connections given up because the other side took nothing for too long.
    pub stuck: AtomicU64,
    /// Bytes of messages that members have sent here.
    pub received_bytes: AtomicU64,
}

/// Where a member listens, as `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub peer: String,
    /// Where the process of this life answers clients. `None`: refused connections are not taken for the end of its process.
    pub rpc: Option<(MemberLife, String)>,
}

/// The other members, as this one reaches them.
pub struct Peers {
    shared: Arc<Shared>,
    address: SocketAddr,
    listener: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    env: Env,
    identity: Identity,
    secret: Secret,
    hear: Hear,
    /// The threads of connections are watched.
    pulses: Pulses,
    counters: PeerCounters,
    stopping: AtomicBool,
    senders: Mutex<BTreeMap<MemberId, Sender>>,
    /// When a refusal was last written to the log.
    refusal_told: Mutex<Option<Moment>>,
    /// Connections that others have made, to end them: the newest of each member counts.
    incoming: Mutex<BTreeMap<MemberId, (u64, TcpStream)>>,
    connection_count: AtomicU64,
    endings: Endings,
    /// The group's level as known here, and the release that each member named when it last connected or was reached.
    known: Mutex<Known>,
    /// The addresses of the members: connections from there are preferred to those of others.
    places: Mutex<BTreeMap<MemberId, Places>>,
}

struct Known {
    level: Level,
    releases: BTreeMap<MemberId, Release>,
}

#[derive(Default)]
struct Places {
    reached_at: Vec<IpAddr>,
    /// The address from which the member has proved itself.
    came_from: Option<IpAddr>,
    rpc: Option<(MemberLife, String)>,
}

impl Peers {
    /// Listens. No connection is made before [`Peers::set_members`].
    ///
    /// # Errors
    /// `AddrInUse` or `AddrNotAvailable` if the address cannot be bound; or the system's reason why the listening
    /// thread cannot be started.
    pub fn start(
        env: Env,
        identity: Identity,
        secret: Secret,
        listen: SocketAddr,
        level: Level,
        hear: Hear,
        pulses: Pulses,
    ) -> io::Result<Self> {
        let socket = listener::listen(listen)?;
        let address = socket.local_addr()?;
        let shared = Arc::new(Shared {
            env,
            identity,
            secret,
            hear,
            pulses,
            counters: PeerCounters::default(),
            stopping: AtomicBool::new(false),
            senders: Mutex::new(BTreeMap::new()),
            refusal_told: Mutex::new(None),
            incoming: Mutex::new(BTreeMap::new()),
            connection_count: AtomicU64::new(0),
            endings: Endings::default(),
            known: Mutex::new(Known { level, releases: BTreeMap::new() }),
            places: Mutex::default(),
        });
        let listener = std::thread::Builder::new().name("peer-listen".into()).spawn({
            let shared = shared.clone();
            move || listener::run(&shared, &socket)
        })?;
        Ok(Self { shared, address, listener: Mutex::new(Some(listener)) })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    pub fn counters(&self) -> &PeerCounters {
        &self.shared.counters
    }

    /// Sets the other members and their addresses. Connections to members that are not named any more end.
    pub fn set_members(&self, members: &BTreeMap<MemberId, Address>) {
        {
            let mut places = self.shared.places.lock();
            places.retain(|member, _| members.contains_key(member));
            for (member, address) in members {
                places.entry(*member).or_default().rpc.clone_from(&address.rpc);
            }
        }
        let mut senders = self.shared.senders.lock();
        senders.retain(|member, sender| {
            let stays = members.get(member).is_some_and(|address| address.peer == sender.address());
            if !stays {
                sender.stop();
            }
            stays
        });
        for (member, address) in members {
            if *member != self.shared.identity.store.member {
                senders
                    .entry(*member)
                    .or_insert_with(|| Sender::start(self.shared.clone(), *member, address.peer.clone()));
            }
        }
    }

    /// Members that do not know this level are refused from now on.
    pub fn require_level(&self, level: Level) {
        self.shared.known.lock().level = level;
    }

    /// The level that other members must know.
    pub fn required_level(&self) -> Level {
        self.shared.known.lock().level
    }

    /// The release that each member named when it last connected or was reached since this process started.
    pub fn releases(&self) -> BTreeMap<MemberId, Release> {
        self.shared.known.lock().releases.clone()
    }

    /// Queues a letter. It is dropped when the member is not connected, or takes nothing for too long.
    pub fn send(&self, to: MemberId, letter: impl Into<Letter>) {
        if let Some(sender) = self.shared.senders.lock().get(&to) {
            let was_given_up = sender.send(letter.into());
            if was_given_up {
                self.shared.counters.stuck.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%to, "too much waits for the other member; its connection is made anew");
            }
        }
    }

    /// Queues a letter for all others that are connected. For a thread that must not wait, as in a process that is about to end with whatever its
    /// threads hold: what cannot be done within `patience` is left out.
    pub fn send_to_all(&self, patience: Duration, letter: &Letter) {
        if let Some(senders) = self.shared.senders.try_lock_for(patience) {
            for sender in senders.values() {
                sender.send_within(patience, letter.clone());
            }
        }
    }

    /// Ends all connections and waits for the listening thread.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        for (_, sender) in std::mem::take(&mut *self.shared.senders.lock()) {
            sender.stop();
        }
        for (_, (_, stream)) in std::mem::take(&mut *self.shared.incoming.lock()) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        listener::wake(self.address);
        if let Some(listener) = self.listener.lock().take() {
            let _ = listener.join();
        }
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn terms(&self) -> Terms {
        Terms { versions: Versions::OURS, level: self.known.lock().level }
    }

    /// A connection stands. The level may have risen while it was made.
    fn admit(&self, other: &Other) -> Result<(), String> {
        if let Some(ended) = self.endings.answered(self.env.clock.moment(), other.life()) {
            (self.hear)(PeerEvent::Ended(ended));
        }
        let mut known = self.known.lock();
        known.releases.insert(other.store.member, other.release.clone());
        other.release.may_take_part(other.store.member, known.level)
    }

    /// Whether the host of this life is believed when it shows that the process has ended.
    fn is_trusted(&self, life: MemberLife) -> bool {
        let places = self.places.lock();
        let rpc = places.get(&life.store.member).and_then(|places| places.rpc.as_ref());
        rpc.is_some_and(|(of, _)| *of == life)
    }

    fn is_of_members(&self, from: IpAddr) -> bool {
        let places = self.places.lock();
        places.values().any(|places| places.reached_at.contains(&from) || places.came_from == Some(from))
    }
}

#[cfg(test)]
mod tests;
