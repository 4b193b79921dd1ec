//! What a balancer wants: a replica has come to one server, so that another server's replica may go.
//!
//! The server that has received the replica tells both with one report. A hint never decides whether a replica goes, only which one: the
//! rules of [`crate::redundancy`] hold as without it. If nothing can be decided yet the hint waits with the block.

use crate::{map::BlockMap, newcomers::Trial};
use base::BlockId;
use std::{collections::BTreeMap, sync::Arc};

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
    /// That of the report that is being taken.
    pub told: Option<Hint>,
    waiting: BTreeMap<BlockId, Hint>,
}

impl Hints {
    fn of(&self, id: BlockId) -> Option<Hint> {
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

impl BlockMap {
    /// A replica was moved to a newcomer, whose word does not count yet. A decision now would delete the replica that
    /// was moved, because newcomers' replicas go first; and a balancer would move it again, for ever.
    pub(crate) fn awaits_proof(&self, id: BlockId) -> bool {
        let is_on_trial =
            |server: u32| matches!(self.servers.get(server).trial, Trial::Open | Trial::Unprovable);
        self.redundancy.hints.of(id).is_some_and(|hint| is_on_trial(hint.to))
    }

    /// Whether the replica at `kept[at]` may go as the hint says although no other is on its rack: the one that has come
    /// is on a rack of its own in return. So the block is on no fewer racks than before it was moved.
    pub(crate) fn gives_rack_for_rack(&self, kept: &[u32], at: usize, hint: Hint) -> bool {
        let server = |place: u32| self.storages.get(place).server;
        let racks_without = |left_out: usize| {
            let others = kept.iter().enumerate().filter(|(other, _)| *other != left_out);
            let mut racks: Vec<&Arc<str>> =
                others.map(|(_, place)| &self.servers.get(server(*place)).face.rack).collect();
            racks.sort_unstable();
            racks.dedup();
            racks.len()
        };
        server(kept[at]) == hint.from
            && kept
                .iter()
                .position(|place| server(*place) == hint.to)
                .is_some_and(|come| racks_without(at) >= racks_without(come))
    }
}
