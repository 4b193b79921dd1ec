//! The place where inputs from all threads meet the one member.
//!
//! No thread waits for the member's lock to hand an input in: it goes into the inbox, and the holder of the lock
//! takes it from there before letting go. The lock is held for the time of a few steps, never across a disk, a socket
//! or the namespace.

use super::{driver::After, shared::Shared};
use base::Durable;
use group::{Effects, Input, Member};
use parking_lot::Mutex;
use std::{cell::RefCell, collections::VecDeque, sync::Arc};

/// An input for the member.
pub enum Event {
    Input(Input),
    /// The writes of this step are durable.
    Durable(Box<Effects>, Durable),
    DiskFailed(String),
}

/// Whether a thread may wait for a disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// It must not: it ticks, reads a connection, or runs the journal's callbacks.
    None,
    Disk,
    /// Not now, for it holds the namespace's lock: it does what is left for the disk as soon as it does not.
    Later,
}

#[derive(Default)]
pub struct Inbox {
    waiting: Mutex<VecDeque<Event>>,
}

impl Inbox {
    pub fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }
}

/// Events in the inbox beyond which a thread that brings more waits for the member: what others send must not
/// fill the memory.
const WAITING_MAX: usize = 4_096;

thread_local! {
    /// The members whose events this thread deals with.
    static PUMPING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

struct Entered;

impl Entered {
    fn new(member: usize) -> Option<Self> {
        PUMPING.with_borrow_mut(|pumping| {
            let is_new = !pumping.contains(&member);
            is_new.then(|| {
                pumping.push(member);
                Self
            })
        })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        PUMPING.with_borrow_mut(|pumping| pumping.pop());
    }
}

impl Shared {
    /// Hands one event in, and sees to it that a thread deals with it.
    pub fn push(self: &Arc<Self>, event: Event, patience: Patience) {
        let is_full = {
            let mut waiting = self.inbox.waiting.lock();
            waiting.push_back(event);
            waiting.len() > WAITING_MAX
        };
        if is_full {
            drop(self.member.lock());
        }
        self.pump(patience);
    }

    /// Looks at the member. Inputs that were handed in meanwhile were left to the holder of the lock. A mere look
    /// does not deal with them, because it may be under the namespace's lock. The disk's thread does.
    pub fn look<R>(&self, look: impl FnOnce(&Member) -> R) -> R {
        let result = look(&self.member.lock());
        if !self.inbox.is_empty() {
            self.disk.wake();
        }
        result
    }

    /// Deals with what waits, unless another thread is at it: that one looks again before it ends.
    pub fn pump(self: &Arc<Self>, patience: Patience) {
        // A coordinator in this process answers at once: the pump further up this very stack looks again.
        let Some(_entered) = Entered::new(Arc::as_ptr(self) as usize) else { return };
        while !self.inbox.is_empty() {
            let Some(mut member) = self.member.try_lock() else { return };
            let mut after = After::default();
            self.drain(&mut member, &mut after);
            self.note_what_stands(&member, &mut after);
            drop(member);
            self.follow_up(after, patience);
        }
    }

    /// Under the member's lock.
    pub fn drain(self: &Arc<Self>, member: &mut Member, after: &mut After) {
        // A bounded number, so that what follows the lock is not put off for ever.
        for _ in 0..WAITING_MAX {
            let Some(event) = self.inbox.waiting.lock().pop_front() else { return };
            self.on_event(member, event, after);
        }
    }
}
