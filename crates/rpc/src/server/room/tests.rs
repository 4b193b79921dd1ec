use super::*;
use bytes::BufMut;
use std::task::{Context, Poll, Waker};

const MIB: usize = 1 << 20;

fn inbox(room: &Arc<Room>) -> Inbox {
    Inbox::new(Arc::clone(room))
}

/// Whether what is awaited is there by now.
fn is_there(inbox: &mut Inbox) -> bool {
    let wait = std::pin::pin!(inbox.wait());
    matches!(wait.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
}

/// Reads so much and takes it as one frame.
fn fill(inbox: &mut Inbox, bytes: usize) -> (bytes::Bytes, Arc<Paid>) {
    assert!(inbox.bytes().capacity() >= bytes, "there is space for it");
    inbox.bytes_mut().put_bytes(7, bytes);
    (inbox.bytes_mut().split_to(bytes).freeze(), inbox.paid())
}

#[test]
fn a_connection_that_is_answered_pays_nothing() {
    let room = Arc::new(Room::new(MIB, MIB / 2, MIB));
    let mut inbox = inbox(&room);
    for _ in 0..100 {
        assert_eq!(inbox.make_space(None), Space::Ready);
        drop(fill(&mut inbox, SPARE_BYTES_MIN));
        assert_eq!(room.request_bytes(), 0);
        assert!(inbox.bytes().capacity() <= SHORT_BYTES_MAX);
    }
}

#[test]
fn a_connection_whose_calls_wait_pays_from_a_quarter_and_then_waits_for_their_answers() {
    let room = Arc::new(Room::new(MIB, MIB / 2, MIB));
    let mut inbox = inbox(&room);
    let mut calls = Vec::new();
    while inbox.make_space(None) == Space::Ready {
        calls.push(fill(&mut inbox, READ_BYTES));
        assert!(calls.len() < 100, "it is never made to wait");
    }
    assert_eq!(room.request_bytes(), MIB / 4);
    assert_eq!(calls.len(), 1 + MIB / 4 / READ_BYTES, "one was for nothing");
    assert!(!is_there(&mut inbox));
    // An answer to any of them goes on.
    drop(calls.remove(5));
    assert!(is_there(&mut inbox));
    calls.push(fill(&mut inbox, READ_BYTES));
    assert_eq!(inbox.make_space(None), Space::Wanted);
    // The one that was for nothing will do, too.
    drop(calls.remove(0));
    assert_eq!(inbox.make_space(None), Space::Ready);
    // Another connection is heard all the time.
    assert_eq!(self::inbox(&room).make_space(None), Space::Ready);
}

#[test]
fn long_requests_are_paid_for_whole_and_served_in_their_order() {
    let room = Arc::new(Room::new(4 * MIB, MIB, MIB));
    let mut inboxes: Vec<_> = (0..5).map(|_| inbox(&room)).collect();
    let spaces: Vec<_> = inboxes.iter_mut().map(|inbox| inbox.make_space(Some(MIB - LENGTH_BYTES))).collect();
    assert_eq!(spaces[..3], [Space::Ready; 3]);
    assert_eq!(spaces[3..], [Space::Wanted; 2]);
    assert_eq!(room.request_bytes(), 3 * MIB);
    assert!(!is_there(&mut inboxes[3]) && !is_there(&mut inboxes[4]));
    assert!(room.is_contended());

    let call = fill(&mut inboxes[0], MIB);
    inboxes[0].shrink();
    assert_eq!(room.request_bytes(), 3 * MIB, "it is not answered yet");
    drop(call);
    assert!(!is_there(&mut inboxes[4]), "another was first");
    assert!(is_there(&mut inboxes[3]));
    // A connection that gives its request up gives the room back.
    inboxes[1].clear();
    assert!(is_there(&mut inboxes[4]));
    assert!(!room.is_contended());
    assert_eq!(room.request_bytes(), 3 * MIB);
    drop(inboxes);
    assert_eq!(room.request_bytes(), 0);
}

#[test]
fn the_longest_request_fits_whatever_the_room_is() {
    let room = Arc::new(Room::new(0, 10 * MIB, MIB));
    let mut inbox = inbox(&room);
    assert_eq!(inbox.make_space(Some(10 * MIB)), Space::Ready);
    assert_eq!(inbox.bytes().capacity(), 10 * MIB + LENGTH_BYTES);
}

#[test]
fn what_was_read_of_a_long_request_is_kept() {
    let room = Arc::new(Room::new(4 * MIB, MIB, MIB));
    let mut inbox = inbox(&room);
    assert_eq!(inbox.make_space(None), Space::Ready);
    inbox.bytes_mut().put_slice(b"the beginning");
    assert_eq!(inbox.make_space(Some(MIB)), Space::Ready);
    assert_eq!(&inbox.bytes()[..], b"the beginning");
}
