//! The blocks that files have, by exactly what has committed.

use base::{Block, BlockId, Entry, Sn, Timestamp};
use namespace::{BlockChange, Namespace};
use std::collections::{BTreeMap, BTreeSet};

/// For so long an order may be under way that a file's former replication led to.
const REPLICATION_KEPT_NS: u64 = 10_000_000_000;

#[derive(Clone, Debug)]
pub struct Needed {
    pub block: Block,
    /// The file's writer has said that the block is finished.
    pub is_complete: bool,
    pub replication: u16,
    /// The replication that the file had before, and until when.
    former: Vec<(u64, u16)>,
}

impl Needed {
    /// Whether a finished replica with this stamp and length is one of the block.
    pub fn is_good(&self, replica: &Block) -> bool {
        match self.is_complete {
            true => self.block == *replica,
            false => self.block.generation_stamp == replica.generation_stamp,
        }
    }

    /// The least number of replicas that an order may still be meant to leave.
    pub fn least_wanted(&self, now_ns: u64) -> u16 {
        let recent = self.former.iter().filter(|(until, _)| now_ns - until < REPLICATION_KEPT_NS);
        recent.map(|(_, replication)| *replication).chain([self.replication]).min().unwrap_or(1)
    }
}

#[derive(Default)]
pub struct NeededBlocks {
    namespace: Option<Namespace>,
    pub blocks: BTreeMap<BlockId, Needed>,
    /// Blocks that an entry has removed, in the order of things that is true now.
    pub removed: BTreeSet<BlockId>,
    /// Blocks of which the last replica was deleted while no file had them. What is given up may bring such a file back.
    pub gone: BTreeSet<BlockId>,
}

impl NeededBlocks {
    /// The last entry that is taken in.
    pub fn followed(&self) -> Sn {
        self.namespace.as_ref().map_or(Sn(0), |namespace| namespace.applied().sn)
    }

    /// Entries were given up: all is read anew.
    pub fn forget(&mut self) {
        *self = Self { gone: std::mem::take(&mut self.gone), ..Self::default() };
    }

    /// # Errors
    /// The entry cannot be applied.
    pub fn committed(&mut self, entry: &Entry, now_ns: u64) -> Result<(), String> {
        let namespace = self
            .namespace
            .get_or_insert_with(|| Namespace::new(1, "hdfs", "supergroup", Timestamp::from_ms(1)));
        let changes = serving::apply_entry(namespace, entry).map_err(|error| error.to_string())?;
        for change in changes {
            self.change(&change, now_ns);
        }
        Ok(())
    }

    fn change(&mut self, change: &BlockChange, now_ns: u64) {
        match *change {
            BlockChange::Allocated { block, replication, .. } => {
                let needed = Needed { block, is_complete: false, replication, former: Vec::new() };
                self.blocks.insert(block.id, needed);
            }
            BlockChange::Committed { block } | BlockChange::Completed { block } => {
                if let Some(needed) = self.blocks.get_mut(&block.id) {
                    needed.block = block;
                    needed.is_complete = true;
                }
            }
            BlockChange::ReplicationChanged { block, to, .. } => {
                if let Some(needed) = self.blocks.get_mut(&block) {
                    needed.former.push((now_ns, needed.replication));
                    needed.replication = to;
                }
            }
            BlockChange::Removed(block) => {
                self.blocks.remove(&block.id);
                self.removed.insert(block.id);
            }
            BlockChange::Restamped { .. }
            | BlockChange::Reopened { .. }
            | BlockChange::Moved { .. }
            | BlockChange::UnknownReplicas(_) => {}
        }
    }

    /// An operator has not yet allowed the deletions that a loss has held back.
    pub fn are_deletions_held(&self) -> bool {
        self.namespace.as_ref().is_some_and(|it| it.unknown_replicas().held_since().is_some())
    }

    /// No entry has ever given out this id.
    pub fn is_skipped(&self, id: BlockId) -> bool {
        self.namespace.as_ref().is_some_and(|it| it.unknown_replicas().is_skipped(id))
    }
}
