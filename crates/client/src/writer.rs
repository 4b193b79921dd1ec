//! Writes a file: one block after the other, each through a pipeline of data servers.

use crate::{
    Error, FileStatus, FileSystem, Result,
    block::{BlockOptions, BlockWriter, WriteError},
    held_file::HeldFile,
    lease::LeaseGuard,
};
use proto::hdfs::{DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto};
use std::sync::Arc;

/// A file open for writing.
///
/// Bytes that are written are on their way, not yet stored: [`flush`](Self::flush) says that others can read them,
/// [`hsync`](Self::hsync) that they are on disks, [`close`](Self::close) that the file is whole. A writer that is
/// dropped leaves the file open; the servers close it with what has arrived, once the lease has run out.
pub struct FileWriter {
    file: Arc<HeldFile>,
    block_size: u64,
    options: BlockOptions,
    block: Option<BlockWriter>,
    /// The block before the one being written, with its final length.
    previous: Option<ExtendedBlockProto>,
    /// Servers that did not answer when a pipeline was set up.
    excluded: Vec<DatanodeInfoProto>,
    /// The metadata service knows of the current block, as others' reading needs.
    is_published: bool,
    written: u64,
    _lease: LeaseGuard,
}

impl FileWriter {
    pub(crate) fn new(
        fs: FileSystem,
        status: FileStatus,
        options: BlockOptions,
        lease: LeaseGuard,
        favoured: Vec<String>,
    ) -> Self {
        Self {
            file: Arc::new(HeldFile::new(fs, status.path, status.file_id, favoured)),
            block_size: status.block_size.max(1),
            options: BlockOptions { replication: status.replication, ..options },
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
        let mut writer = Self::new(fs, status, options, lease, Vec::new());
        match last {
            Some(last) if !last.locs.is_empty() => {
                writer.options.is_promised = true;
                match BlockWriter::append(&last, &writer.options, writer.file.clone()).await {
                    Ok(block) => writer.block = Some(block),
                    Err(source) => {
                        // The file is empty, so it is closed rather than left to the end of its lease.
                        let failure = writer.failed(source);
                        writer.file.give_up().await;
                        return Err(failure);
                    }
                }
            }
            Some(last) => writer.previous = Some(last.b),
            None => {}
        }
        Ok(writer)
    }

    /// The file's number, which it keeps when it is moved.
    pub fn file_id(&self) -> u64 {
        self.file.file_id
    }

    pub fn path(&self) -> &str {
        &self.file.path
    }

    /// Bytes written so far, stored or on their way.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes all of `data`.
    ///
    /// # Errors
    /// [`Error::Fs`] if the metadata service gives no block: the lease is lost ([`base::FsError::LeaseExpired`]), a quota is
    /// reached, or no data server has room ([`base::FsError::Io`]). [`Error::Write`] if no pipeline comes to be, or it broke
    /// and could not be mended. Part of `data` may be stored.
    pub async fn write(&mut self, mut data: &[u8]) -> Result<()> {
        while !data.is_empty() {
            let block = match &mut self.block {
                Some(block) => block,
                none => {
                    let (previous, excluded) = (&mut self.previous, &mut self.excluded);
                    none.insert(start_block(&self.file, &self.options, previous, excluded).await?)
                }
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
    ///
    /// # Errors
    /// [`Error::Write`] if the pipeline broke and could not be mended; [`Error::Fs`] if the metadata service does not
    /// take the new length or blocks, because the lease is lost for one. Or a call fails: see
    /// [`FileSystem::call`](crate::FileSystem::call).
    pub async fn flush(&mut self) -> Result<()> {
        self.options.is_promised = true;
        let Some(block) = &mut self.block else { return Ok(()) };
        if let Err(source) = block.flush().await {
            return Err(self.failed(source));
        }
        self.publish().await
    }

    /// Flushes like [`flush`](Self::flush), and returns only when everything is on the data servers' disks.
    ///
    /// # Errors
    /// Those of [`FileWriter::flush`].
    pub async fn hsync(&mut self) -> Result<()> {
        self.options.is_promised = true;
        let Some(block) = &mut self.block else { return Ok(()) };
        if let Err(source) = block.sync().await {
            return Err(self.failed(source));
        }
        self.publish().await
    }

    /// Syncs like [`hsync`](Self::hsync), and the file's status tells the new length at once. Hadoop: `UPDATE_LENGTH`.
    ///
    /// # Errors
    /// Those of [`FileWriter::flush`].
    pub async fn hsync_with_length(&mut self) -> Result<()> {
        self.options.is_promised = true;
        let Some(block) = &mut self.block else { return Ok(()) };
        if let Err(source) = block.sync().await {
            return Err(self.failed(source));
        }
        let length = block.length() as i64;
        self.tell(Some(length)).await
    }

    /// Ends the file. Only when this returns well is the file whole and there for good.
    ///
    /// # Errors
    /// [`Error::Write`] if the last block could not be ended; [`Error::Fs`] if the metadata service does not close the
    /// file, because the lease is lost ([`base::FsError::LeaseExpired`]) or the last block has too few replicas
    /// ([`base::FsError::Io`]). Or a call fails: see [`FileSystem::call`](crate::FileSystem::call).
    pub async fn close(mut self) -> Result<()> {
        self.end_block().await?;
        self.file.complete(self.previous.take()).await
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
        self.file.fsync(last_block_length).await?;
        self.is_published = true;
        Ok(())
    }

    fn failed(&self, source: WriteError) -> Error {
        Error::Write { path: self.file.path.clone(), source }
    }
}

/// Allocates the next block and sets its pipeline up, without the servers that turn out not to answer.
async fn start_block(
    file: &Arc<HeldFile>,
    options: &BlockOptions,
    previous: &mut Option<ExtendedBlockProto>,
    excluded: &mut Vec<DatanodeInfoProto>,
) -> Result<BlockWriter> {
    let path = &file.path;
    let mut attempts_left = file.fs.settings().retries.pipelines_max;
    loop {
        let located = file.add_block(previous.clone(), excluded).await?;
        let block = located.b.clone();
        let source = match BlockWriter::create(&located, options, Some(file.clone())).await {
            Ok(writer) => {
                *previous = None;
                return Ok(writer);
            }
            Err(source) => source,
        };
        tracing::info!("{path}: {source}; asking for another block");
        file.abandon_block(block).await?;
        excluded.extend(source.bad_node().cloned());
        if attempts_left == 0 {
            return Err(Error::Write { path: path.clone(), source });
        }
        attempts_left -= 1;
    }
}
