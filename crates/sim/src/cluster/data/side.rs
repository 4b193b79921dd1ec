//! A member's side of data servers: its block map, which hears of edits by the rules that ship.

use base::{Block, Epoch, FsError, FsResult, Moment, Sn};
use blocks::{BlockMap, Config, Location, Placement, Reader};
use namespace::{BlockChange, BlockFacts, Namespace, Reply, Step, ops::add_block};
use serving::{
    Rules,
    settle::{self, Unsettled},
};

/// The replicas that a block gets which was given out before and has no place that is known here.
const USUAL_REPLICATION: u16 = 3;
/// The block size of all files.
const BLOCK_BYTES: u64 = 1 << 20;

pub struct BlockSide {
    pub map: BlockMap,
    unsettled: Unsettled,
    rules: Rules,
    /// The member's clock at its latest step.
    pub now: Moment,
}

impl BlockSide {
    /// The block map of a process that starts with this namespace.
    pub fn new(config: &Config, seed: u64, namespace: &Namespace, rules: Rules, now: Moment) -> Self {
        let mut map = BlockMap::new(config.clone(), seed, now);
        settle::begin(&mut map, namespace, now);
        namespace.for_each_block(&mut |block, inode, replication, committed| {
            settle::tell_existing(&mut map, block, inode, replication, committed, now);
        });
        map.activate(now);
        Self { map, unsettled: Unsettled::default(), rules, now }
    }

    pub fn tell_committed(&mut self, changes: &[BlockChange]) {
        changes.iter().for_each(|change| settle::tell(&mut self.map, change, &[], self.now));
    }

    /// An entry that may have committed, or not.
    pub fn tell_ahead(&mut self, sn: Sn, changes: Vec<BlockChange>, targets: &[Location]) {
        settle::tell_ahead(&mut self.map, &changes, targets, self.now);
        self.unsettled.wait(settle::left_to_tell(sn, changes, self.rules));
        self.tell_settled();
    }

    pub fn settle(&mut self, committed: Sn) {
        self.unsettled.settle(committed);
        self.tell_settled();
    }

    fn tell_settled(&mut self) {
        while let Some(changes) = self.unsettled.take(1_000) {
            changes.for_each(|change| settle::tell(&mut self.map, &change, &[], self.now));
        }
    }

    /// Stamps given out without a block, and what an epoch has raised.
    pub fn note_allocated(&mut self, namespace: &Namespace) {
        let (id, stamp) = namespace.last_allocated();
        self.map.set_last_allocated(id, stamp);
    }

    /// Chooses data servers for a new block. One that was given out before has its own, if they are known here.
    ///
    /// # Errors
    /// [`FsError::Io`] if there is no data server.
    pub fn place(
        &mut self,
        plan: add_block::Plan,
        now: Moment,
        targets: &mut Vec<Location>,
    ) -> FsResult<Step> {
        match plan {
            add_block::Plan::New { edit, block } => {
                *targets = self.choose(block.replication, block.block_size, now)?;
                Ok(Step::Edit(edit.into()))
            }
            add_block::Plan::Again(reply) => {
                if let Reply::Block { block, .. } = reply {
                    let located = self.map.locations(block.id, Reader::default(), 0, now);
                    *targets = located.map_or(Vec::new(), |located| located.locations);
                    if targets.is_empty() {
                        *targets = self.choose(USUAL_REPLICATION, BLOCK_BYTES, now)?;
                        self.map.set_pipeline(block, targets);
                    }
                }
                Ok(Step::NoChange(reply))
            }
            add_block::Plan::Refused { error, .. } => Err(error),
        }
    }

    fn choose(&mut self, replication: u16, block_size: u64, now: Moment) -> FsResult<Vec<Location>> {
        let placement = Placement {
            writer: Reader::default(),
            replication: replication.into(),
            block_size,
            excluded: &[],
            favoured: &[],
            existing: &[],
            avoid_writer: false,
            storage_policy: 0,
        };
        let targets = self.map.choose_targets(&placement, now);
        if targets.is_empty() { Err(FsError::Io("there is no data server".into())) } else { Ok(targets) }
    }

    pub fn set_commanding(&mut self, reign: Option<Epoch>) {
        self.map.set_commanding(reign, self.now);
    }
}

impl BlockFacts for BlockSide {
    fn is_complete(&self, block: &Block) -> bool {
        self.map.facts(block.id).is_some_and(|facts| facts.finalized_as(*block) >= 1)
    }

    fn recovered_length(&self, _: &Block) -> Option<u64> {
        None
    }

    fn is_located(&self, block: &Block) -> bool {
        self.map.was_placed(block.id)
    }
}
