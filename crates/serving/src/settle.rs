//! When the block map hears of the edits that are applied.
//!
//! An active applies an edit before it has committed, and it may never commit: the active dies, or is deposed, and the
//! next one knows nothing of it. A replica that was deleted for such an edit would be lost all the same. So a change that
//! may cost replicas ([`BlockChange::may_cost_replicas`]) waits here until its edit has committed. Everything else is told
//! at once, for plans of the same turn ask about it. Until then the block map knows blocks that no file has any more: it
//! may still copy them, and nobody reads them.
//!
//! The waiting changes outlive the lead. An edit of a member that was deposed may commit under the next active, and
//! is not applied a second time then. If it is cut off, the server starts anew, and this is gone as the tree is.

use crate::broken::{Broken, Rules};
use base::{Block, InodeId, Moment, Sn};
use blocks::{BlockMap, BlockState, Location};
use namespace::{BlockChange, Namespace, UnknownReplicas};
use std::collections::VecDeque;

/// Changes that wait for their commit.
#[derive(Default)]
pub struct Unsettled {
    committed: Sn,
    /// The changes that wait, sorted by the numbers of their entries.
    waiting: VecDeque<(Sn, BlockChange)>,
}

impl Unsettled {
    /// Takes changes by edits in the log, in the order of the log. Those that have committed by now are taken out by
    /// the next [`Unsettled::take`].
    pub fn wait(&mut self, changes: impl IntoIterator<Item = (Sn, BlockChange)>) {
        self.waiting.extend(changes);
    }

    /// Everything up to `committed` has committed. An older word may come late.
    pub fn settle(&mut self, committed: Sn) {
        self.committed = self.committed.max(committed);
    }

    /// Takes out changes that have committed, in the order of the log, so many at most: they are to be told with
    /// [`tell`], before others are taken out. `None`: there are none.
    pub fn take(&mut self, count_max: usize) -> Option<impl Iterator<Item = BlockChange>> {
        let committed = self.committed;
        let count = self.waiting.partition_point(|(sn, _)| *sn <= committed).min(count_max);
        (count > 0).then(|| self.waiting.drain(..count).map(|(_, change)| change))
    }
}

/// Whether [`tell_ahead`] has anything to tell of these changes.
pub fn concern_plans(changes: &[BlockChange]) -> bool {
    let can_wait = |change: &BlockChange| {
        matches!(change, BlockChange::Removed(_) | BlockChange::ReplicationChanged { .. })
    };
    !changes.iter().all(can_wait)
}

/// Tells the block map what has perhaps not committed, as far as no replica is lost for it.
pub fn tell_ahead(blocks: &mut BlockMap, changes: &[BlockChange], targets: &[Location], now: Moment) {
    for change in changes {
        match change {
            BlockChange::UnknownReplicas(unknown) => hold_unknown(blocks, unknown, now),
            change if change.may_cost_replicas() => {}
            change => tell(blocks, change, targets, now),
        }
    }
}

/// The rest of the changes by the entry `sn`, for [`Unsettled::wait`].
pub fn left_to_tell(
    sn: Sn,
    changes: Vec<BlockChange>,
    rules: Rules,
) -> impl Iterator<Item = (Sn, BlockChange)> {
    let counts_as = if rules.break_rule(Broken::DeletionsDoNotWait) { Sn(0) } else { sn };
    changes.into_iter().filter(BlockChange::may_cost_replicas).map(move |change| (counts_as, change))
}

/// Tells the block map of a change that has committed. `targets` are the places of a block's pipeline, if it is known.
pub fn tell(blocks: &mut BlockMap, change: &BlockChange, targets: &[Location], now: Moment) {
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
fn tell_unknown(blocks: &mut BlockMap, unknown: &UnknownReplicas, now: Moment) {
    blocks.set_unknown_replicas(unknown.skipped(), unknown.held_since().is_some(), now);
}

/// As [`tell_unknown`], before the entry has committed: it tells which replicas stay, and not yet that others may go.
fn hold_unknown(blocks: &mut BlockMap, unknown: &UnknownReplicas, now: Moment) {
    let is_held = unknown.held_since().is_some() || blocks.are_deletions_held();
    blocks.set_unknown_replicas(unknown.skipped(), is_held, now);
}

/// Begins the block map of a server that starts. It commands nobody before its member serves. The blocks of the
/// namespace follow, one by one, with [`tell_existing`]; then the map is activated.
pub fn begin(blocks: &mut BlockMap, namespace: &Namespace, now: Moment) {
    blocks.become_listening(now);
    blocks.reserve(namespace.counts().blocks as usize);
    tell_unknown(blocks, namespace.unknown_replicas(), now);
    let (id, stamp) = namespace.last_allocated();
    blocks.set_last_allocated(id, stamp);
}

/// Tells of a block that the namespace has had since before the start. Where it is the data servers will say.
pub fn tell_existing(
    blocks: &mut BlockMap,
    block: Block,
    inode: InodeId,
    replication: u16,
    is_committed: bool,
    now: Moment,
) {
    let state = if is_committed { BlockState::Complete } else { BlockState::UnderConstruction };
    blocks.add_block(block, inode, replication, state, &[], now);
}
