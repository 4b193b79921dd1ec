//! Writes one block to its pipeline.

use super::{BlockOptions, WriteError};
use proto::hdfs::{DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto};
use std::{future::Future, pin::Pin, sync::Arc};

/// The metadata service's part in mending a pipeline, done by the file's writer.
pub trait PipelineKeeper: Send + Sync {
    /// `updateBlockForPipeline`: a new generation stamp (and token) for the block.
    fn new_stamp<'a>(
        &'a self,
        block: &'a ExtendedBlockProto,
    ) -> Pin<Box<dyn Future<Output = Result<LocatedBlockProto, String>> + Send + 'a>>;

    /// `updatePipeline`: these servers hold the block under its new stamp.
    fn update<'a>(
        &'a self,
        old: &'a ExtendedBlockProto,
        new: &'a ExtendedBlockProto,
        nodes: &'a [DatanodeInfoProto],
        storage_ids: &'a [String],
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;
}

pub struct BlockWriter {}

impl BlockWriter {
    /// Sets up the pipeline for a new block. On [`WriteError::Setup`] abandon the block and ask for another.
    pub async fn create(
        _located: &LocatedBlockProto,
        _options: &BlockOptions,
        _keeper: Option<Arc<dyn PipelineKeeper>>,
    ) -> Result<Self, WriteError> {
        todo!()
    }

    /// Sets up the pipeline to go on with an existing block (`append`); `located` is what `append` answered,
    /// `stamp` the block under its new generation stamp, as `updateBlockForPipeline` answered.
    pub async fn append(
        _located: &LocatedBlockProto,
        _stamp: &LocatedBlockProto,
        _options: &BlockOptions,
        _keeper: Option<Arc<dyn PipelineKeeper>>,
    ) -> Result<Self, WriteError> {
        todo!()
    }

    /// Writes `data` behind what is there. Returns when it is on its way, not when it has arrived; waits when
    /// the window is full. The caller sees to it that the block does not outgrow the file's block size.
    pub async fn write(&mut self, _data: &[u8]) -> Result<(), WriteError> {
        todo!()
    }

    /// Waits until every byte written is acknowledged by all servers (`hflush`).
    pub async fn flush(&mut self) -> Result<(), WriteError> {
        todo!()
    }

    /// As `flush`, and on stable storage (`hsync`).
    pub async fn sync(&mut self) -> Result<(), WriteError> {
        todo!()
    }

    /// Ends the block on all servers; returns it with its final length, as `addBlock` and `complete` want it.
    pub async fn close(self) -> Result<ExtendedBlockProto, WriteError> {
        todo!()
    }

    /// The block under its present generation stamp with the bytes written so far.
    pub fn block(&self) -> ExtendedBlockProto {
        todo!()
    }

    /// Bytes written so far, acknowledged or not.
    pub fn length(&self) -> u64 {
        todo!()
    }

    /// Bytes that all servers of the pipeline have acknowledged.
    pub fn acknowledged(&self) -> u64 {
        todo!()
    }
}
