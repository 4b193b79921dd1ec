//! Each message reads back from its bytes, and bytes that are no message are refused.

use base::{Chain, Epoch};
use bytes::{Bytes, BytesMut};
use dirlog::{
    Ask, AskId, Dix, Entry, HelloId, Mark, MarkKind, Point, Progress, Session, ToGroup, ToRoot,
    wire::{
        DIX_MAX, WHY_BYTES_MAX, WireError, decode_to_group, decode_to_root, encode_to_group, encode_to_root,
    },
};

const SESSION: Session = Session { root_epoch: Epoch(7), number: 3 };
const ASK: AskId = AskId { root_epoch: Epoch(7), number: 41 };
const HELLO: HelloId = HelloId { epoch: Epoch(12), number: 2 };
const POINT: Point = Point { dix: Dix(99), chain: Chain(0x1234_5678_9abc_def0) };
const PROGRESS: Progress = Progress { received: Dix(100), queued: Dix(102), committed: Dix(98) };

fn marks() -> Vec<Mark> {
    let kinds = [
        MarkKind::Name,
        MarkKind::Names,
        MarkKind::Passage,
        MarkKind::Inode,
        MarkKind::Files,
        MarkKind::Contents,
    ];
    kinds.iter().enumerate().map(|(at, kind)| Mark::new(*kind, u128::MAX - at as u128)).collect()
}

fn entries() -> Vec<Entry> {
    let first = Entry::after(POINT, Epoch(7), Some(ASK), marks().into(), Bytes::from_static(b"an edit"));
    let second = Entry::after(first.point(), Epoch(8), None, Vec::new().into(), Bytes::new());
    vec![first, second]
}

fn all_to_root() -> Vec<ToRoot> {
    vec![
        ToRoot::Hello { hello: HELLO, root_epoch: Epoch(7), applied: POINT, committed: Dix(98) },
        ToRoot::Received { session: SESSION, progress: PROGRESS },
        ToRoot::Renew { session: SESSION, number: u64::MAX, progress: PROGRESS },
        ToRoot::Held { session: SESSION, ask: ASK, fact: Bytes::from_static(b"free") },
        ToRoot::Held { session: SESSION, ask: ASK, fact: Bytes::new() },
        ToRoot::InTheWay { session: SESSION, ask: ASK },
    ]
}

fn all_to_group() -> Vec<ToGroup> {
    let welcome = |is_leased| ToGroup::Welcome {
        hello: HELLO,
        session: SESSION,
        end: Dix(DIX_MAX),
        visible: Dix(99),
        open_from: ASK,
        is_leased,
    };
    let renewed = |is_granted| ToGroup::Renewed {
        session: SESSION,
        number: 5,
        is_granted,
        visible: Dix(99),
        open_from: ASK,
    };
    let append = |entries| ToGroup::Append { session: SESSION, previous: POINT, entries, visible: Dix(99) };
    vec![
        ToGroup::SayHello { root_epoch: Epoch::LAST, denied: None },
        ToGroup::SayHello { root_epoch: Epoch(7), denied: Some(SESSION) },
        welcome(true),
        welcome(false),
        ToGroup::Unwelcome { hello: HELLO, root_epoch: Epoch(7), why: "entries are lost: größer".into() },
        append(entries()),
        append(Vec::new()),
        renewed(true),
        renewed(false),
        ToGroup::Ask(Ask {
            session: SESSION,
            ask: ASK,
            visible: Dix(99),
            marks: marks(),
            body: Bytes::from_static(b"?"),
        }),
        ToGroup::Release { session: SESSION, ask: ASK },
    ]
}

fn up(message: &ToRoot) -> Bytes {
    let mut bytes = BytesMut::new();
    encode_to_root(message, &mut bytes);
    bytes.freeze()
}

fn down(message: &ToGroup) -> Bytes {
    let mut bytes = BytesMut::new();
    encode_to_group(message, &mut bytes);
    bytes.freeze()
}

#[test]
fn every_message_reads_back() {
    for message in all_to_root() {
        assert_eq!(decode_to_root(up(&message)), Ok(message));
    }
    for message in all_to_group() {
        assert_eq!(decode_to_group(down(&message)), Ok(message));
    }
}

#[test]
fn a_message_that_is_cut_or_has_a_tail_is_refused() {
    let ups = all_to_root().iter().map(up).collect::<Vec<_>>();
    let downs = all_to_group().iter().map(down).collect::<Vec<_>>();
    let is_refused = |bytes: Bytes, is_up: bool| match is_up {
        true => decode_to_root(bytes).is_err(),
        false => decode_to_group(bytes).is_err(),
    };
    for (is_up, bytes) in ups.iter().map(|it| (true, it)).chain(downs.iter().map(|it| (false, it))) {
        for end in 0..bytes.len() {
            assert!(is_refused(bytes.slice(..end), is_up), "cut at {end} of {}", bytes.len());
        }
        let longer: Bytes = [&bytes[..], &[0]].concat().into();
        assert!(is_refused(longer, is_up));
        assert!(is_refused(bytes.clone(), !is_up), "it was for the other side");
    }
}

#[test]
fn numbers_that_cannot_be_are_refused_before_anything_is_taken_for_them() {
    let hello = up(&all_to_root()[0]);
    let with = |at: usize, new: &[u8]| {
        let mut bytes = hello.to_vec();
        bytes[at..at + new.len()].copy_from_slice(new);
        decode_to_root(bytes.into())
    };
    assert_eq!(with(0, &[2]), Err(WireError::Unknown { what: "version", number: 2 }));
    assert_eq!(with(1, &[99]), Err(WireError::Unknown { what: "the kind of message", number: 99 }));
    let epoch = with(2, &(Epoch::LAST.0 + 1).to_le_bytes());
    assert!(matches!(epoch, Err(WireError::Beyond { what: "Hello", .. })), "{epoch:?}");
    let dix = with(26, &(DIX_MAX + 1).to_le_bytes());
    assert!(matches!(dix, Err(WireError::Beyond { what: "point", .. })), "{dix:?}");

    // Four thousand million entries are promised, and none is there.
    let empty = ToGroup::Append { session: SESSION, previous: POINT, entries: Vec::new(), visible: Dix(99) };
    let mut bytes = down(&empty).to_vec();
    let count = bytes.len() - 4;
    bytes[count..].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(decode_to_group(bytes.into()), Err(WireError::Short("entries")));
}

#[test]
fn a_sentence_that_is_too_long_is_cut_between_two_letters() {
    let why = format!("{}ü", "a".repeat(WHY_BYTES_MAX - 1));
    let told = down(&ToGroup::Unwelcome { hello: HELLO, root_epoch: Epoch(7), why });
    match decode_to_group(told) {
        Ok(ToGroup::Unwelcome { why, .. }) => assert_eq!(why, "a".repeat(WHY_BYTES_MAX - 1)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bit_that_was_turned_gives_a_message_or_an_error() {
    for bytes in all_to_root().iter().map(up).chain(all_to_group().iter().map(down)) {
        for bit in 0..bytes.len() * 8 {
            let mut turned = bytes.to_vec();
            turned[bit / 8] ^= 1 << (bit % 8);
            // What can be read is written as it was read.
            if let Ok(message) = decode_to_root(turned.clone().into()) {
                assert_eq!(decode_to_root(up(&message)), Ok(message));
            }
            if let Ok(message) = decode_to_group(turned.into()) {
                assert_eq!(decode_to_group(down(&message)), Ok(message));
            }
        }
    }
}
