//! Replies on their way out of a connection.
//!
//! Anyone who holds a [`Replier`](crate::Replier) appends here; only the connection's task writes to the
//! socket. Replies made while that task runs the calls of one read need no wake-up: it writes them all when
//! it is through. Replies made later wake it once, however many there are.

use crate::RpcError;
use base::Moment;
use bytes::BytesMut;
use parking_lot::Mutex;
use proto::rpc_frame::{ReplyTo, Status, put_error, put_success};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    wake: Notify,
    /// When the last answer was made, in nanoseconds of a [`Moment`].
    answered_ns: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Whole frames, in the order in which they were answered.
    replies: BytesMut,
    /// Calls handed to the service and not yet answered.
    in_flight: usize,
    /// The connection's task is at work and will look here before it sleeps.
    attended: bool,
    /// A fatal reply is the last one: what comes after it is dropped.
    ended: bool,
    /// The server is shutting down.
    shut: bool,
    /// The client has closed its side: it may still read, though hardly any does.
    left: bool,
    /// Since when nothing has been said on either side, and whether the client has not said yet who calls. None until
    /// the task first sleeps.
    quiet: Option<(Instant, bool)>,
}

/// The state of the outbox, as the connection's task finds it.
pub(crate) struct Glance {
    pub in_flight: usize,
    pub ended: bool,
    pub shut: bool,
}

impl Outbox {
    /// When the last answer was made; the clock's start before there is one.
    pub(crate) fn answered(&self) -> Moment {
        Moment { ns: self.answered_ns.load(Ordering::Relaxed) }
    }

    pub(crate) fn note_answer(&self, now: Moment) {
        self.answered_ns.store(now.ns, Ordering::Relaxed);
    }

    /// Counts a call that is about to be made. False where none may follow, after a fatal reply.
    pub(crate) fn expect_one(&self) -> bool {
        let mut state = self.state.lock();
        state.in_flight += usize::from(!state.ended);
        !state.ended
    }

    pub(crate) fn succeed(&self, to: ReplyTo, length: usize, put: impl FnOnce(&mut BytesMut)) {
        self.answer(|state| put_success(&mut state.replies, to, length, put));
    }

    pub(crate) fn refuse(&self, to: ReplyTo, error: &RpcError) {
        self.answer(|state| state.put_error(to, error));
    }

    /// Gives up a call that no thread answers any more, and sends an error in place of its reply. A server on its way
    /// out says nothing of it: the client finds its connection closed, and asks again elsewhere; a refusal it would
    /// believe.
    pub(crate) fn give_up(&self, to: ReplyTo, error: &RpcError) {
        self.answer(|state| {
            if !state.shut {
                state.put_error(to, error);
            }
        });
    }

    /// A refusal by the connection itself, of something that never became a call.
    pub(crate) fn refuse_uncounted(&self, to: ReplyTo, error: &RpcError) {
        let mut state = self.state.lock();
        if !state.ended {
            state.put_error(to, error);
        }
    }

    /// Bytes from the connection itself.
    pub(crate) fn put(&self, put: impl FnOnce(&mut BytesMut)) {
        let mut state = self.state.lock();
        if !state.ended {
            put(&mut state.replies);
        }
    }

    fn answer(&self, put: impl FnOnce(&mut State)) {
        let wake = {
            let mut state = self.state.lock();
            // The task waits for the last call when the client has said that it sends no more.
            state.in_flight -= 1;
            if !state.ended {
                put(&mut state);
            }
            let wake = !state.attended;
            state.attended = true;
            wake
        };
        if wake {
            self.wake.notify_one();
        }
    }

    /// Moves the replies to the end of `backlog`.
    pub(crate) fn drain(&self, backlog: &mut BytesMut) -> Glance {
        let mut state = self.state.lock();
        if backlog.is_empty() {
            std::mem::swap(backlog, &mut state.replies);
        } else if !state.replies.is_empty() {
            backlog.extend_from_slice(&state.replies);
            state.replies.clear();
        }
        Glance { in_flight: state.in_flight, ended: state.ended, shut: state.shut }
    }

    /// The task is about to sleep: the last that was heard or said was at `since`. False if there is something to drain
    /// first.
    pub(crate) fn doze(&self, since: Instant, is_stranger: bool) -> bool {
        let mut state = self.state.lock();
        state.quiet = Some((since, is_stranger));
        let nothing = state.replies.is_empty();
        state.attended = !nothing;
        nothing
    }

    /// The task is awake: no need to wake it.
    pub(crate) fn attend(&self) {
        self.state.lock().attended = true;
    }

    /// The client sends no more.
    pub(crate) fn leave(&self) {
        self.state.lock().left = true;
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        let state = self.state.lock();
        state.ended || state.left
    }

    /// Since when the connection is idle, and whether it is a stranger's still; `None` while it is not.
    pub(crate) fn idle_since(&self) -> Option<(Instant, bool)> {
        let state = self.state.lock();
        let is_idle = !state.attended && state.in_flight == 0 && !state.shut && !state.ended;
        state.quiet.filter(|_| is_idle)
    }

    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    pub(crate) fn shut(&self) {
        self.state.lock().shut = true;
        self.wake.notify_one();
    }

    /// The connection is gone: later answers cost nothing.
    pub(crate) fn abandon(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        state.attended = true;
        state.replies = BytesMut::new();
    }
}

impl State {
    fn put_error(&mut self, to: ReplyTo, error: &RpcError) {
        put_error(&mut self.replies, to, error.status, error.code, &error.class, &error.message);
        self.ended |= error.status == Status::Fatal;
    }
}
