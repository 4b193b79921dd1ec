//! Reads that look at a great deal: a summary of a large tree, a search through all lost blocks.
//!
//! Each is taken in slices of about half a millisecond, and the namespace is free after each of them: a write that
//! waits gets in between any two. The first slice is looked at in place, so that a small directory is answered as any
//! read. The rest is done by one thread, one slice of each walk in turn: a long walk takes no thread from those that
//! read connections, and a short one does not wait for it.

use super::{
    answers::Answer,
    calls::{self, Sight},
};
use crate::core::Core;
use base::{FsError, FsResult};
use env::pulse;
use namespace::Context;
use parking_lot::{Condvar, Mutex};
use rpc::{Call, Replier};
use serving::Tree;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Walks under way; who comes then is told to come again.
const WALKS_MAX: usize = 1_000;

/// The result of a slice.
pub enum Slice<A> {
    /// There is more to look at.
    More,
    Answer(A),
}

/// Looks at the next slice, and answers after the last one. True while there is more.
type Walk = Box<dyn FnMut(&Arc<Core>) -> bool + Send>;

#[derive(Default)]
pub struct Walks {
    state: Mutex<State>,
    wake: Condvar,
    slices: AtomicU64,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Walk>,
    is_closed: bool,
}

impl Walks {
    /// Walks that wait for their next slice.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Slices looked at so far, each with the namespace to itself and other readers.
    pub fn slices(&self) -> u64 {
        self.slices.load(Ordering::Relaxed)
    }

    /// Ends the thread. Walks under way are dropped, and their clients ask again elsewhere.
    pub fn close(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.is_closed = true;
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
        self.wake.notify_all();
    }

    fn push(&self, walk: Walk) {
        let mut state = self.state.lock();
        if !state.is_closed {
            state.waiting.push_back(walk);
            drop(state);
            self.wake.notify_one();
        }
    }

    fn next(&self) -> Option<Walk> {
        let mut state = self.state.lock();
        loop {
            pulse::step();
            if state.is_closed {
                return None;
            }
            match state.waiting.pop_front() {
                Some(walk) => return Some(walk),
                None => drop(self.wake.wait_for(&mut state, pulse::IDLE)),
            }
        }
    }
}

/// Runs on a thread of its own until the walks are closed.
pub fn run(core: &Arc<Core>) {
    while let Some(mut walk) = core.walks.next() {
        if walk(core) {
            core.walks.push(walk);
        }
    }
}

/// A read in slices. Its answer may rest on edits in flight, on any of them.
pub fn read<A: Answer>(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    mut look: impl FnMut(&Tree, &Context<'_>) -> FsResult<Slice<A>> + Send + 'static,
) {
    let waiting = core.walks.waiting();
    if waiting >= WALKS_MAX {
        return reply.fs_error(&FsError::Retry(format!(
            "{waiting} looks at large directories are under way already; try again in a moment."
        )));
    }
    // Before the first slice: a walk may outlast a reign, and then its answer mixes the trees of two.
    let Some(epoch) = calls::begin(core) else { return calls::hand_over(core, call, reply) };
    let mut reply = Some(reply);
    let mut walk = move |core: &Arc<Core>| {
        let Some(wanted) = reply.take_if(|reply| !reply.is_abandoned()) else { return false };
        core.walks.slices.fetch_add(1, Ordering::Relaxed);
        let _holding = core.in_hand(&call).hold();
        let slice = {
            let tree = core.tree();
            look(&tree, &core.context(&call.caller, Some(call.origin)))
        };
        let answer = match slice {
            Ok(Slice::More) => {
                reply = Some(wanted);
                return true;
            }
            Ok(Slice::Answer(answer)) => Ok(answer),
            Err(error) => Err(error),
        };
        calls::read_since(core, epoch, &call, wanted, Sight::Everything, |_, _| answer);
        false
    };
    if walk(core) {
        core.walks.push(Box::new(walk));
    }
}
