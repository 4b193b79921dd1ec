//! Writes a file: one block after the other, each through a pipeline of data servers.

use crate::{
    Error, FileStatus, FileSystem, Result,
    block::{BlockOptions, BlockWriter, PipelineKeeper, WriteError},
    lease::LeaseGuard,
};
use base::FsError;
use proto::hdfs::{self, DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto};
use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

/// A file open for writing.
///
/// What is written is on its way, not yet stored: [`flush`](Self::flush) says that others can read it,
/// [`hsync`](Self::hsync) that it is on disks, [`close`](Self::close) that the file is whole. A writer that is
/// dropped leaves the file open; the servers close it with what has arrived, once the lease has run out.
pub struct FileWriter {
    fs: FileSystem,
    path: String,
    file_id: u64,
    block_size: u64,
    options: BlockOptions,
    block: Option<BlockWriter>,
    /// The block before the one being written, with its final length.
    previous: Option<ExtendedBlockProto>,
    /// Servers that failed in this file's pipelines.
    excluded: Vec<DatanodeInfoProto>,
    /// The metadata service knows of the current block, as others' reading needs.
    is_published: bool,
    written: u64,
    _lease: LeaseGuard,
}

/// The first pause when a server is asked again about a block; it doubles. The servers of Clover wait by
/// themselves, so that a short one costs little, and Hadoop's know soon after.
const PAUSE_FIRST: Duration = Duration::from_millis(5);

impl FileWriter {
    pub(crate) fn new(fs: FileSystem, status: FileStatus, options: BlockOptions, lease: LeaseGuard) -> Self {
        Self {
            path: status.path,
            file_id: status.file_id,
            block_size: status.block_size.max(1),
            fs,
            options,
            block: None,
            previous: None,
            excluded: Vec::new(),
            is_published: false,
            written: 0,
            _lease: lease,
        }
    }

    /// Goes on with a file that `append` has opened. `last` is its last block: with places, if it is to be written on.
    pub(crate) async fn append(
        fs: FileSystem,
        status: FileStatus,
        options: BlockOptions,
        lease: LeaseGuard,
        last: Option<LocatedBlockProto>,
    ) -> Result<Self> {
        let mut writer = Self::new(fs, status, options, lease);
        match last {
            Some(last) if !last.locs.is_empty() => {
                let keeper = Arc::new(Keeper { fs: writer.fs.clone() });
                match BlockWriter::append(&last, &writer.options, keeper).await {
                    Ok(block) => writer.block = Some(block),
                    Err(source) => {
                        // Nothing was written: better closed as it was than left to its lease.
                        let failure = writer.failed(source);
                        writer.give_up(last.b).await;
                        return Err(failure);
                    }
                }
            }
            Some(last) => writer.previous = Some(last.b),
            None => {}
        }
        Ok(writer)
    }

    /// Closes a file that could not be appended to, if its servers still have what they had.
    async fn give_up(&self, last: ExtendedBlockProto) {
        let request = hdfs::CompleteRequestProto {
            src: self.path.clone(),
            client_name: self.fs.client_name().to_owned(),
            last: Some(last),
            file_id: Some(self.file_id),
        };
        let closed: Result<hdfs::CompleteResponseProto> = self.fs.call("complete", &request).await;
        if !closed.is_ok_and(|response| response.result) {
            tracing::info!("{} stays open; its lease will close it", self.path);
        }
    }

    /// The file's number, which it keeps when it is moved.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// Bytes written so far, stored or on their way.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes all of `data`.
    pub async fn write(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let block = match &mut self.block {
                Some(block) => block,
                none => none.insert(
                    start_block(
                        &self.fs,
                        &self.path,
                        self.file_id,
                        &self.options,
                        &mut self.previous,
                        &mut self.excluded,
                    )
                    .await?,
                ),
            };
            let room = self.block_size.saturating_sub(block.length());
            let count = data.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            if let Err(source) = block.write(&data[..count]).await {
                return Err(self.failed(source));
            }
            self.written += count as u64;
            data = &data[count..];
            if count as u64 == room {
                self.end_block().await?;
            }
        }
        Ok(())
    }

    /// Returns when everything written is with all data servers, where others can read it.
    pub async fn flush(&mut self) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        if let Err(source) = block.flush().await {
            return Err(self.failed(source));
        }
        self.publish().await
    }

    /// As [`flush`](Self::flush), and everything is on the data servers' disks.
    pub async fn hsync(&mut self) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        if let Err(source) = block.sync().await {
            return Err(self.failed(source));
        }
        self.publish().await
    }

    /// As [`hsync`](Self::hsync), and the file's status tells its length at once. Hadoop: `UPDATE_LENGTH`.
    pub async fn hsync_with_length(&mut self) -> Result<()> {
        let Some(block) = &mut self.block else { return Ok(()) };
        if let Err(source) = block.sync().await {
            return Err(self.failed(source));
        }
        let length = block.length() as i64;
        self.tell(Some(length)).await
    }

    /// Ends the file. Only when this returns well is the file whole and there for good.
    pub async fn close(mut self) -> Result<()> {
        self.end_block().await?;
        let request = hdfs::CompleteRequestProto {
            src: self.path.clone(),
            client_name: self.fs.client_name().to_owned(),
            last: self.previous.take(),
            file_id: Some(self.file_id),
        };
        let mut pauses = Pauses::new(&self.fs);
        loop {
            let response: hdfs::CompleteResponseProto = self.fs.call("complete", &request).await?;
            if response.result {
                return Ok(());
            }
            if !pauses.wait().await {
                let message = format!(
                    "Unable to close {}: its last block is not yet stored often enough. The file stays \
                     open; its lease will close it",
                    self.path
                );
                return Err(Error::Fs(FsError::Io(message)));
            }
        }
    }

    async fn end_block(&mut self) -> Result<()> {
        let Some(block) = self.block.take() else { return Ok(()) };
        let block = block.close().await.map_err(|source| self.failed(source))?;
        self.previous = Some(block);
        self.is_published = false;
        Ok(())
    }

    /// Tells the metadata service that the current block has readers; once is enough.
    async fn publish(&mut self) -> Result<()> {
        if self.is_published {
            return Ok(());
        }
        self.tell(None).await
    }

    /// Tells the metadata service that the current block is being written, with the bytes that it has so far.
    async fn tell(&mut self, last_block_length: Option<i64>) -> Result<()> {
        let request = hdfs::FsyncRequestProto {
            src: self.path.clone(),
            client: self.fs.client_name().to_owned(),
            last_block_length,
            file_id: Some(self.file_id),
        };
        let _: hdfs::FsyncResponseProto = self.fs.call("fsync", &request).await?;
        self.is_published = true;
        Ok(())
    }

    fn failed(&self, source: WriteError) -> Error {
        Error::Write { path: self.path.clone(), source }
    }
}

/// Allocates the next block and sets its pipeline up, without the servers that turn out not to answer.
async fn start_block(
    fs: &FileSystem,
    path: &str,
    file_id: u64,
    options: &BlockOptions,
    previous: &mut Option<ExtendedBlockProto>,
    excluded: &mut Vec<DatanodeInfoProto>,
) -> Result<BlockWriter> {
    let mut attempts_left = fs.settings().retries.pipelines_max;
    loop {
        let located = add_block(fs, path, file_id, previous.clone(), excluded).await?;
        let block = located.b.clone();
        let keeper = Keeper { fs: fs.clone() };
        let source = match BlockWriter::create(&located, options, Some(Arc::new(keeper))).await {
            Ok(writer) => {
                *previous = None;
                return Ok(writer);
            }
            Err(source) => source,
        };
        tracing::info!("{path}: {source}; asking for another block");
        let request = hdfs::AbandonBlockRequestProto {
            b: block,
            src: path.to_owned(),
            holder: fs.client_name().to_owned(),
            file_id: Some(file_id),
        };
        let _: hdfs::AbandonBlockResponseProto = fs.call("abandonBlock", &request).await?;
        excluded.extend(source.bad_node().cloned());
        if attempts_left == 0 {
            return Err(Error::Write { path: path.to_owned(), source });
        }
        attempts_left -= 1;
    }
}

async fn add_block(
    fs: &FileSystem,
    path: &str,
    file_id: u64,
    previous: Option<ExtendedBlockProto>,
    excluded: &[DatanodeInfoProto],
) -> Result<LocatedBlockProto> {
    let request = hdfs::AddBlockRequestProto {
        src: path.to_owned(),
        client_name: fs.client_name().to_owned(),
        previous,
        exclude_nodes: excluded.to_vec(),
        file_id: Some(file_id),
        ..Default::default()
    };
    let mut pauses = Pauses::new(fs);
    loop {
        match fs.call::<_, hdfs::AddBlockResponseProto>("addBlock", &request).await {
            Ok(response) => return Ok(response.block),
            Err(Error::Fs(FsError::NotReplicatedYet(message))) => {
                if !pauses.wait().await {
                    return Err(Error::Fs(FsError::NotReplicatedYet(message)));
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Pauses that double, until as much time has gone by as Hadoop's client would wait.
struct Pauses {
    next: Duration,
    left: Duration,
}

impl Pauses {
    fn new(fs: &FileSystem) -> Self {
        let retries = &fs.settings().retries;
        let rounds = 2u32.saturating_pow(retries.report_waits_max).saturating_sub(1);
        Self { next: PAUSE_FIRST, left: retries.report_pause.saturating_mul(rounds) }
    }

    /// False when there has been enough waiting.
    async fn wait(&mut self) -> bool {
        if self.left.is_zero() {
            return false;
        }
        let pause = self.next.min(self.left);
        tokio::time::sleep(pause).await;
        self.left -= pause;
        self.next *= 2;
        true
    }
}

/// The metadata service's part in mending a pipeline.
struct Keeper {
    fs: FileSystem,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = std::result::Result<T, String>> + Send + 'a>>;

impl PipelineKeeper for Keeper {
    fn new_stamp<'a>(&'a self, block: &'a ExtendedBlockProto) -> Answer<'a, LocatedBlockProto> {
        Box::pin(async move {
            let request = hdfs::UpdateBlockForPipelineRequestProto {
                block: block.clone(),
                client_name: self.fs.client_name().to_owned(),
            };
            let response: hdfs::UpdateBlockForPipelineResponseProto =
                self.fs.call("updateBlockForPipeline", &request).await.map_err(|error| error.to_string())?;
            Ok(response.block)
        })
    }

    fn update<'a>(
        &'a self,
        old: &'a ExtendedBlockProto,
        new: &'a ExtendedBlockProto,
        nodes: &'a [DatanodeInfoProto],
        storage_ids: &'a [String],
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            let request = hdfs::UpdatePipelineRequestProto {
                client_name: self.fs.client_name().to_owned(),
                old_block: old.clone(),
                new_block: new.clone(),
                new_nodes: nodes.iter().map(|node| node.id.clone()).collect(),
                storage_i_ds: storage_ids.to_vec(),
            };
            let _: hdfs::UpdatePipelineResponseProto =
                self.fs.call("updatePipeline", &request).await.map_err(|error| error.to_string())?;
            Ok(())
        })
    }
}
