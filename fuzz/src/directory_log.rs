//! Messages of the directory log, as the actives of groups read them from each other; and what the machines do with those that can be
//! read, be they never so strange.

use crate::Target;
use base::{Epoch, GroupId, Moment};
use bytes::{Bytes, BytesMut};
use dirlog::{
    Ask, AskId, Dix, Entry, HelloId, Home, Mark, MarkKind, Point, Progress, Root, Session, Settings, ToGroup,
    ToRoot, home, root, wire,
};

pub fn targets() -> [Target; 2] {
    [
        Target { name: "directory_log_to_root", samples: to_root, check: check_to_root },
        Target { name: "directory_log_to_group", samples: to_group, check: check_to_group },
    ]
}

const ROOT_EPOCH: Epoch = Epoch(2);
const HELLO: HelloId = HelloId { epoch: Epoch(5), number: 1 };
const FOLLOWER: GroupId = GroupId(2);
const NOW: Moment = Moment { ns: 5_000_000_000 };

/// The first session that a root gives.
const SESSION: Session = Session { root_epoch: ROOT_EPOCH, number: 1 };
const ASK: AskId = AskId { root_epoch: ROOT_EPOCH, number: 1 };

fn hello() -> ToRoot {
    ToRoot::Hello { hello: HELLO, root_epoch: ROOT_EPOCH, applied: Point::default(), committed: Dix(0) }
}

fn welcome() -> ToGroup {
    let (end, visible) = (Dix(0), Dix(0));
    ToGroup::Welcome { hello: HELLO, session: SESSION, end, visible, open_from: ASK, is_leased: true }
}

fn entry() -> Entry {
    let marks = [Mark::new(MarkKind::Name, 7), Mark::new(MarkKind::Passage, 8)];
    Entry::after(Point::default(), ROOT_EPOCH, None, marks.into(), Bytes::from_static(b"an edit"))
}

fn bytes(encode: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    encode(&mut bytes);
    bytes.to_vec()
}

fn to_root() -> Vec<Vec<u8>> {
    let progress = Progress { received: Dix(1), queued: Dix(1), committed: Dix(0) };
    let messages = [
        hello(),
        ToRoot::Received { session: SESSION, progress },
        ToRoot::Renew { session: SESSION, number: 1, progress },
        ToRoot::Held { session: SESSION, ask: ASK, fact: Bytes::from_static(b"free") },
        ToRoot::InTheWay { session: SESSION, ask: ASK },
    ];
    messages.iter().map(|message| bytes(|to| wire::encode_to_root(message, to))).collect()
}

fn to_group() -> Vec<Vec<u8>> {
    let previous = Point::default();
    let ask = Ask {
        session: SESSION,
        ask: ASK,
        visible: Dix(0),
        marks: vec![Mark::new(MarkKind::Files, 9)],
        body: Bytes::from_static(b"?"),
    };
    let messages = [
        ToGroup::SayHello { root_epoch: Epoch(3), denied: Some(SESSION) },
        welcome(),
        ToGroup::Unwelcome { hello: HELLO, root_epoch: ROOT_EPOCH, why: "entries are lost".into() },
        ToGroup::Append { session: SESSION, previous, entries: vec![entry()], visible: Dix(1) },
        ToGroup::Renewed { session: SESSION, number: 1, is_granted: true, visible: Dix(0), open_from: ASK },
        ToGroup::Ask(ask),
        ToGroup::Release { session: SESSION, ask: ASK },
    ];
    messages.iter().map(|message| bytes(|to| wire::encode_to_group(message, to))).collect()
}

fn check_to_root(bytes: &[u8]) -> bool {
    let Ok(message) = wire::decode_to_root(Bytes::copy_from_slice(bytes)) else { return false };
    let groups = [FOLLOWER, GroupId(3)];
    let mut root = Root::new(Settings::default(), ROOT_EPOCH, &groups, root::Recovered::default(), NOW);
    let mut tell = |message| {
        let effects = root.step(NOW, root::Input::Message { from: FOLLOWER, message });
        drop(effects);
        root.is_consistent().expect("a message breaks no rule of the machine");
    };
    tell(message.clone());
    // Again where a session stands, and once more.
    tell(hello());
    tell(message.clone());
    tell(message);
    let _ = root.step(NOW.plus_ms(3_000), root::Input::Tick);
    root.is_consistent().expect("time breaks no rule of the machine");
    true
}

fn check_to_group(bytes: &[u8]) -> bool {
    let Ok(message) = wire::decode_to_group(Bytes::copy_from_slice(bytes)) else { return false };
    let mut home = Home::new(Settings::default(), FOLLOWER, HELLO.epoch, Point::default(), 0, NOW);
    let mut tell = |input| {
        let effects = home.step(NOW, input);
        drop(effects);
        home.is_consistent().expect("a message breaks no rule of the machine");
    };
    tell(home::Input::OwnLease(NOW.plus_ms(10_000)));
    tell(home::Input::Message(message.clone()));
    tell(home::Input::Message(welcome()));
    tell(home::Input::Message(message.clone()));
    tell(home::Input::Message(message));
    let _ = home.step(NOW.plus_ms(3_000), home::Input::Tick);
    home.is_consistent().expect("time breaks no rule of the machine");
    true
}
