//! Writes one block to its pipeline.

use super::{
    BlockOptions, WriteError,
    connection::{Link, describe},
    pipe::{Pipe, SetupError, Stage},
    replacement,
    streamer::{Command, Shared, Streamer},
};
use pipeline::{Packer, Window};
use proto::{
    data_transfer::packet::PREFIX_BYTES_MAX,
    hdfs::{DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto},
};
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::{mpsc, oneshot};

/// The metadata service's part in mending a pipeline, done by the file's writer.
pub trait PipelineKeeper: Send + Sync {
    /// `updateBlockForPipeline`: a new generation stamp (and token) for the block.
    fn new_stamp<'a>(
        &'a self,
        block: &'a ExtendedBlockProto,
    ) -> Pin<Box<dyn Future<Output = Result<LocatedBlockProto, String>> + Send + 'a>>;

    /// A server has failed: it is not to be had again for this file.
    fn lost(&self, node: &DatanodeInfoProto);

    /// `getAdditionalDatanode`: the servers left and another one, which is neither one of `unreachable` nor one that
    /// was [`lost`](Self::lost); without another one where there is none.
    fn another_server<'a>(
        &'a self,
        block: &'a ExtendedBlockProto,
        nodes: &'a [DatanodeInfoProto],
        storage_ids: &'a [String],
        unreachable: &'a [DatanodeInfoProto],
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

/// Packets that wait for the streamer; behind it there is room for a window of them.
const WAITING_PACKETS: usize = 4;

/// One block being written.
///
/// Bytes become packets here; a task of its own ([`Streamer`]) sends them, hears the acknowledgements, keeps
/// the pipeline alive while nothing is written, and mends it when a server fails. A writer that is dropped
/// leaves the block open.
pub struct BlockWriter {
    packer: Packer,
    commands: mpsc::Sender<Command>,
    shared: Arc<Shared>,
    /// Something was sent since the last sync.
    is_unsynced: bool,
}

impl BlockWriter {
    /// Sets up the pipeline for a new block. On [`WriteError::Setup`] abandon the block and ask for another.
    ///
    /// # Errors
    /// [`WriteError::Setup`] if the pipeline cannot be set up; [`WriteError::Misuse`] if the location has no servers
    /// or the options make no checksum.
    pub async fn create(
        located: &LocatedBlockProto,
        options: &BlockOptions,
        keeper: Option<Arc<dyn PipelineKeeper>>,
    ) -> Result<Self, WriteError> {
        let mut block = located.b.clone();
        block.num_bytes = Some(0);
        let mut pipe = Pipe::new(located, options)?;
        let opened = pipe.open(&block, &Stage::Create, 0..0).await;
        let (link, block) = opened.map_err(|SetupError { bad_node, reason }| WriteError::Setup {
            block: describe(&block),
            bad_node: bad_node.map(|node| Box::new(pipe.nodes()[node].clone())),
            reason,
        })?;
        Self::start(pipe, link, block, keeper, options)
    }

    /// Sets up the pipeline to go on with an existing block: `located` is what `append` answered. Servers that turn out
    /// not to answer are left out, as long as one does; others take their places where the options ask for it.
    ///
    /// # Errors
    /// [`WriteError::Setup`] if no server of the location is left, another one is required and cannot be had, or the
    /// metadata service gives no stamp or does not take the new pipeline. [`WriteError::Misuse`] as for
    /// [`BlockWriter::create`].
    pub async fn append(
        located: &LocatedBlockProto,
        options: &BlockOptions,
        keeper: Arc<dyn PipelineKeeper>,
    ) -> Result<Self, WriteError> {
        let failed = |bad_node, reason| WriteError::Setup { block: describe(&located.b), bad_node, reason };
        let mut pipe = Pipe::new(located, options)?;
        let mut is_begun = false;
        let length = located.b.num_bytes();
        loop {
            let replaced = replacement::replace(&mut pipe, &*keeper, &located.b, options.is_promised, length);
            replaced.await.map_err(|reason| failed(None, reason))?;
            let stamp = keeper.new_stamp(&located.b).await.map_err(|reason| failed(None, reason))?;
            let (stamp, token) = (stamp.b.generation_stamp, stamp.block_token);
            let stage = match std::mem::replace(&mut is_begun, true) {
                false => Stage::Append { stamp, token },
                true => Stage::AppendRecovery { stamp, token },
            };
            let SetupError { bad_node, reason } = match pipe.open(&located.b, &stage, length..length).await {
                Ok((link, block)) => {
                    let updated = keeper.update(&located.b, &block, pipe.nodes(), pipe.storage_ids()).await;
                    updated.map_err(|reason| failed(None, reason))?;
                    return Self::start(pipe, link, block, Some(keeper), options);
                }
                Err(error) => error,
            };
            let bad_node = bad_node.map(|node| Box::new(pipe.remove(node)));
            if let Some(node) = &bad_node {
                keeper.lost(node);
            }
            if bad_node.is_none() || pipe.nodes().is_empty() {
                return Err(failed(bad_node, reason));
            }
            tracing::warn!(
                block = describe(&located.b),
                reason,
                left = pipe.nodes().len(),
                "an append goes on without a server"
            );
        }
    }

    fn start(
        pipe: Pipe,
        link: Link,
        block: ExtendedBlockProto,
        keeper: Option<Arc<dyn PipelineKeeper>>,
        options: &BlockOptions,
    ) -> Result<Self, WriteError> {
        let length = block.num_bytes();
        let (commands, receiver) = mpsc::channel(WAITING_PACKETS);
        let shared = Arc::new(Shared::new(block, length, options.is_promised));
        let window = Window::new(options.window_packets as usize, length);
        let streamer = Streamer::new(pipe, link, window, receiver, shared.clone(), keeper);
        tokio::spawn(streamer.run());
        let checksum = options.checksum().map_err(WriteError::Misuse)?;
        let packer = Packer::new(checksum, options.packet_bytes as usize, PREFIX_BYTES_MAX, length);
        Ok(Self { packer, commands, shared, is_unsynced: false })
    }

    /// Writes `data` behind what is there. Returns when it is on its way, not when it has arrived; waits when
    /// the window is full. The caller sees to it that the block does not outgrow the file's block size.
    ///
    /// # Errors
    /// [`WriteError::Broken`] if the pipeline broke and could not be mended. The failure may be of data that was
    /// written before.
    pub async fn write(&mut self, data: &[u8]) -> Result<(), WriteError> {
        let mut rest = data;
        self.is_unsynced |= !data.is_empty();
        while let Some(packed) = self.packer.push(&mut rest) {
            self.command(Command::Packet { packed, sync: false }).await?;
        }
        Ok(())
    }

    /// Waits until every byte written is acknowledged by all servers (`hflush`).
    ///
    /// # Errors
    /// [`WriteError::Broken`] if the pipeline broke and could not be mended.
    pub async fn flush(&mut self) -> Result<(), WriteError> {
        if let Some(packed) = self.packer.finish() {
            self.command(Command::Packet { packed, sync: false }).await?;
        }
        self.settle().await
    }

    /// Like `flush`, and the bytes are on stable storage afterwards (`hsync`).
    ///
    /// # Errors
    /// [`WriteError::Broken`] if the pipeline broke and could not be mended.
    pub async fn sync(&mut self) -> Result<(), WriteError> {
        match self.packer.finish() {
            Some(packed) => self.command(Command::Packet { packed, sync: true }).await?,
            None if self.is_unsynced => self.command(Command::Sync).await?,
            None => {}
        }
        self.settle().await?;
        self.is_unsynced = false;
        Ok(())
    }

    /// Makes the written bytes visible to readers, from now on.
    async fn settle(&self) -> Result<(), WriteError> {
        let (reply, settled) = oneshot::channel();
        self.command(Command::Settle(reply)).await?;
        settled.await.map_err(|_| self.failure())?;
        self.shared.is_promised.store(true, Ordering::Release);
        Ok(())
    }

    /// Ends the block on all servers; returns it with its final length, as `addBlock` and `complete` want it.
    ///
    /// # Errors
    /// [`WriteError::Broken`] if the pipeline broke and could not be mended: the block has not ended then.
    pub async fn close(mut self) -> Result<ExtendedBlockProto, WriteError> {
        if let Some(packed) = self.packer.finish() {
            self.command(Command::Packet { packed, sync: false }).await?;
        }
        let (reply, closed) = oneshot::channel();
        self.command(Command::Close(reply)).await?;
        closed.await.map_err(|_| self.failure())?;
        Ok(self.block())
    }

    async fn command(&self, command: Command) -> Result<(), WriteError> {
        self.commands.send(command).await.map_err(|_| self.failure())
    }

    /// Why the streamer has ended.
    fn failure(&self) -> WriteError {
        self.shared.failure.lock().clone().unwrap_or_else(|| WriteError::Broken {
            block: describe(&self.block()),
            bad_node: None,
            acknowledged: self.acknowledged(),
            reason: "the runtime is shutting down".into(),
        })
    }

    /// The block under its present generation stamp with the bytes written so far.
    pub fn block(&self) -> ExtendedBlockProto {
        let mut block = self.shared.block.lock().clone();
        block.num_bytes = Some(self.length());
        block
    }

    /// Bytes written so far, acknowledged or not.
    pub fn length(&self) -> u64 {
        self.packer.position()
    }

    /// Bytes that all servers of the pipeline have acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::Acquire)
    }
}
