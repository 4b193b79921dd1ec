//! Tells the block map of the edits that are applied, at the right time.
//!
//! An active applies an edit before it has committed, and it may never commit: the active dies, or is deposed, and the
//! next one knows nothing of it. A replica that was deleted for such an edit would be lost all the same. So a change that
//! may cost replicas ([`BlockChange::may_cost_replicas`]) waits here until its edit has committed. Everything else is told
//! at once, for plans of the same turn ask about it. Until then the block map knows blocks that no file has any more: it
//! may still copy them, and nobody reads them.
//!
//! The waiting changes outlive the lead. An edit of a member that was deposed may commit under the next active, and
//! is not applied a second time then. If it is cut off, the server starts anew, and this is gone as the tree is.
//!
//! Lock order: the namespace, then the waiting changes, then the block map.

use ::blocks::{BlockMap, BlockState, Location};
use base::{Moment, Sn};
use env::pulse;
use namespace::{BlockChange, UnknownReplicas};
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc};

/// The changes that are told under one lock of the block map: about a millisecond.
const TOLD_AT_ONCE: usize = 1_000;

/// Changes that wait for their commit.
pub struct Unsettled {
    blocks: Arc<Mutex<BlockMap>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    committed: Sn,
    /// The changes that wait, sorted by the numbers of their entries.
    waiting: VecDeque<(Sn, BlockChange)>,
}

impl Unsettled {
    pub fn new(blocks: Arc<Mutex<BlockMap>>) -> Self {
        Self { blocks, state: Mutex::default() }
    }

    /// Takes changes by edits in the log. The block map hears of them when the edits have committed, which they may
    /// have by now.
    pub fn wait(&self, changes: Vec<(Sn, BlockChange)>, now: Moment) {
        if !changes.is_empty() {
            let mut state = self.state.lock();
            state.waiting.extend(changes);
            self.tell_committed(&mut state, now);
        }
    }

    /// Everything up to `committed` has committed: the block map hears of it. Two threads may say so at once, in any order.
    pub fn settle(&self, committed: Sn, now: Moment) {
        let mut state = self.state.lock();
        state.committed = state.committed.max(committed);
        self.tell_committed(&mut state, now);
    }

    /// The lock is held to the end: of two changes of a file's replication the later one must be told last.
    fn tell_committed(&self, state: &mut State, now: Moment) {
        let committed = state.committed;
        while state.waiting.front().is_some_and(|(sn, _)| *sn <= committed) {
            let count = state.waiting.partition_point(|(sn, _)| *sn <= committed).min(TOLD_AT_ONCE);
            let mut blocks = self.blocks.lock();
            for (_, change) in state.waiting.drain(..count) {
                tell(&mut blocks, &change, &[], now);
            }
            drop(blocks);
            pulse::step();
        }
    }
}

/// Tells the block map what has committed.
pub fn tell_committed(blocks: &Mutex<BlockMap>, changes: &[BlockChange], now: Moment) {
    if !changes.is_empty() {
        let mut blocks = blocks.lock();
        changes.iter().for_each(|change| tell(&mut blocks, change, &[], now));
    }
}

/// Tells the block map what has perhaps not committed, as far as no replica is lost for it. The rest goes to `later`.
pub fn tell_ahead(
    blocks: &Mutex<BlockMap>,
    sn: Sn,
    changes: Vec<BlockChange>,
    targets: &[Location],
    now: Moment,
    later: &mut Vec<(Sn, BlockChange)>,
) {
    let can_wait = |change: &BlockChange| {
        matches!(change, BlockChange::Removed(_) | BlockChange::ReplicationChanged { .. })
    };
    if !changes.iter().all(can_wait) {
        let mut blocks = blocks.lock();
        for change in &changes {
            match change {
                BlockChange::UnknownReplicas(unknown) => hold_unknown(&mut blocks, unknown, now),
                change if change.may_cost_replicas() => {}
                change => tell(&mut blocks, change, targets, now),
            }
        }
    }
    let waits = changes.into_iter().filter(BlockChange::may_cost_replicas);
    later.extend(waits.map(|change| (sn, change)));
}

fn tell(blocks: &mut BlockMap, change: &BlockChange, targets: &[Location], now: Moment) {
    match *change {
        BlockChange::Allocated { block, inode, replication } => {
            blocks.set_last_allocated(block.id, block.generation_stamp);
            blocks.add_block(block, inode, replication, BlockState::UnderConstruction, targets, now);
        }
        BlockChange::Committed { block } => blocks.commit(block, now),
        BlockChange::Completed { block } => blocks.complete(block.id, now),
        BlockChange::Restamped { block } => {
            blocks.set_last_allocated(block.id, block.generation_stamp);
            blocks.set_pipeline(block, targets);
        }
        BlockChange::Reopened { block } => blocks.reopen(block, &[]),
        BlockChange::Moved { block, inode } => blocks.set_inode(block, inode),
        BlockChange::ReplicationChanged { block, to, .. } => blocks.set_replication(block, to, now),
        BlockChange::Removed(block) => blocks.remove(&[block.id]),
        BlockChange::UnknownReplicas(ref unknown) => tell_unknown(blocks, unknown, now),
    }
}

/// Tells the block map which unknown replicas stay, before it hears of an id above the skipped ones.
pub fn tell_unknown(blocks: &mut BlockMap, unknown: &UnknownReplicas, now: Moment) {
    blocks.set_unknown_replicas(unknown.skipped(), unknown.held_since().is_some(), now);
}

/// Tells the block map about unknown replicas before the entry has committed: which ones stay, and not yet that others
/// may go. [`tell_unknown`] follows once it has committed.
fn hold_unknown(blocks: &mut BlockMap, unknown: &UnknownReplicas, now: Moment) {
    let is_held = unknown.held_since().is_some() || blocks.are_deletions_held();
    blocks.set_unknown_replicas(unknown.skipped(), is_held, now);
}

#[cfg(test)]
#[path = "settle/tests.rs"]
mod tests;
