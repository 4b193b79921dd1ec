//! Takes what is in the inbox to the member.
//!
//! The member's lock is held for the time of a few steps, never across a disk, a socket or the namespace.

use super::{
    driver::After,
    inbox::{Event, Patience},
    shared::Shared,
};
use group::Member;
use std::{cell::RefCell, sync::Arc};

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
