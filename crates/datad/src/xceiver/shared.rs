//! The state that the receiving and the speaking loop of one replica share.

use parking_lot::Mutex;
use pipeline::{Ack, Responder};
use std::sync::atomic::AtomicBool;
use tokio::sync::Notify;

/// The state that the receiving and the speaking loop share.
pub struct Shared {
    pub responder: Mutex<Responder>,
    /// Said upstream before anything else.
    pub urgent: Mutex<Vec<Ack>>,
    /// The speaking loop has something to look at.
    pub wake: Notify,
    /// There is room for further packets.
    pub room: Notify,
    pub has_ended: AtomicBool,
    /// An acknowledgement is partly sent: nothing else can be said any more.
    pub is_speaking: AtomicBool,
}

impl Shared {
    /// The mirror's connection is gone: upstream is told, once.
    pub fn lose_mirror(&self) {
        let ack = self.responder.lock().on_mirror_lost();
        self.urgent.lock().extend(ack);
        self.wake.notify_one();
    }
}
