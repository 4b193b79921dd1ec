//! The locations of a file's blocks, as answers tell them.

use crate::{datanodes::wire, partition::Partition, post::places::Foreign};
use ::blocks::{BlockMap, BlockState, Reader};
use base::Moment;
use namespace::{FileBlock, FileBlocks};
use proto::answers::{LocatedBlocks, Put, Writer};

/// The blocks of a file with their replicas, the nearest to `host` first. The block map is locked while they are written.
pub struct Places<'a> {
    pub partition: &'a Partition,
    pub blocks: FileBlocks,
    pub host: &'a str,
    /// Takes note of the blocks whose places only other groups know.
    pub foreign: &'a Foreign,
}

/// A usual block with three replicas.
const BLOCK_BYTES: usize = 640;

impl Put for Places<'_> {
    fn about(&self) -> usize {
        64 + (self.blocks.blocks.len() + 1) * BLOCK_BYTES
    }

    fn put(self, out: &mut Writer) {
        let Self { partition, blocks, host, foreign } = self;
        let map = partition.blocks.lock();
        let now = partition.moment();
        let place = |block: FileBlock| Place { partition, map: &map, block, host, now, foreign };
        let is_complete = |last: &FileBlock| {
            last.committed && map.facts(last.block.id).is_none_or(|facts| facts.state == BlockState::Complete)
        };
        let is_last_complete = blocks.is_past || blocks.last.as_ref().is_none_or(is_complete);
        if !is_last_complete && !blocks.under_construction {
            foreign.note_lack();
        }
        LocatedBlocks {
            length: blocks.length,
            blocks: blocks.blocks.iter().copied().map(place),
            under_construction: blocks.under_construction,
            last: blocks.last.map(place),
            is_last_complete,
        }
        .put(out);
    }
}

struct Place<'a> {
    partition: &'a Partition,
    map: &'a BlockMap,
    block: FileBlock,
    host: &'a str,
    now: Moment,
    foreign: &'a Foreign,
}

impl Put for Place<'_> {
    fn about(&self) -> usize {
        BLOCK_BYTES
    }

    fn put(self, out: &mut Writer) {
        let FileBlock { block, offset, .. } = self.block;
        if let Some(pool) = self.foreign.pool_of(self.partition, block.id) {
            return wire::found(&pool, block, offset, None).put(out);
        }
        let chance = self.partition.env.random.next_u64();
        let located = self.map.locations(block.id, Reader { host: Some(self.host) }, chance, self.now);
        if located.as_ref().is_none_or(|located| located.corrupt || located.locations.is_empty()) {
            self.foreign.note_lack();
        }
        wire::found(&self.partition.cluster.block_pool, block, offset, located.as_ref()).put(out);
    }
}
