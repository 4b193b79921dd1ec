//! The messages between members of a group, and the bytes that a stranger may send to their port.

use crate::Target;
use base::{Entry, EntryKind, Epoch, GroupId, Level, LogPoint, MemberId, MemberStore, Sn};
use bytes::{Bytes, BytesMut};
use group::{Append, Known, Message, Proposal};
use metad::{
    foreign::{FatalRequests, decode_takeovers, encode_takeovers},
    peers::{
        Identity, Secret, codec, frame,
        handshake::{self, Session, Terms},
        letter::Letter,
        version::Versions,
    },
};
use proto::clover::admin::TakeoverProto;
use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
};

const TERMS: Terms = Terms { versions: Versions::OURS, level: Level::FIRST };

pub fn targets() -> [Target; 4] {
    [
        Target { name: "fatal_requests", samples: fatal_requests, check: check_fatal_requests },
        Target { name: "takeovers", samples: takeovers, check: check_takeovers },
        Target { name: "member_message", samples: messages, check: check_message },
        Target { name: "member_handshake", samples: handshakes, check: check_handshake },
    ]
}

fn fatal_requests() -> Vec<Vec<u8>> {
    let line = |number: u64, user: &str| {
        let sha256 = "0123456789abcdef".repeat(4);
        let client = "07".repeat(16);
        format!(
            "panic number={number} at_ms=1763829600000 member=2 protocol=p.ClientProtocol method=mkdirs bytes=57 \
             sha256={sha256} user={user} client={client} call=-3\n"
        )
    };
    let head = "clover fatal requests 1\ncleared up_to=2\n";
    let all: String = (1..=70).map(|number| line(number, "alice")).collect();
    [head.to_owned(), format!("{head}{}", line(3, "bob")), format!("{head}{all}")]
        .map(String::into_bytes)
        .to_vec()
}

/// Notes that were read are written so that they read the same, and their text has a bound.
fn check_fatal_requests(bytes: &[u8]) -> bool {
    let Some((notes, _)) = FatalRequests::decode(bytes) else { return false };
    let text = notes.encode();
    assert!(text.len() <= 64 << 10, "{} bytes", text.len());
    assert_eq!(FatalRequests::decode(text.as_bytes()), Some((notes, 0)));
    true
}

fn takeovers() -> Vec<Vec<u8>> {
    let takeover = |epoch, trigger: &str| TakeoverProto {
        epoch,
        member: Some(2),
        trigger: trigger.into(),
        ended_at_ms: Some(1_763_000_000_000),
        ..TakeoverProto::default()
    };
    let all: Vec<_> = (1..=20).map(|epoch| takeover(epoch, "process gone")).collect();
    [&all[..], &all[..1], &[takeover(9, "")], &[]].map(encode_takeovers).to_vec()
}

/// Takeovers that were read are written as the same bytes.
fn check_takeovers(bytes: &[u8]) -> bool {
    let Ok(takeovers) = decode_takeovers(bytes) else { return false };
    assert_eq!(encode_takeovers(&takeovers), bytes);
    true
}

fn messages() -> Vec<Vec<u8>> {
    let (epoch, committed) = (Epoch(3), Sn(7));
    let entry = |payload: &'static [u8]| {
        Entry::after(LogPoint::default(), epoch, EntryKind::Operation, Bytes::from_static(payload))
    };
    let end = entry(b"end").point();
    let proposal = Proposal { kind: EntryKind::Checkpoint, payload: Bytes::from_static(b"checkpoint") };
    let entries = vec![entry(b"one"), entry(b""), entry(&[7; 300])];
    [
        Message::Append(Append { epoch, previous: end, entries: entries.clone(), committed }),
        Message::Promised { epoch, end, committed: end, is_suspect: true },
        Message::Beacon { epoch, round: 9, committed, lease_ms: 400 },
        Message::Grant {
            epoch,
            round: 9,
            is_granted: true,
            is_ready: true,
            end,
            committed: end,
            data_servers: 3,
        },
        Message::Fetched { epoch, previous: end, entries, committed },
        Message::FetchFailed { epoch, after: end, committed: end, is_gone: false },
        Message::Suggest { epoch, proposal },
        Message::Contradiction { epoch, end, committed: end },
        Message::Hello { known: Known { promised: epoch, end, committed: end } },
    ]
    .map(Letter::Group)
    .iter()
    .chain([&Letter::FatalRequests(Bytes::from_static(b"a line"))])
    .map(encoded)
    .collect()
}

fn encoded(letter: &Letter) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    codec::encode(Versions::OURS.newest, letter, &mut bytes);
    bytes.to_vec()
}

/// A message that was read is written as the same bytes.
fn check_message(bytes: &[u8]) -> bool {
    let Ok(Some(letter)) = codec::decode(Versions::OURS.newest, Bytes::copy_from_slice(bytes)) else {
        return false;
    };
    assert_eq!(encoded(&letter), bytes);
    true
}

const NONCE: [u8; 32] = [7; 32];

fn identity(member: u32) -> Identity {
    let store = MemberStore { member: MemberId(member), generation: 0 };
    Identity { cluster_id: "CID-1".into(), group: GroupId(1), store, boot: 4 }
}

fn secret() -> Secret {
    Secret::new(b"known to members only").expect("it is long enough")
}

/// The bytes of handshakes by a member that always draws the same number, with messages behind them.
fn handshakes() -> Vec<Vec<u8>> {
    let (near, mut far) = UnixStream::pair().expect("two ends");
    let other = std::thread::spawn(move || {
        handshake::accept(&mut far, &identity(1), &secret(), TERMS, NONCE).is_ok()
    });
    let mut said = Tap { stream: near, written: Vec::new() };
    let mut session = handshake::connect(&mut said, &identity(2), &secret(), TERMS, MemberId(1), [1; 32])
        .unwrap_or_else(|error| panic!("a member is let in: {error}"));
    assert!(other.join().expect("it ends"), "a member is let in");
    let mut frames = BytesMut::new();
    for body in &messages() {
        let start = session.sealer.begin(&mut frames);
        frames.extend_from_slice(body);
        session.sealer.seal(&mut frames, start);
    }
    said.written.extend_from_slice(&frames);
    vec![said.written]
}

/// A peer that is let in has sent exactly the bytes of a member. Then its frames are read, and those that are taken are
/// the member's own, in its own order.
fn check_handshake(bytes: &[u8]) -> bool {
    let mut stream = Deaf { said: bytes };
    let accepted = handshake::accept(&mut stream, &identity(1), &secret(), TERMS, NONCE);
    let Ok(Session { other, version, mut opener, .. }) = accepted else { return false };
    assert_eq!(
        (other.store, other.boot),
        (identity(2).store, identity(2).boot),
        "the proof covers the hello"
    );
    let mut sent = messages().into_iter();
    while let Ok(body) = opener.read(&mut stream, frame::BODY_BYTES_MAX) {
        assert_eq!(Some(&body[..]), sent.next().as_deref(), "a frame that the member did not send");
        assert!(codec::decode(version, body).is_ok(), "a member's message is understood");
    }
    true
}

/// Remembers what was said.
struct Tap {
    stream: UnixStream,
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
        Ok(())
    }
}

/// Says its piece and hears nothing.
struct Deaf<'a> {
    said: &'a [u8],
}

impl Read for Deaf<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.said.read(buffer)
    }
}

impl Write for Deaf<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
