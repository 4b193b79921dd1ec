//! `complete` calls that wait for a data server's report.

use crate::older_answers::Older;
use base::{BlockId, Moment};
use namespace::ops::complete::Request;
use parking_lot::Mutex;
use proto::hdfs as p;
use rpc::{Call, Replier};

/// Calls parked at most; more are answered "not yet" at once.
const PARKED_COUNT_MAX: usize = 100_000;

/// Calls to close a file whose last block was not reported yet.
pub struct Parked {
    waiters: Mutex<serving::Parked<Waiter>>,
}

/// A `complete` that waits, with all that is needed to plan it again.
pub struct Waiter {
    pub call: Call,
    pub request: Request,
    pub reply: Replier,
    pub deadline: Moment,
    pub older: Older,
}

impl Default for Parked {
    fn default() -> Self {
        Self { waiters: Mutex::new(serving::Parked::new(PARKED_COUNT_MAX)) }
    }
}

impl Parked {
    /// Holds a call until a replica of this block was reported. Gives it back when there are too many.
    pub fn park(&self, block: BlockId, waiter: Waiter) -> Option<Waiter> {
        self.waiters.lock().park(block, waiter.deadline, waiter).err()
    }

    /// Takes out the calls that wait for another replica of these blocks, which was reported just now. They are to be
    /// planned again.
    pub fn wake(&self, blocks: &[BlockId]) -> Vec<Waiter> {
        self.waiters.lock().wake(blocks)
    }

    /// Answers "not yet" to those that have waited long enough.
    pub fn expire(&self, now: Moment) {
        let expired = self.waiters.lock().expire(now);
        for waiter in expired {
            waiter.not_yet();
        }
    }

    /// All that wait.
    pub fn take_all(&self) -> Vec<Waiter> {
        self.waiters.lock().take_all()
    }
}

impl Waiter {
    /// Hadoop's client asks again a moment later.
    pub fn not_yet(self) {
        self.reply.ok(&p::CompleteResponseProto { result: false });
    }
}
