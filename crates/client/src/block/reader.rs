//! Reads a range of one block from its replicas.

use super::{BadReplica, BlockOptions, ReadError};
use bytes::Bytes;
use proto::hdfs::LocatedBlockProto;

pub struct BlockReader {}

impl BlockReader {
    /// Opens `length` bytes from `offset` (both within the block) on the first replica that answers.
    pub async fn open(
        _located: &LocatedBlockProto,
        _offset: u64,
        _length: u64,
        _options: &BlockOptions,
    ) -> Result<Self, ReadError> {
        todo!()
    }

    /// The next bytes, verified against their checksums; nothing at the end of the range. Goes on with
    /// another replica where one fails.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        todo!()
    }

    /// Replicas met so far whose bytes do not match their checksums (`reportBadBlocks`).
    pub fn bad_replicas(&self) -> &[BadReplica] {
        todo!()
    }

    /// Bytes of the range not yet returned.
    pub fn remaining(&self) -> u64 {
        todo!()
    }
}
