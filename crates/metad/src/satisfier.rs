//! Moves the replicas of files and directories for which a client has called `satisfyStoragePolicy`.
//!
//! [`namespace::satisfying`] decides which blocks come next, and the block map orders their moves. When a file or directory has been walked and none
//! of its blocks waits any more, its note goes: as in HDFS also if some blocks could not be moved. A new active begins again with all that are noted.

use crate::partition::Partition;
use base::InodeId;
use namespace::{
    ops::satisfy_storage_policy,
    satisfying::{Look, Walk},
};
use std::sync::Arc;

/// Blocks that wait at once to be moved. The walk goes on as they are done.
const BLOCKS_MAX: usize = 4_000;

#[derive(Default)]
pub struct Satisfier {
    walk: Walk,
}

impl Satisfier {
    /// To be called every half second or so.
    pub fn look(&mut self, partition: &Arc<Partition>) {
        if !partition.config.satisfies_policies
            || !partition.member.is_serving()
            || partition.blocks.lock().in_safe_mode()
        {
            self.walk = Walk::default();
            return;
        }
        let now = partition.moment();
        let room = BLOCKS_MAX.saturating_sub(partition.blocks.lock().unsatisfied());
        let look = self.walk.look(&partition.tree().namespace, room);
        let mut map = partition.blocks.lock();
        match look {
            Look::Idle => {}
            Look::Blocks(blocks) => map.satisfy(&blocks, now),
            Look::Withdrawn => map.stop_satisfying(),
            Look::Walked(inode) if map.unsatisfied() == 0 => {
                drop(map);
                end(partition, inode);
            }
            Look::Walked(_) => {}
        }
    }
}

/// The note goes, and with it the walk comes to its end. If it cannot go now, because the queue of changes is full, the next look tries again.
fn end(partition: &Arc<Partition>, inode: InodeId) {
    if partition.standing().admit_own().is_err() {
        return;
    }
    partition.write(Box::new(move |turn| {
        let edit = turn
            .plan_own(|namespace, context, _| satisfy_storage_policy::plan_end(namespace, context, inode));
        if let Some(edit) = edit {
            tracing::info!(%inode, "the storage policy is satisfied, as far as it can be");
            turn.apply(edit);
        }
    }));
}
