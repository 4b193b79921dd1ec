//! Tells the block map of the edits that are applied, at the right time: [`serving::settle`] says which is when, and here
//! are the locks. Many changes at once are told a slice at a time.
//!
//! Lock order: the namespace, then the waiting changes, then the block map.

use ::blocks::{BlockMap, Location};
use base::{Moment, Sn};
use env::pulse;
use namespace::BlockChange;
use parking_lot::Mutex;
use serving::{Rules, settle};
use std::sync::Arc;

/// The changes that are told under one lock of the block map: about a millisecond.
const TOLD_AT_ONCE: usize = 1_000;

/// Changes that wait for their commit.
pub struct Unsettled {
    blocks: Arc<Mutex<BlockMap>>,
    waiting: Mutex<settle::Unsettled>,
}

impl Unsettled {
    pub fn new(blocks: Arc<Mutex<BlockMap>>) -> Self {
        Self { blocks, waiting: Mutex::default() }
    }

    /// Takes changes by edits in the log. The block map hears of them when the edits have committed, which they may
    /// have by now.
    pub fn wait(&self, changes: Vec<(Sn, BlockChange)>, now: Moment) {
        if !changes.is_empty() {
            let mut waiting = self.waiting.lock();
            waiting.wait(changes);
            self.tell_committed(&mut waiting, now);
        }
    }

    /// Everything up to `committed` has committed: the block map hears of it. Two threads may say so at once, in any order.
    pub fn settle(&self, committed: Sn, now: Moment) {
        let mut waiting = self.waiting.lock();
        waiting.settle(committed);
        self.tell_committed(&mut waiting, now);
    }

    /// The lock is held to the end: of two changes of a file's replication the later one must be told last.
    fn tell_committed(&self, waiting: &mut settle::Unsettled, now: Moment) {
        while let Some(changes) = waiting.take(TOLD_AT_ONCE) {
            let mut blocks = self.blocks.lock();
            changes.for_each(|change| settle::tell(&mut blocks, &change, &[], now));
            drop(blocks);
            pulse::step();
        }
    }
}

/// Tells the block map what has committed.
pub fn tell_committed(blocks: &Mutex<BlockMap>, changes: &[BlockChange], now: Moment) {
    if !changes.is_empty() {
        let mut blocks = blocks.lock();
        changes.iter().for_each(|change| settle::tell(&mut blocks, change, &[], now));
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
    if settle::concern_plans(&changes) {
        settle::tell_ahead(&mut blocks.lock(), &changes, targets, now);
    }
    later.extend(settle::left_to_tell(sn, changes, Rules::default()));
}

#[cfg(test)]
#[path = "settle/tests.rs"]
mod tests;
