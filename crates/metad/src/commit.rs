//! The replies that wait for the commit watermark: those of writes, and of reads that saw something not committed.
//!
//! [`serving::CommitQueue`] decides; here it is shared by threads. What one commit releases is called in one go, outside
//! the lock.

use crate::partition::tree_lock;
use base::{Epoch, Sn, directory_log::Dix};
use parking_lot::Mutex;
use serving::{CommitQueue, Log, Until, Waits};
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

type Release = Box<dyn FnOnce(Result<(), &str>) + Send>;
/// Is told how far the own log has committed.
type Observer = Box<dyn Fn(Sn) + Send + Sync>;

/// The most bytes of reads' answers that wait for a commit, which may take long if members are away. Half of this is as
/// much as the largest listings of a thousand clients.
const READ_BYTES_MAX: usize = 256 << 20;

/// Room for the answer of a read that waits. Dropping it gives the room back.
pub struct Room {
    held: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

pub struct CommitWatch {
    /// The queue's watermark, for readers that only want to know whether they have to wait.
    committed: AtomicU64,
    /// Likewise that of the directory log.
    visible: AtomicU64,
    queue: Mutex<CommitQueue<Release>>,
    /// Bytes of reads' answers that wait.
    read_bytes: Arc<AtomicUsize>,
    observer: OnceLock<Observer>,
}

impl CommitWatch {
    pub fn new(committed: Sn) -> Self {
        Self {
            committed: AtomicU64::new(committed.0),
            visible: AtomicU64::new(0),
            queue: Mutex::new(CommitQueue::new(committed)),
            read_bytes: Arc::default(),
            observer: OnceLock::new(),
        }
    }

    /// `observer` is told of every commit from here on, on the thread that knows of it, behind the answers that the commit releases. It holds no
    /// lock.
    pub fn observe(&self, observer: impl Fn(Sn) + Send + Sync + 'static) {
        let _ = self.observer.set(Box::new(observer));
    }

    pub fn committed(&self) -> Sn {
        Sn(self.committed.load(Ordering::Acquire))
    }

    /// The reason why nothing will ever commit here again.
    pub fn failure(&self) -> Option<String> {
        self.queue.lock().failure().map(str::to_owned)
    }

    /// Room for the answer of a read that has to wait; `None` if the answers of others take it all. A single answer always
    /// has room. The answers of edits need none: edits are counted before they are taken.
    pub fn room_for(&self, bytes: usize) -> Option<Room> {
        let fits = |held: usize| {
            let sum = held.saturating_add(bytes);
            (held == 0 || sum <= READ_BYTES_MAX).then_some(sum)
        };
        self.read_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Room { held: self.read_bytes.clone(), bytes })
    }

    /// Everything that is certain by now.
    pub fn certain(&self) -> Until {
        let visible = Sn(self.visible.load(Ordering::Acquire));
        Until::own(self.committed()).and(Until::entry(Log::DIRECTORIES, visible))
    }

    /// Calls `release` once everything up to `until` is certain: at once when it is.
    pub fn when(&self, until: Until, release: impl FnOnce(Result<(), &str>) + Send + 'static) {
        tree_lock::must_be_free();
        let waits = self.queue.lock().wait(until, Box::new(release));
        match waits {
            Waits::Kept => {}
            Waits::Committed(release) => release(Ok(())),
            Waits::Failed(release, reason) => release(Err(&reason)),
        }
    }

    /// Everything up to `sn` has committed. Two batches may say so at once, on two threads: the watermark
    /// only rises.
    pub fn advance(&self, sn: Sn) {
        self.advance_log(Log::OWN, sn);
        if let Some(observer) = self.observer.get() {
            observer(sn);
        }
    }

    /// Every entry of the directory log up to this one is visible.
    pub fn advance_directories(&self, visible: Dix) {
        self.advance_log(Log::DIRECTORIES, Sn(visible.0));
    }

    fn advance_log(&self, log: Log, sn: Sn) {
        tree_lock::must_be_free();
        let released = {
            let mut queue = self.queue.lock();
            let released = queue.advance(log, sn);
            let certain = queue.certain();
            self.committed.store(certain.of(Log::OWN).0, Ordering::Release);
            self.visible.store(certain.of(Log::DIRECTORIES).0, Ordering::Release);
            released
        };
        released.into_iter().for_each(|release| release(Ok(())));
    }

    /// Fails all that waits, because this member leads no more in `epoch`: those entries may commit or not, and another
    /// member will know. Until [`CommitWatch::resume`] nothing may wait here.
    pub fn suspend(&self, epoch: Epoch, reason: &str) {
        tree_lock::must_be_free();
        let released = self.queue.lock().suspend(epoch, reason);
        released.into_iter().for_each(|release| release(Err(reason)));
    }

    /// This member leads (again), in `epoch`.
    pub fn resume(&self, epoch: Epoch) {
        self.queue.lock().resume(epoch);
    }

    /// The journal refuses: all that wait are told, and all that come.
    pub fn fail(&self, reason: &str) {
        tree_lock::must_be_free();
        let released = self.queue.lock().fail(reason);
        released.into_iter().for_each(|release| release(Err(reason)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_wait_have_room_up_to_the_bound_and_give_it_back() {
        let watch = CommitWatch::new(Sn(0));
        let huge = watch.room_for(READ_BYTES_MAX + 1).expect("a single answer always has room");
        assert!(watch.room_for(1).is_none());
        drop(huge);
        let half = watch.room_for(READ_BYTES_MAX / 2).expect("nothing waits");
        let other = watch.room_for(READ_BYTES_MAX / 2).expect("both fit");
        assert!(watch.room_for(1).is_none());
        watch.when(Until::own(Sn(1)), move |_| drop(half));
        assert!(watch.room_for(1).is_none(), "it waits for the first entry");
        watch.advance(Sn(1));
        drop(other);
        assert!(watch.room_for(READ_BYTES_MAX).is_some());
    }
}
