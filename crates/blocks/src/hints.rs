//! What a balancer wants: a replica has come to one server, so that another server's replica may go.
//!
//! The server that has received the replica tells both with one report. A hint never decides whether a replica goes, only which one: the
//! rules of [`crate::redundancy`] hold as without it. If nothing can be decided yet the hint waits with the block.

use base::BlockId;
use std::collections::BTreeMap;

/// Hints that wait. Where there are more, the replica to go is chosen as without a hint.
const WAITING_MAX: usize = 100_000;

/// Indices of two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The replica of this server may go.
    pub from: u32,
    /// This server has received one.
    pub to: u32,
}

#[derive(Default)]
pub struct Hints {
    /// The hint of the report that is being taken.
    pub told: Option<Hint>,
    waiting: BTreeMap<BlockId, Hint>,
}

impl Hints {
    /// The hint for the block: that of the report that is being taken, or the one that waits.
    pub fn of(&self, id: BlockId) -> Option<Hint> {
        self.told.or_else(|| self.waiting.get(&id).copied())
    }

    /// The block cannot be decided on now.
    pub fn keep(&mut self, id: BlockId) {
        if let Some(hint) = self.told
            && (self.waiting.len() < WAITING_MAX || self.waiting.contains_key(&id))
        {
            self.waiting.insert(id, hint);
        }
    }

    /// The hint for the block, which waits no longer.
    pub fn take(&mut self, id: BlockId) -> Option<Hint> {
        let hint = self.of(id);
        self.forget(id);
        hint
    }

    pub fn forget(&mut self, id: BlockId) {
        if !self.waiting.is_empty() {
            self.waiting.remove(&id);
        }
    }

    /// The server's index may be given to another server.
    pub fn forget_server(&mut self, server: u32) {
        self.waiting.retain(|_, hint| hint.from != server && hint.to != server);
    }

    pub fn clear(&mut self) {
        self.waiting.clear();
    }
}
