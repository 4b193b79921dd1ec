//! A block as clients, data servers and the metadata service all speak of it.

use crate::{BlockId, GenerationStamp};
use std::{fmt, sync::Arc};

/// The longest block: 1 TiB less one chunk of 512 bytes. Every length fits into 40 bits.
pub const BLOCK_BYTES_MAX: u64 = (1 << 40) - 512;

/// A block at one generation stamp with a length in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    pub id: BlockId,
    pub generation_stamp: GenerationStamp,
    pub length: u64,
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blk_{}_{}", self.id, self.generation_stamp)
    }
}

/// A block and the pool that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtendedBlock {
    pub pool: Arc<str>,
    pub block: Block,
}

impl fmt::Display for ExtendedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.pool, self.block)
    }
}
