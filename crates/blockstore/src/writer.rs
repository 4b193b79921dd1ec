//! A replica open for writing.

use crate::{checksum::Checksum, error::StoreResult, store::VolumeIndex};
use base::Block;

/// The one writer of a replica being written or copied in. Dropped without [`ReplicaWriter::finalize`], a
/// replica being written stays as it is (pipeline recovery may take it up again); a temporary one is removed.
pub struct ReplicaWriter {
    _todo: (),
}

impl ReplicaWriter {
    /// Id, generation stamp and bytes on disk.
    pub fn block(&self) -> Block {
        todo!()
    }

    pub fn volume(&self) -> VolumeIndex {
        todo!()
    }

    pub fn storage_id(&self) -> &str {
        todo!()
    }

    /// The checksum of the meta file. Meaningful packets have this one: a continued replica keeps the one it
    /// began with.
    pub fn checksum(&self) -> Checksum {
        todo!()
    }

    /// Writes `data` at `offset` of the block with `sums`, one for each chunk of `data`, already verified by
    /// the caller. `offset` may lie before the end (a packet that repeats a partial chunk) but not beyond it.
    /// When `offset` is not at a chunk's start, `data` must not reach beyond that chunk, `sums` holds the sum
    /// of `data` alone, and the chunk's sum is computed anew from disk and data.
    pub fn write(&mut self, offset: u64, data: &[u8], sums: &[u8]) -> StoreResult<()> {
        let _ = (offset, data, sums);
        todo!()
    }

    /// Makes all written so far durable (hsync).
    pub fn sync(&mut self) -> StoreResult<()> {
        todo!()
    }

    /// What the whole pipeline has acknowledged: readers may see it. Callable through
    /// [`ReplicaWriter::acknowledger`] from the task that handles acks.
    pub fn acknowledger(&self) -> Acknowledger {
        todo!()
    }

    /// The replica is complete: moves block and meta file to their final place. With `sync` its bytes and
    /// names are durable before this returns.
    pub fn finalize(self, sync: bool) -> StoreResult<Block> {
        let _ = sync;
        todo!()
    }
}

/// Raises the visible length of a replica being written.
#[derive(Clone)]
pub struct Acknowledger {
    _todo: (),
}

impl Acknowledger {
    pub fn acknowledge(&self, length: u64) {
        let _ = length;
        todo!()
    }
}
