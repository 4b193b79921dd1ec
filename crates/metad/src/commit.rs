//! The replies that wait for the commit watermark: those of writes, and of reads that saw something not committed.
//!
//! [`serving::CommitQueue`] decides; here it is shared by threads. What one commit releases is called in one go, outside
//! the lock.

use base::{Epoch, Sn};
use parking_lot::Mutex;
use serving::{CommitQueue, Waits};
use std::sync::atomic::{AtomicU64, Ordering};

type Release = Box<dyn FnOnce(Result<(), &str>) + Send>;

pub struct CommitWatch {
    /// The queue's watermark, for readers that only want to know whether they have to wait.
    committed: AtomicU64,
    queue: Mutex<CommitQueue<Release>>,
}

impl CommitWatch {
    pub fn new(committed: Sn) -> Self {
        Self { committed: AtomicU64::new(committed.0), queue: Mutex::new(CommitQueue::new(committed)) }
    }

    pub fn committed(&self) -> Sn {
        Sn(self.committed.load(Ordering::Acquire))
    }

    /// The reason why nothing will ever commit here again.
    pub fn failure(&self) -> Option<String> {
        self.queue.lock().failure().map(str::to_owned)
    }

    /// Calls `release` once `sn` has committed: at once when it has.
    pub fn when(&self, sn: Sn, release: impl FnOnce(Result<(), &str>) + Send + 'static) {
        let waits = self.queue.lock().wait(sn, Box::new(release));
        match waits {
            Waits::Kept => {}
            Waits::Committed(release) => release(Ok(())),
            Waits::Failed(release, reason) => release(Err(&reason)),
        }
    }

    /// Everything up to `sn` has committed. Two batches may say so at once, on two threads: the watermark
    /// only rises.
    pub fn advance(&self, sn: Sn) {
        let released = {
            let mut queue = self.queue.lock();
            let released = queue.advance(sn);
            self.committed.store(queue.committed().0, Ordering::Release);
            released
        };
        released.into_iter().for_each(|release| release(Ok(())));
    }

    /// Fails all that waits, because this member leads no more in `epoch`: those entries may commit or not, and another
    /// member will know. Until [`CommitWatch::resume`] nothing may wait here.
    pub fn suspend(&self, epoch: Epoch, reason: &str) {
        let released = self.queue.lock().suspend(epoch, reason);
        released.into_iter().for_each(|release| release(Err(reason)));
    }

    /// This member leads (again), in `epoch`.
    pub fn resume(&self, epoch: Epoch) {
        self.queue.lock().resume(epoch);
    }

    /// The journal refuses: all that wait are told, and all that come.
    pub fn fail(&self, reason: &str) {
        let released = self.queue.lock().fail(reason);
        released.into_iter().for_each(|release| release(Err(reason)));
    }
}
