use super::{
    handshake::{HandshakeError, Session, Terms},
    version::{Version, Versions},
    *,
};
use base::{Epoch, GroupId};
use bytes::BytesMut;
use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::Duration,
};

const SOON: Duration = Duration::from_secs(10);

struct Node {
    peers: Peers,
    events: Receiver<PeerEvent>,
}

fn identity(member: u32) -> Identity {
    Identity {
        cluster_id: "CID-1".into(),
        group: GroupId(1),
        store: MemberStore { member: MemberId(member), generation: 3 },
        boot: 7,
    }
}

fn secret(of: &str) -> Secret {
    Secret::new(of.as_bytes()).unwrap()
}

fn node(identity: Identity, secret: Secret) -> Node {
    node_at(identity, secret, "127.0.0.1:0".parse().unwrap())
}

fn node_at(identity: Identity, secret: Secret, address: SocketAddr) -> Node {
    let (sender, events) = channel();
    let hear: Hear = Arc::new(move |event| drop(sender.send(event)));
    Node {
        peers: Peers::start(
            Env::production(),
            identity,
            secret,
            address,
            Level::FIRST,
            hear,
            Pulses::default(),
        )
        .unwrap(),
        events,
    }
}

fn member(number: u32) -> Node {
    node(identity(number), secret("a secret of the cluster"))
}

impl Node {
    fn knows(&self, others: &[(u32, &Node)]) {
        let members = others.iter().map(|(number, node)| (MemberId(*number), node.address()));
        self.peers.set_members(&members.collect());
    }

    fn wait_for(&self, what: impl Fn(&PeerEvent) -> bool) -> PeerEvent {
        loop {
            let event = self.events.recv_timeout(SOON).expect("it happens soon");
            if what(&event) {
                return event;
            }
        }
    }

    fn address(&self) -> Address {
        Address { peer: self.peers.local_addr().to_string(), rpc: None }
    }

    fn refused(&self) -> u64 {
        self.peers.counters().refused.load(Ordering::Relaxed)
    }
}

fn new_epoch(epoch: u64) -> Message {
    Message::NewEpoch { epoch: Epoch(epoch) }
}

/// Connects to member 1, whose port `stream` has reached.
fn connect(stream: &mut TcpStream, me: &Identity, versions: Versions) -> Session {
    try_connect(stream, me, versions).unwrap_or_else(|error| panic!("a member is let in: {error}"))
}

fn try_connect(stream: &mut TcpStream, me: &Identity, versions: Versions) -> Result<Session, HandshakeError> {
    let secret = secret("a secret of the cluster");
    let terms = Terms { versions, level: Level::FIRST };
    handshake::connect(stream, me, &secret, terms, MemberId(1), [1; 32])
}

fn sealed(session: &mut Session, body: &[u8]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    let start = session.sealer.begin(&mut bytes);
    bytes.extend_from_slice(body);
    session.sealer.seal(&mut bytes, start);
    bytes.to_vec()
}

fn is_connected(event: &PeerEvent) -> bool {
    matches!(event, PeerEvent::Connected(_))
}

#[test]
fn what_one_says_the_other_hears_with_the_life_of_its_store() {
    let (one, two) = (member(1), member(2));
    one.knows(&[(2, &two)]);
    two.knows(&[(1, &one)]);
    one.wait_for(is_connected);
    two.wait_for(is_connected);
    one.peers.send(MemberId(2), new_epoch(5));
    let heard = two.wait_for(|event| matches!(event, PeerEvent::Said { .. }));
    let PeerEvent::Said { from, boot, message } = heard else { unreachable!() };
    assert_eq!((from, boot, message), (identity(1).store, 7, new_epoch(5)));
}

#[test]
fn a_member_that_ends_is_missed_and_found_again() {
    let (one, two) = (member(1), member(2));
    one.knows(&[(2, &two)]);
    two.knows(&[(1, &one)]);
    one.wait_for(is_connected);
    two.wait_for(is_connected);
    let address = two.peers.local_addr();
    drop(two);
    one.wait_for(|event| matches!(event, PeerEvent::Gone(MemberId(2))));
    let two = node_at(identity(2), secret("a secret of the cluster"), address);
    one.wait_for(is_connected);
    one.peers.send(MemberId(2), new_epoch(6));
    two.wait_for(|event| matches!(event, PeerEvent::Said { .. }));
}

/// Two members that are connected, and the port at which the second one answers clients.
struct Pair {
    one: Node,
    two: Node,
    rpc: TcpListener,
}

impl Pair {
    fn connected(trusts_refused_connections: bool) -> Self {
        let (one, two) = (member(1), member(2));
        let rpc = TcpListener::bind("127.0.0.1:0").unwrap();
        let rpc_address = rpc.local_addr().unwrap().to_string();
        let life = MemberLife { store: identity(2).store, boot: 7 };
        let address =
            Address { rpc: trusts_refused_connections.then_some((life, rpc_address)), ..two.address() };
        one.peers.set_members(&BTreeMap::from([(MemberId(2), address)]));
        two.knows(&[(1, &one)]);
        one.wait_for(is_connected);
        // What it says, it says over its own connection: that stands as well.
        two.wait_for(is_connected);
        two.peers.send(MemberId(1), new_epoch(1));
        one.wait_for(|event| matches!(event, PeerEvent::Said { .. }));
        Self { one, two, rpc }
    }
}

impl Node {
    /// The life that is said to have ended. For stories in which it is heard: on a busy machine that may take a while.
    fn ended(&self) -> Option<(u64, u64)> {
        self.ended_within(Duration::from_secs(20))
    }

    /// For stories in which nothing is to be heard.
    fn ended_soon(&self) -> Option<(u64, u64)> {
        self.ended_within(Duration::from_millis(600))
    }

    fn ended_within(&self, patience: Duration) -> Option<(u64, u64)> {
        let until = std::time::Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(std::time::Instant::now());
            match self.events.recv_timeout(left) {
                Ok(PeerEvent::Ended(life)) => return Some((life.store.generation, life.boot)),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

#[test]
fn a_process_whose_host_closes_and_refuses_has_ended() {
    let Pair { one, two, rpc } = Pair::connected(true);
    drop(rpc);
    drop(two);
    assert_eq!(one.ended(), Some((3, 7)));
    assert_eq!(one.ended_soon(), None, "it is told once");
}

#[test]
fn a_process_that_still_listens_for_clients_has_not_ended_yet() {
    let Pair { one, two, rpc } = Pair::connected(true);
    drop(two);
    std::thread::sleep(Duration::from_millis(100));
    drop(rpc);
    assert_eq!(one.ended(), Some((3, 7)), "it is asked again until both refuse");
    let Pair { one, two, rpc } = Pair::connected(true);
    drop(two);
    assert_eq!(one.ended_soon(), None);
    drop(rpc);
}

#[test]
fn refused_connections_say_nothing_where_they_are_not_trusted() {
    let Pair { one, two, rpc } = Pair::connected(false);
    drop(rpc);
    drop(two);
    assert_eq!(one.ended_soon(), None);
}

/// A member that has connected to the first one, which finds nobody at that member's addresses.
fn one_that_cannot_be_reached() -> (Node, TcpStream, Session) {
    let one = member(1);
    let nobody = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let life = MemberLife { store: identity(2).store, boot: 7 };
    let address = Address { peer: nobody(), rpc: Some((life, nobody())) };
    one.peers.set_members(&BTreeMap::from([(MemberId(2), address)]));
    let mut stream = TcpStream::connect(one.peers.local_addr()).unwrap();
    let mut session = connect(&mut stream, &identity(2), Versions::OURS);
    let mut body = BytesMut::new();
    codec::encode(session.version, &new_epoch(5).into(), &mut body);
    stream.write_all(&sealed(&mut session, &body)).unwrap();
    one.wait_for(|event| matches!(event, PeerEvent::Said { .. }));
    (one, stream, session)
}

#[test]
fn addresses_that_refuse_say_nothing_while_the_connection_stands() {
    let (one, stream, _) = one_that_cannot_be_reached();
    assert_eq!(one.ended_soon(), None);
    drop(stream);
    assert_eq!(one.ended(), Some((3, 7)));
}

#[test]
fn a_connection_that_this_side_ended_says_nothing() {
    let (one, stream, _) = one_that_cannot_be_reached();
    for (_, (_, stream)) in std::mem::take(&mut *one.peers.shared.incoming.lock()) {
        stream.shutdown(std::net::Shutdown::Both).unwrap();
    }
    assert_eq!(one.ended_soon(), None);
    drop(stream);
    let (one, mut stream, mut session) = one_that_cannot_be_reached();
    stream.write_all(&sealed(&mut session, b"nonsense")).unwrap();
    assert_eq!(one.ended_soon(), None, "it talked nonsense, and was cut off");
}

#[test]
fn a_later_life_of_a_member_says_that_the_earlier_one_has_ended() {
    let Pair { one, two, rpc } = Pair::connected(true);
    let address = two.peers.local_addr();
    drop(two);
    let two = node_at(Identity { boot: 8, ..identity(2) }, secret("a secret of the cluster"), address);
    two.knows(&[(1, &one)]);
    assert_eq!(one.ended(), Some((3, 7)));
    drop(rpc);
}

fn is_refused_by(stranger: Node, number: u32) {
    let one = member(1);
    stranger.knows(&[(number, &one)]);
    while one.refused() == 0 {
        match stranger.events.recv_timeout(Duration::from_millis(20)) {
            Ok(PeerEvent::Connected(_)) => panic!("a stranger was let in"),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(error) => panic!("{error}"),
        }
    }
    stranger.peers.send(MemberId(number), new_epoch(1 << 20));
    stranger.peers.stop();
    while let Ok(event) = one.events.try_recv() {
        assert!(!matches!(event, PeerEvent::Said { .. }), "a stranger was heard");
    }
}

#[test]
fn someone_with_another_secret_is_refused() {
    is_refused_by(node(identity(2), secret("a secret of someone else")), 1);
}

#[test]
fn a_member_of_another_cluster_is_refused() {
    let other = Identity { cluster_id: "CID-2".into(), ..identity(2) };
    is_refused_by(node(other, secret("a secret of the cluster")), 1);
}

#[test]
fn a_second_server_with_the_same_number_is_refused() {
    // It means member 2, and reaches the one whose number it bears itself.
    let two = member(2);
    let twin = node(identity(1), secret("a secret of the cluster"));
    let third = member(3);
    twin.knows(&[(3, &two)]);
    while two.refused() == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(third);
}

#[test]
fn a_web_browser_and_hostile_lengths_harm_nobody() {
    let one = member(1);
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0, 0, 0, 0, 0, 0, 0, 0]] {
        let mut stream = TcpStream::connect(one.peers.local_addr()).unwrap();
        stream.write_all(bytes).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() < 1024);
    }
    while one.refused() < 3 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let two = member(2);
    two.knows(&[(1, &one)]);
    two.wait_for(is_connected);
}

#[test]
fn bytes_that_make_no_sense_end_the_connection_of_a_member_and_no_other() {
    let one = member(1);
    let mut stream = TcpStream::connect(one.peers.local_addr()).unwrap();
    let me = identity(2);
    let mut session = connect(&mut stream, &me, Versions::OURS);
    stream.write_all(&sealed(&mut session, b"\x01nonsense")).unwrap();
    let mut rest = Vec::new();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let _ = stream.read_to_end(&mut rest);
    one.wait_for(|event| matches!(event, PeerEvent::Gone(MemberId(2))));
    assert_eq!(one.peers.counters().malformed.load(Ordering::Relaxed), 1);
}

#[test]
fn a_frame_over_the_limit_ends_the_connection_before_anything_is_allocated() {
    let one = member(1);
    let mut stream = TcpStream::connect(one.peers.local_addr()).unwrap();
    let me = identity(2);
    connect(&mut stream, &me, Versions::OURS);
    stream.write_all(&(frame::BODY_BYTES_MAX as u32 + 1).to_le_bytes()).unwrap();
    stream.write_all(&[0; 16]).unwrap();
    one.wait_for(|event| matches!(event, PeerEvent::Gone(MemberId(2))));
    assert_eq!(one.peers.counters().malformed.load(Ordering::Relaxed), 1);
}

#[test]
fn a_recorded_proof_is_worth_nothing_on_another_connection() {
    let one = member(1);
    let mut record = Vec::new();
    for nonce in [[1; 32], [1; 32]] {
        let stream = TcpStream::connect(one.peers.local_addr()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        if record.is_empty() {
            let mut tap = Tap { stream, written: Vec::new() };
            let me = identity(2);
            let secret = secret("a secret of the cluster");
            let terms = Terms { versions: Versions::OURS, level: Level::FIRST };
            handshake::connect(&mut tap, &me, &secret, terms, MemberId(1), nonce).unwrap();
            record = tap.written;
        } else {
            let mut stream = stream;
            let _ = stream.write_all(&record);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
        }
    }
    assert_eq!(one.refused(), 1, "the challenge is another one each time");
}

/// Remembers what was said.
struct Tap {
    stream: TcpStream,
    written: Vec<u8>,
}

impl Read for Tap {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for Tap {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.written.extend_from_slice(buffer);
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Stands between a member and the one it means, and says everything of the first connection that comes behind
/// the handshake twice.
fn repeater(to: SocketAddr) -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let (near, _) = socket.accept().unwrap();
        let far = TcpStream::connect(to).unwrap();
        let (mut answers, mut back) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        std::thread::spawn(move || drop(io::copy(&mut answers, &mut back)));
        let (mut near, mut far) = (near, far);
        // The hello and the proof.
        for _ in 0..2 {
            let body = frame::read(&mut near, 2_000).unwrap();
            frame::write(&mut far, &body).unwrap();
        }
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = near.read(&mut buffer) {
            far.write_all(&buffer[..count]).unwrap();
            let _ = far.write_all(&buffer[..count]);
        }
    });
    address
}

#[test]
fn what_somebody_in_between_repeats_is_not_heard_again() {
    let (one, two) = (member(1), member(2));
    let between = repeater(two.peers.local_addr());
    let between = Address { peer: between.to_string(), rpc: None };
    one.peers.set_members(&BTreeMap::from([(MemberId(2), between)]));
    one.wait_for(is_connected);
    one.peers.send(MemberId(2), new_epoch(5));
    two.wait_for(|event| matches!(event, PeerEvent::Said { .. }));
    let next = two.wait_for(|event| matches!(event, PeerEvent::Said { .. } | PeerEvent::Gone(_)));
    assert!(matches!(next, PeerEvent::Gone(MemberId(1))), "{next:?}");
    assert_eq!(two.peers.counters().malformed.load(Ordering::Relaxed), 1);
}

#[test]
fn a_frame_that_somebody_adds_without_the_key_ends_the_connection() {
    let one = member(1);
    let mut stream = TcpStream::connect(one.peers.local_addr()).unwrap();
    connect(&mut stream, &identity(2), Versions::OURS);
    let mut body = BytesMut::new();
    codec::encode(Version::FIRST, &new_epoch(1 << 20).into(), &mut body);
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&[0; 16]);
    bytes.extend_from_slice(&body);
    stream.write_all(&bytes).unwrap();
    let next = one.wait_for(|_| true);
    assert!(matches!(next, PeerEvent::Gone(MemberId(2))), "{next:?}");
}

#[test]
fn a_member_of_a_later_release_is_understood_and_its_new_messages_are_passed_over() {
    let one = member(1);
    let mut stream = TcpStream::connect(one.peers.local_addr()).unwrap();
    let later = Versions { oldest: Version::FIRST, newest: Version(u16::MAX) };
    let mut session = connect(&mut stream, &identity(2), later);
    assert_eq!(session.version, Versions::OURS.newest, "the newest that both speak");
    let mut known = BytesMut::new();
    codec::encode(session.version, &new_epoch(5).into(), &mut known);
    for body in [&b"\xffof a later release"[..], &known] {
        let frame = sealed(&mut session, body);
        stream.write_all(&frame).unwrap();
    }
    let next = one.wait_for(|_| true);
    assert!(matches!(next, PeerEvent::Said { .. }), "{next:?}");
    assert_eq!(one.peers.counters().unknown.load(Ordering::Relaxed), 1);
}

#[test]
fn each_side_hears_which_release_the_other_runs() {
    let (one, two) = (member(1), member(2));
    one.knows(&[(2, &two)]);
    one.wait_for(is_connected);
    assert_eq!(one.peers.releases().get(&MemberId(2)), Some(&Release::ours()));
    let started = std::time::Instant::now();
    while two.peers.releases().get(&MemberId(1)) != Some(&Release::ours()) {
        assert!(started.elapsed() < SOON);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The hello of a release that knows of no levels: nothing stands behind the cluster id.
fn hello_without_release(me: &Identity) -> Vec<u8> {
    let mut hello = b"clvrpeer".to_vec();
    for number in [3u16, 3, 5] {
        hello.extend_from_slice(&number.to_le_bytes());
    }
    hello.extend_from_slice(&me.group.0.to_le_bytes());
    hello.extend_from_slice(&me.store.member.0.to_le_bytes());
    hello.extend_from_slice(&me.store.generation.to_le_bytes());
    hello.extend_from_slice(&me.boot.to_le_bytes());
    hello.extend_from_slice(&1u32.to_le_bytes());
    hello.extend_from_slice(&[9; 32]);
    hello.push(me.cluster_id.len() as u8);
    hello.extend_from_slice(me.cluster_id.as_bytes());
    hello
}

#[test]
fn a_release_without_levels_is_talked_to_until_the_group_is_at_the_second_and_is_told_why_afterwards() {
    let one = member(1);
    let say_hello = || {
        let mut stream = TcpStream::connect(one.peers.local_addr()).unwrap();
        frame::write(&mut stream, &hello_without_release(&identity(2))).unwrap();
        frame::read(&mut stream, 1024).unwrap()
    };
    assert_eq!(say_hello()[0], 0, "a challenge");
    one.peers.require_level(Level(2));
    let refusal = say_hello();
    assert_eq!(refusal[0], 1);
    let text = String::from_utf8_lossy(&refusal[1..]).into_owned();
    assert!(text.contains("member 2 runs a release before 0.2.0") && text.contains("level 2"), "{text}");
    // It is refused as well where this member is the one that connects: it would be sent what it cannot read.
    let (mut near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
    let older = std::thread::spawn(move || {
        frame::read(&mut far, 1024).unwrap();
        let mut challenge = vec![0u8, 5, 0];
        challenge.extend_from_slice(&2u32.to_le_bytes());
        challenge.extend_from_slice(&3u64.to_le_bytes());
        challenge.extend_from_slice(&7u64.to_le_bytes());
        challenge.extend_from_slice(&[8; 32]);
        frame::write(&mut far, &challenge).unwrap();
    });
    let terms = Terms { versions: Versions::OURS, level: Level(2) };
    let secret = secret("a secret of the cluster");
    let error =
        handshake::connect(&mut near, &identity(1), &secret, terms, MemberId(2), [1; 32]).err().unwrap();
    assert!(error.to_string().contains("start it with release 0.2.0"), "{error}");
    older.join().unwrap();
}

#[test]
fn releases_with_nothing_in_common_say_what_to_do() {
    let one = member(1);
    let mut stream = TcpStream::connect(one.peers.local_addr()).unwrap();
    let later = Versions { oldest: Version(900), newest: Version(901) };
    let refusal = try_connect(&mut stream, &identity(2), later).err().unwrap().to_string();
    let wanted = format!(
        "the other side refuses: versions 900 to 901 of the members' protocol there and {} here have nothing in common: \
         go through a release between the two",
        Versions::OURS
    );
    assert_eq!(refusal, wanted);
}

#[test]
fn a_release_from_before_versions_were_agreed_on_is_told_to_stop_all() {
    let one = member(1);
    let mut stream = TcpStream::connect(one.peers.local_addr()).unwrap();
    let hello = [&b"clvrpeer"[..], &2u16.to_le_bytes(), &[0; 70]].concat();
    frame::write(&mut stream, &hello).unwrap();
    let answer = frame::read(&mut stream, 1_000).unwrap();
    assert_eq!(answer[0], 1, "no");
    let why = String::from_utf8_lossy(&answer[1..]);
    assert!(why.starts_with("version 2 of the members' protocol is too old for this release"), "{why}");
    assert!(why.contains("stop all members, and start all of them with one release"), "{why}");
}

/// Keeps connections open that say nothing, and makes those anew that are closed.
struct Idlers {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Idlers {
    fn start(to: SocketAddr, from: [u8; 4]) -> Self {
        const COUNT: usize = 100;
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, (begun, wait)) = (is_over.clone(), channel());
        let thread = std::thread::spawn(move || {
            let mut idle: Vec<TcpStream> = Vec::new();
            while !over.load(Ordering::Acquire) {
                // Nothing to read, and no end: it is open.
                let is_open = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
                idle.retain(|stream| stream.peek(&mut [0]).is_err_and(is_open));
                while idle.len() < COUNT {
                    idle.push(connect_from(from, to));
                }
                let _ = begun.send(());
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        wait.recv().unwrap();
        Self { is_over, thread: Some(thread) }
    }
}

impl Drop for Idlers {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let _ = self.thread.take().unwrap().join();
    }
}

fn connect_from(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.into()
}

#[test]
fn those_who_connect_and_say_nothing_keep_no_member_out() {
    let (one, two) = (member(1), member(2));
    let idlers = Idlers::start(one.peers.local_addr(), [127, 0, 0, 9]);
    two.knows(&[(1, &one)]);
    let connected = two.events.recv_timeout(Duration::from_millis(1_500)).expect("at once");
    assert!(is_connected(&connected), "{connected:?}");
    // And once more, after the connection was lost.
    two.peers.set_members(&BTreeMap::new());
    one.wait_for(|event| matches!(event, PeerEvent::Gone(MemberId(2))));
    two.knows(&[(1, &one)]);
    let connected = two.wait_for(|event| is_connected(event) || matches!(event, PeerEvent::Gone(_)));
    assert!(is_connected(&connected), "{connected:?}");
    drop(idlers);
}

/// `clover meta format --join --replace` on another machine, and the old process lives: it is cut off from the coordinator, or not told yet.
/// The record of the newcomer makes this member drop its connection, the old one does the same in return, and the newcomer connects.
#[test]
fn a_newer_generation_says_nothing_of_a_process_on_another_store() {
    let Pair { one, two, rpc } = Pair::connected(true);
    let newcomer =
        Identity { store: MemberStore { generation: 4, ..identity(2).store }, boot: 1, ..identity(2) };
    let three = node(newcomer, secret("a secret of the cluster"));
    // What `on_members` does with the newcomer's record.
    let life = MemberLife { store: MemberStore { generation: 4, ..identity(2).store }, boot: 1 };
    let address = Address { rpc: Some((life, three.peers.local_addr().to_string())), ..three.address() };
    one.peers.set_members(&BTreeMap::from([(MemberId(2), address)]));
    three.knows(&[(1, &one)]);
    let ended = one.ended_soon();
    // The old process lives, listens at both ports, and is heard again.
    two.peers.send(MemberId(1), new_epoch(9));
    drop((two, rpc));
    assert_eq!(ended, None, "a process that lives has ended");
}

#[test]
fn a_later_life_says_nothing_where_refusals_are_not_trusted() {
    let Pair { one, two, rpc } = Pair::connected(false);
    let address = two.peers.local_addr();
    drop(two);
    let two = node_at(Identity { boot: 8, ..identity(2) }, secret("a secret of the cluster"), address);
    two.knows(&[(1, &one)]);
    assert_eq!(one.ended_soon(), None);
    drop(rpc);
}

#[test]
fn threads_that_wait_for_ends_go_with_their_connections() {
    let count = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        tasks
            .filter(|task| {
                std::fs::read_to_string(task.path().join("comm")).unwrap_or_default().trim() == "peer-end-77"
            })
            .count()
    };
    let comes_to = |wanted| {
        let until = std::time::Instant::now() + SOON;
        while count() != wanted {
            assert!(std::time::Instant::now() < until, "{} threads and not {wanted}", count());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let (one, two) = (member(1), member(77));
    one.knows(&[(77, &two)]);
    two.knows(&[(1, &one)]);
    for _ in 0..30 {
        one.wait_for(is_connected);
        one.peers.shared.senders.lock().values().for_each(Sender::reconnect);
    }
    one.wait_for(is_connected);
    comes_to(1);
    drop(one);
    comes_to(0);
    drop(two);
}
