//! What a server has under way, for metrics.

use super::Shared;
use std::{collections::HashMap, sync::Arc};

/// A look at a server that may outlive it.
#[derive(Clone)]
pub struct Load {
    pub(super) shared: Arc<Shared>,
}

impl Load {
    pub fn connections(&self) -> usize {
        self.shared.connections.lock().as_ref().map_or(0, HashMap::len)
    }

    /// Bytes of requests that are read or not yet answered, without a short chunk for each connection.
    pub fn request_bytes(&self) -> usize {
        self.shared.room.request_bytes()
    }

    /// Bytes of replies that their clients have not read yet.
    pub fn unread_bytes(&self) -> usize {
        self.shared.room.reply_bytes()
    }
}
