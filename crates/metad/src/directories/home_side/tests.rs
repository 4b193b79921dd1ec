use super::*;
use base::{CallId as RpcCallId, CallOrigin, Caller, ClientId, Timestamp, directory_log::MarkKind};
use bytes::Bytes;
use dirlog::{AskId, Point as Place, Session};
use std::{cell::RefCell, sync::Arc};

const ROOT_EPOCH: Epoch = Epoch(3);

struct Story {
    side: HomeSide,
    tree: Namespace,
    now: Moment,
    told: RefCell<Vec<ToRoot>>,
}

impl Story {
    fn step(&mut self, input: Input) -> After {
        let send = |_, bytes: Bytes| self.told.borrow_mut().push(wire::decode_to_root(bytes).unwrap());
        let mut after = After::default();
        self.side.step(self.now, self.now.plus_ms(60_000), input, &send, &mut after);
        after
    }

    fn judge(&mut self, call: &Call, mark: Mark) -> Judged {
        let marks = |seen: &mut Vec<Mark>| {
            seen.push(mark);
            true
        };
        let reply = Replier::captured(|_| ());
        self.side.judge(&self.tree, self.now, CallKind::Plan, call, reply, marks)
    }
}

/// A home with a lease, which has carried out nothing yet.
fn home() -> (Story, Session) {
    let tree = Namespace::new(1, "alice", "staff", Timestamp::default()).of_group(GroupId(2));
    let now = Moment::from_ms(10_000);
    let mut story = Story { side: HomeSide::new(&tree, Epoch(1), now), tree, now, told: RefCell::default() };
    story.step(Input::FromRoot(vec![ToGroup::SayHello { root_epoch: ROOT_EPOCH, denied: None }]));
    let hello = story.told.borrow().iter().find_map(|message| match message {
        ToRoot::Hello { hello, .. } => Some(*hello),
        _ => None,
    });
    let session = Session { root_epoch: ROOT_EPOCH, number: 1 };
    let welcome = ToGroup::Welcome {
        hello: hello.expect("a home says Hello"),
        session,
        end: Dix(0),
        visible: Dix(0),
        open_from: AskId { root_epoch: ROOT_EPOCH, number: 1 },
        is_leased: true,
    };
    story.step(Input::FromRoot(vec![welcome]));
    assert!(story.side.show().is_serving);
    (story, session)
}

fn call() -> Call {
    let origin = CallOrigin {
        client_id: ClientId([7; 16]),
        call_id: RpcCallId(12),
        retry_count: 0,
        repeats: 0,
        address: None,
    };
    let caller = Arc::new(Caller::simple("alice", &[]));
    Call::of_server(proto::protocol::CLIENT_NAMENODE, "create", Bytes::new(), caller, origin)
}

/// A file is to be made in a directory that is in doubt. When the directory is visible the call is carried out again, and later entries are kept out until
/// then. The new directory has another home, which gets the call. Nothing ordered is visible to anybody before this group has received it: it must not be
/// kept out for a call that does not come any more.
#[test]
fn entries_are_not_kept_out_for_a_call_that_another_group_answers() {
    let (mut story, session) = home();
    let mark = Mark::new(MarkKind::Name, 1);
    let first = Entry::after(Place::default(), ROOT_EPOCH, None, [mark].into(), Bytes::new());
    let second = Entry::after(first.point(), ROOT_EPOCH, None, [].into(), Bytes::new());
    let append = |previous: &Place, entries: Vec<Entry>, visible: u64| {
        let visible = Dix(visible);
        Input::FromRoot(vec![ToGroup::Append { session, previous: *previous, entries, visible }])
    };
    story.step(append(&Place::default(), vec![first.clone()], 0));
    assert!(matches!(story.judge(&call(), mark), Judged::Waits));
    let again = story.step(append(&first.point(), Vec::new(), 1)).again;
    assert_eq!(again.len(), 1, "the directory is there: the call is carried out again");
    story.step(append(&first.point(), vec![second], 1));
    assert_eq!(story.side.show().end, Dix(1), "the call comes before the next entry");

    assert!(story.side.forget(&call()));
    story.step(Input::Tick);
    assert_eq!(story.side.show().end, Dix(2));
    assert!(!story.side.forget(&call()), "once is enough");
}
