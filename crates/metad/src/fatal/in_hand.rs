//! The request that a thread works on, and what becomes of it when the thread panics.

use super::{Fatal, LOCK_PATIENCE};
use base::{CallId, Caller, ClientId};
use bytes::Bytes;
use parking_lot::Mutex;
use rpc::Call;
use std::{
    cell::RefCell,
    marker::PhantomData,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// How long the process waits for a note before it ends without one. Less than its end is put off for.
const NOTING: Duration = Duration::from_millis(400);

thread_local! {
    static IN_HAND: RefCell<Option<InHand>> = const { RefCell::new(None) };
}

/// The instances of [`Fatal`] in this process: one, except in tests. A request in hand names its instance by a
/// number, so that it need not touch a count that all threads share.
static NOTERS: Mutex<Vec<Weak<Fatal>>> = Mutex::new(Vec::new());

pub fn next_number() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

pub fn register(fatal: &Arc<Fatal>) {
    let mut noters = NOTERS.lock();
    noters.retain(|noter| noter.strong_count() > 0);
    noters.push(Arc::downgrade(fatal));
}

fn noter(number: u64) -> Option<Arc<Fatal>> {
    let noters = NOTERS.try_lock_for(LOCK_PATIENCE)?;
    noters.iter().filter_map(Weak::upgrade).find(|noter| noter.number == number)
}

/// A request, without what differs when it is repeated.
#[derive(Clone)]
pub struct InHand {
    noter: u64,
    pub(super) protocol: &'static str,
    pub(super) method: &'static str,
    pub(super) request: Bytes,
    pub(super) caller: Arc<Caller>,
    pub(super) client: ClientId,
    pub(super) call: CallId,
}

impl InHand {
    pub(super) fn new(noter: u64, call: &Call) -> Self {
        Self {
            noter,
            protocol: call.protocol,
            method: call.method,
            request: call.request.clone(),
            caller: call.caller.clone(),
            client: call.origin.client_id,
            call: call.origin.call_id,
        }
    }

    /// The calling thread works on it until the answer is dropped.
    #[must_use]
    pub fn hold(self) -> Holding {
        Holding { before: IN_HAND.replace(Some(self)), thread: PhantomData }
    }
}

/// See [`InHand::hold`].
pub struct Holding {
    before: Option<InHand>,
    /// This makes the type belong to one thread.
    thread: PhantomData<*const ()>,
}

impl Drop for Holding {
    fn drop(&mut self) {
        IN_HAND.set(self.before.take());
    }
}

/// For the panic hook, on the thread that panics: tells the other members which request this thread worked on, and writes
/// it down. A sentence about it, or `None` where it worked on none. Comes back within a second, whatever is locked; a slow
/// disk is not waited for.
pub fn note_request_in_hand() -> Option<String> {
    let in_hand = IN_HAND.try_with(|in_hand| in_hand.try_borrow().ok()?.clone()).ok()??;
    let fatal = noter(in_hand.noter)?;
    let (said, hears) = mpsc::channel();
    let noting = {
        let (fatal, in_hand) = (fatal.clone(), in_hand.clone());
        move || drop(said.send(fatal.note(&in_hand)))
    };
    // On a thread of its own, for this one waits for a disk or a lock no longer than it wants to.
    match thread::Builder::new().name("fatal-note".into()).spawn(noting) {
        Ok(_) => Some(hears.recv_timeout(NOTING).unwrap_or_else(|_| {
            format!("A {} request was in hand, and could not be noted within {NOTING:?}", in_hand.method)
        })),
        Err(_) => Some(fatal.note(&in_hand)),
    }
}
