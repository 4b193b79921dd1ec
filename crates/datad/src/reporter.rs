//! What is to be told to the metadata servers about single replicas, and in which order.
//!
//! A finished block is reported at once: a closing client waits for that report. While one report is on its
//! way, what happens meanwhile is gathered and goes out in the next; nothing else delays it.

use base::Block;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;

/// A change of one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A client has begun to write it here.
    Receiving,
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

/// The queues, one for each metadata server. Cheap to clone; callable from any thread.
#[derive(Clone, Default)]
pub struct Reporter {
    queues: Arc<Mutex<Vec<Arc<Queue>>>>,
}

/// What one metadata server has not been told yet.
#[derive(Default)]
pub struct Queue {
    events: Mutex<Vec<Event>>,
    pub(crate) wake: Notify,
}

impl Reporter {
    pub fn notify_receiving(&self, storage_id: &Arc<str>, block: Block) {
        self.notify(Event { storage_id: storage_id.clone(), block, change: Change::Receiving });
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

    fn notify(&self, event: Event) {
        for queue in self.queues.lock().iter() {
            queue.events.lock().push(event.clone());
            queue.wake.notify_one();
        }
    }

    /// A queue for one more metadata server.
    pub(crate) fn subscribe(&self) -> Arc<Queue> {
        let queue = Arc::new(Queue::default());
        self.queues.lock().push(queue.clone());
        queue
    }
}

impl Queue {
    /// All that waits, in order.
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock())
    }

    /// Gives back what could not be told; it goes before what came since.
    pub(crate) fn put_back(&self, mut unsent: Vec<Event>) {
        let mut events = self.events.lock();
        unsent.append(&mut events);
        *events = unsent;
    }
}
