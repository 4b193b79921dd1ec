use super::*;
use base::{Epoch, GroupId};
use std::{
    io::{Read, Write},
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
    Node { peers: Peers::start(Env::production(), identity, secret, address, hear).unwrap(), events }
}

fn member(number: u32) -> Node {
    node(identity(number), secret("a secret of the cluster"))
}

impl Node {
    fn knows(&self, others: &[(u32, &Node)]) {
        let members =
            others.iter().map(|(number, node)| (MemberId(*number), node.peers.local_addr().to_string()));
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

    fn refused(&self) -> u64 {
        self.peers.counters().refused.load(Ordering::Relaxed)
    }
}

fn new_epoch(epoch: u64) -> Message {
    Message::NewEpoch { epoch: Epoch(epoch) }
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
    handshake::connect(&mut stream, &me, &secret("a secret of the cluster"), MemberId(1), [1; 32]).unwrap();
    frame::write(&mut stream, b"\xffnonsense").unwrap();
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
    handshake::connect(&mut stream, &me, &secret("a secret of the cluster"), MemberId(1), [1; 32]).unwrap();
    stream.write_all(&(frame::BODY_BYTES_MAX as u32 + 1).to_le_bytes()).unwrap();
    stream.write_all(&[0; 4]).unwrap();
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
            handshake::connect(&mut tap, &me, &secret("a secret of the cluster"), MemberId(1), nonce)
                .unwrap();
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
