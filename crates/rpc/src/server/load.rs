//! The work that a server has under way, for metrics.

use super::Shared;
use std::{
    collections::HashMap,
    sync::{Weak, atomic::Ordering},
};

/// A look at a server. It holds the server weakly, so that a service may keep one for its own server. For a server
/// that is gone, all counts are zero.
#[derive(Clone)]
pub struct Load {
    pub(super) shared: Weak<Shared>,
}

impl Load {
    pub fn connections(&self) -> usize {
        self.ask(|shared| shared.connections.lock().as_ref().map_or(0, HashMap::len))
    }

    /// Bytes of requests that are read or not yet answered, without a short chunk for each connection.
    pub fn request_bytes(&self) -> usize {
        self.ask(|shared| shared.room.request_bytes())
    }

    /// Bytes of replies that their clients have not read yet.
    pub fn unread_bytes(&self) -> usize {
        self.ask(|shared| shared.room.reply_bytes())
    }

    /// Bytes that clients have sent, and that were sent to them, since the start.
    pub fn traffic(&self) -> (u64, u64) {
        let of = |shared: &Shared| {
            (shared.received_bytes.load(Ordering::Relaxed), shared.sent_bytes.load(Ordering::Relaxed))
        };
        self.ask(of)
    }

    fn ask<T: Default>(&self, number: impl FnOnce(&Shared) -> T) -> T {
        self.shared.upgrade().map(|shared| number(&shared)).unwrap_or_default()
    }
}
