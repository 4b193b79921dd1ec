//! The queues of news about single replicas for the metadata servers, and their order.
//!
//! A finished block is reported at once: a closing client waits for that report. While one report is on its way,
//! changes are gathered and go out in the next; nothing else delays them. No client waits for beginnings and
//! removals, so these go along with the next report or heartbeat.

use base::Block;
use parking_lot::{Mutex, RwLock};
use proto::hdfs::DatanodeInfoProto;
use std::sync::Arc;
use tokio::sync::Notify;

/// Changes kept for a metadata server that does not answer. Beyond it they are forgotten, and a full block
/// report tells instead. By eye: some 100 MB at most.
const EVENT_COUNT_MAX: usize = 1_000_000;

/// Corrupt replicas kept for a metadata server that does not answer. Beyond it they are forgotten: the next reader or
/// copy finds them again.
const CORRUPT_COUNT_MAX: usize = 1_000;

/// A change of one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A client has begun to write it here.
    Receiving { at_once: bool },
    /// It is complete here. The hint names the server whose copy should go instead (balancing).
    Received { delete_hint: Option<String> },
    /// Its files are gone.
    Deleted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub storage_id: Arc<str>,
    pub block: Block,
    pub change: Change,
}

/// A replica, here or elsewhere, whose bytes are not what its checksums say.
#[derive(Clone, Debug, PartialEq)]
pub struct Corrupt {
    pub block: Block,
    pub node: DatanodeInfoProto,
    /// Empty when it is not known.
    pub storage_id: String,
}

/// The queues of one pool, one for each of its metadata servers. Cheap to clone; callable from any thread.
#[derive(Clone, Default)]
pub struct Reporter {
    queues: Arc<RwLock<Vec<Arc<Queue>>>>,
}

/// The news that one metadata server has not been told yet.
#[derive(Default)]
pub(crate) struct Queue {
    pending: Mutex<Pending>,
    wake: Notify,
}

#[derive(Default)]
struct Pending {
    events: Vec<Event>,
    corrupt: Vec<Corrupt>,
    wants_full_report: bool,
}

impl Reporter {
    /// Adds a queue for one more metadata server. It begins empty: the first full report tells that server what there is.
    pub(crate) fn add_queue(&self) {
        self.queues.write().push(Arc::default());
    }

    /// The queue of a metadata server, by its place among the pool's members.
    pub(crate) fn queue(&self, place: usize) -> Arc<Queue> {
        self.queues.read()[place].clone()
    }

    /// `at_once`: the metadata server must not take the replica for what it was before, and no new stamp tells it.
    pub fn notify_receiving(&self, storage_id: &Arc<str>, block: Block, at_once: bool) {
        self.notify(Event { storage_id: storage_id.clone(), block, change: Change::Receiving { at_once } });
    }

    pub fn notify_received(&self, storage_id: &Arc<str>, block: Block, delete_hint: Option<String>) {
        self.notify(Event {
            storage_id: storage_id.clone(),
            block,
            change: Change::Received { delete_hint },
        });
    }

    pub fn notify_deleted(&self, storage_id: &Arc<str>, block: Block) {
        self.notify(Event { storage_id: storage_id.clone(), block, change: Change::Deleted });
    }

    /// A replica that was read or received turned out corrupt: it is not to be read or copied from any more.
    pub fn notify_corrupt(&self, corrupt: Corrupt) {
        for queue in self.queues.read().iter() {
            let mut pending = queue.pending.lock();
            if pending.corrupt.len() < CORRUPT_COUNT_MAX && !pending.corrupt.contains(&corrupt) {
                pending.corrupt.push(corrupt.clone());
            }
            drop(pending);
            queue.wake.notify_one();
        }
    }

    /// Everything is to be told anew, soon.
    pub fn request_full_report(&self) {
        for queue in self.queues.read().iter() {
            queue.request_full_report();
        }
    }

    /// Has the waiting news go out now.
    pub fn flush(&self) {
        for queue in self.queues.read().iter() {
            queue.wake.notify_one();
        }
    }

    fn notify(&self, event: Event) {
        for queue in self.queues.read().iter() {
            queue.push(event.clone());
        }
    }
}

impl Queue {
    fn push(&self, event: Event) {
        let is_urgent = matches!(event.change, Change::Received { .. } | Change::Receiving { at_once: true });
        let mut pending = self.pending.lock();
        if pending.events.len() >= EVENT_COUNT_MAX {
            pending.events.clear();
            pending.wants_full_report = true;
        }
        pending.events.push(event);
        drop(pending);
        if is_urgent {
            self.wake.notify_one();
        }
    }

    /// Waits until there is urgent news.
    pub async fn urgent(&self) {
        self.wake.notified().await;
    }

    /// Takes up to `count` of the waiting events, in their order.
    pub fn take(&self, count: usize) -> Vec<Event> {
        let mut pending = self.pending.lock();
        let count = count.min(pending.events.len());
        let rest = pending.events.split_off(count);
        std::mem::replace(&mut pending.events, rest)
    }

    /// All corrupt replicas that wait to be told.
    pub fn take_corrupt(&self) -> Vec<Corrupt> {
        std::mem::take(&mut self.pending.lock().corrupt)
    }

    /// Gives back corrupt replicas that could not be told.
    pub fn put_back_corrupt(&self, mut unsent: Vec<Corrupt>) {
        self.pending.lock().corrupt.append(&mut unsent);
    }

    /// Gives back what could not be told; it goes before what came since.
    pub fn put_back(&self, mut unsent: Vec<Event>) {
        let mut pending = self.pending.lock();
        unsent.append(&mut pending.events);
        pending.events = unsent;
    }

    /// Forgets what waits: a full block report is about to tell it all.
    pub fn clear(&self) {
        self.pending.lock().events.clear();
    }

    /// Everything is to be told anew to this server, soon.
    pub fn request_full_report(&self) {
        self.pending.lock().wants_full_report = true;
        self.wake.notify_one();
    }

    /// Whether a full report has been asked for since the last call.
    pub fn take_full_report_request(&self) -> bool {
        std::mem::take(&mut self.pending.lock().wants_full_report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BlockId, GenerationStamp};

    fn block(id: u64) -> Block {
        Block { id: BlockId(id), generation_stamp: GenerationStamp(1001), length: 1 }
    }

    #[test]
    fn every_metadata_server_is_told_in_order() {
        let reporter = Reporter::default();
        (0..2).for_each(|_| reporter.add_queue());
        let (one, other) = (reporter.queue(0), reporter.queue(1));
        let storage: Arc<str> = "DS-1".into();
        reporter.notify_receiving(&storage, block(1), false);
        reporter.notify_received(&storage, block(1), None);
        reporter.notify_deleted(&storage, block(2));
        assert_eq!(one.take(usize::MAX).len(), 3);
        let first = other.take(2);
        other.put_back(first.clone());
        let all = other.take(10);
        assert_eq!(all[..2], first);
        assert_eq!(all[2].change, Change::Deleted);
        assert!(other.take(10).is_empty());
    }

    #[tokio::test]
    async fn a_finished_block_is_urgent_and_one_that_is_written_on_under_its_old_stamp() {
        let reporter = Reporter::default();
        reporter.add_queue();
        let queue = reporter.queue(0);
        let storage: Arc<str> = "DS-1".into();
        reporter.notify_receiving(&storage, block(1), false);
        let wait = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(wait, queue.urgent()).await.is_err());
        reporter.notify_received(&storage, block(1), None);
        queue.urgent().await;
        reporter.notify_receiving(&storage, block(1), true);
        queue.urgent().await;
    }

    #[test]
    fn a_queue_is_bounded() {
        let queue = Queue::default();
        let storage: Arc<str> = "DS-1".into();
        for id in 0..=EVENT_COUNT_MAX as u64 {
            queue.push(Event { storage_id: storage.clone(), block: block(id), change: Change::Deleted });
        }
        assert_eq!(queue.take(usize::MAX).len(), 1);
        assert!(queue.take_full_report_request());
        assert!(!queue.take_full_report_request());
    }
}
