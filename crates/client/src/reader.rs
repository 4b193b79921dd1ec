//! Reads a file, from one end to the other or at any place.

use crate::{
    Error, FileSystem, Result,
    block::{BadReplica, BlockOptions, BlockReader, ReadError, describe},
};
use base::FsError;
use bytes::{Bytes, BytesMut};
use proto::hdfs::{self, LocatedBlockProto, LocatedBlocksProto};
use std::{collections::BTreeMap, time::Duration};

/// Blocks whose places are asked for at once, as Hadoop's clients do.
const BLOCKS_AHEAD: u64 = 10;
/// The first pause before fresh places are asked for; it doubles. A server that has just died is still named for a while.
const REFETCH_PAUSE: Duration = Duration::from_millis(500);
const REFETCH_PAUSE_MAX: Duration = Duration::from_secs(10);

/// A file open for reading. It sees the length that the file had when it was opened.
pub struct FileReader {
    fs: FileSystem,
    path: String,
    options: BlockOptions,
    length: u64,
    block_size: u64,
    /// Known places by the offset in the file at which a block begins.
    blocks: BTreeMap<u64, LocatedBlockProto>,
    position: u64,
    /// The offset of the block that is being written, if there is one. It is not read from files, because its checksums change.
    being_written: Option<u64>,
    /// The open block, positioned at `position`, unless bytes wait in `rest`.
    block: Option<BlockReader>,
    /// Bytes that were read and not yet handed out; they begin at `position`.
    rest: Bytes,
}

/// The last block of a file that is being written, unless it is complete.
fn block_being_written(located: &LocatedBlocksProto) -> Option<&LocatedBlockProto> {
    let is_open = located.under_construction && !located.is_last_block_complete;
    located.last_block.as_ref().filter(|_| is_open)
}

/// How far the block that is being written can be read; 0 where there is none. `None`: no data server is known that has
/// its bytes.
async fn visible_end(
    fs: &FileSystem,
    located: &LocatedBlocksProto,
    options: &BlockOptions,
) -> Result<Option<u64>> {
    match block_being_written(located) {
        Some(last) => crate::visible_length::of_block(fs, last, options).await,
        None => Ok(Some(0)),
    }
}

impl FileReader {
    pub(crate) async fn open(fs: FileSystem, path: &str) -> Result<Self> {
        let options = fs.read_options();
        // The first answer tells the block size; places ahead are asked for by it later.
        let ahead = fs.settings().block_size.unwrap_or(128 << 20).saturating_mul(BLOCKS_AHEAD);
        let mut located = fs.block_locations(path, 0, ahead).await?;
        let mut visible = visible_end(&fs, &located, &options).await?;
        let retries = fs.settings().retries.clone();
        for _ in 0..retries.last_length_retries_max {
            if visible.is_some() {
                break;
            }
            // After a start of the cluster the data servers may not have reported yet.
            tokio::time::sleep(retries.last_length_pause).await;
            located = fs.block_locations(path, 0, ahead).await?;
            visible = visible_end(&fs, &located, &options).await?;
        }
        let Some(visible) = visible else {
            let message = format!("Could not obtain the last block locations of {path}.");
            return Err(Error::Fs(FsError::Io(message)));
        };
        let mut reader = Self {
            fs,
            path: path.to_owned(),
            options,
            length: located.file_length,
            block_size: 128 << 20,
            blocks: BTreeMap::new(),
            position: 0,
            being_written: block_being_written(&located).map(|last| last.offset),
            block: None,
            rest: Bytes::new(),
        };
        if located.ec_policy.is_some() {
            let message = format!("{path} is erasure-coded, which this client cannot read yet");
            return Err(Error::Fs(FsError::Unsupported(message)));
        }
        if located.file_encryption_info.is_some() {
            let message = format!("{path} is encrypted, which this client cannot read yet");
            return Err(Error::Fs(FsError::Unsupported(message)));
        }
        if let Some(last) = block_being_written(&located) {
            let mut last = last.clone();
            last.b.num_bytes = Some(visible);
            reader.length = last.offset + visible;
            reader.blocks.insert(last.offset, last);
        }
        reader.remember(located.blocks);
        if let Some(first) = reader.blocks.get(&0) {
            reader.block_size = first.b.num_bytes().max(1);
        }
        Ok(reader)
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// The offset in the file at which [`read`](Self::read) goes on.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes on reading at `position`; past the end is refused.
    ///
    /// # Errors
    /// [`Error::Fs`] with [`FsError::InvalidArgument`] if `position` is behind the end of the file.
    pub fn seek(&mut self, position: u64) -> Result<()> {
        if position > self.length {
            let message =
                format!("Cannot seek to {position} in {}, which has {} bytes", self.path, self.length);
            return Err(Error::Fs(FsError::InvalidArgument(message)));
        }
        let skipped = position.checked_sub(self.position).and_then(|count| usize::try_from(count).ok());
        match skipped {
            Some(count) if count <= self.rest.len() => self.rest = self.rest.split_off(count),
            _ => {
                self.rest = Bytes::new();
                self.block = None;
            }
        }
        self.position = position;
        Ok(())
    }

    /// The next bytes, at most `count_max` of them and never none, or nothing at the end of the file.
    ///
    /// # Errors
    /// [`Error::Read`] if no replica of a block can be read, even where the metadata service names them anew; or
    /// those of [`FileSystem::block_locations`].
    pub async fn read(&mut self, count_max: usize) -> Result<Option<Bytes>> {
        let refetches_max = self.fs.settings().retries.refetches_max;
        let mut refetches = 0;
        while self.rest.is_empty() {
            if self.position >= self.length {
                return Ok(None);
            }
            match self.fill().await {
                // An open replica is no success yet: its bytes may be corrupt.
                Ok(()) => {}
                Err(error @ Error::Read { .. }) if refetches < refetches_max => {
                    tracing::warn!("{error}; asking where else it is");
                    let pause = REFETCH_PAUSE.saturating_mul(1 << refetches.min(10));
                    tokio::time::sleep(pause.min(REFETCH_PAUSE_MAX)).await;
                    refetches += 1;
                    self.block = None;
                    self.locate(self.position).await?;
                }
                Err(error) => return Err(error),
            }
        }
        let count = count_max.min(self.rest.len());
        self.position += count as u64;
        Ok(Some(self.rest.split_to(count)))
    }

    /// Bytes from `position`, as many as asked for unless the file ends before; the place where
    /// [`read`](Self::read) goes on stays as it is.
    ///
    /// # Errors
    /// Those of [`FileReader::read`].
    pub async fn read_at(&mut self, position: u64, count: usize) -> Result<Bytes> {
        let mut other = Self {
            fs: self.fs.clone(),
            path: self.path.clone(),
            options: self.options.clone(),
            length: self.length.min(position.saturating_add(count as u64)),
            block_size: self.block_size,
            blocks: std::mem::take(&mut self.blocks),
            position,
            being_written: self.being_written,
            block: None,
            rest: Bytes::new(),
        };
        let bytes = other.read_to_end(count).await;
        self.blocks = other.blocks;
        bytes
    }

    async fn read_to_end(&mut self, count: usize) -> Result<Bytes> {
        let mut whole = BytesMut::new();
        while whole.len() < count
            && let Some(bytes) = self.read(count - whole.len()).await?
        {
            if whole.is_empty() && (bytes.len() == count || self.position >= self.length) {
                return Ok(bytes);
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }

    /// Puts bytes from the current block into `rest`, or opens the block that `position` is in.
    async fn fill(&mut self) -> Result<()> {
        let Some(block) = &mut self.block else {
            self.block = Some(self.open_block().await?);
            return Ok(());
        };
        match block.next().await {
            Ok(Some(bytes)) => {
                self.rest = bytes;
                // A reader that knows the length of the file does not ask again after its last byte.
                if block.remaining() == 0 && !block.bad_replicas().is_empty() {
                    let bad = block.bad_replicas().to_vec();
                    self.report(&bad).await;
                }
                Ok(())
            }
            Ok(None) => {
                let bad = block.bad_replicas().to_vec();
                let missing = block.remaining();
                self.block = None;
                self.report(&bad).await;
                match missing {
                    0 => Ok(()),
                    missing => Err(self.lost(format!("{missing} bytes of the block are missing"))),
                }
            }
            Err(source) => {
                let bad = block.bad_replicas().to_vec();
                self.report(&bad).await;
                Err(self.failed(source))
            }
        }
    }

    async fn open_block(&mut self) -> Result<BlockReader> {
        if self.known().is_none() {
            self.locate(self.position).await?;
        }
        let Some(located) = self.known() else {
            return Err(self.lost("no block is known there".into()));
        };
        let within = self.position - located.offset;
        let end = located.b.num_bytes().min(self.length - located.offset);
        let streamed;
        let options = match self.being_written {
            Some(offset) if offset == located.offset => {
                streamed = BlockOptions { local: None, ..self.options.clone() };
                &streamed
            }
            _ => &self.options,
        };
        let opened = BlockReader::open(located, within, end - within, options).await;
        opened.map_err(|source| self.failed(source))
    }

    /// The block that `position` is in, where its places are known.
    fn known(&self) -> Option<&LocatedBlockProto> {
        let (offset, located) = self.blocks.range(..=self.position).next_back()?;
        (self.position - offset < located.b.num_bytes()).then_some(located)
    }

    /// Asks where the blocks from `offset` on are.
    async fn locate(&mut self, offset: u64) -> Result<()> {
        let ahead = self.block_size.saturating_mul(BLOCKS_AHEAD);
        let located = self.fs.block_locations(&self.path, offset, ahead).await?;
        self.remember(located.blocks);
        Ok(())
    }

    fn remember(&mut self, blocks: Vec<LocatedBlockProto>) {
        for mut block in blocks {
            // A data server may have told a greater length of a block being written than the metadata service knows.
            let known = self.blocks.get(&block.offset).filter(|known| known.b.block_id == block.b.block_id);
            let told = known.map_or(0, |known| known.b.num_bytes());
            block.b.num_bytes = Some(block.b.num_bytes().max(told));
            if block.b.num_bytes() > 0 {
                self.blocks.insert(block.offset, block);
            }
        }
    }

    /// Tells the metadata service of replicas that do not match their checksums; it makes good ones instead.
    async fn report(&self, bad: &[BadReplica]) {
        for replica in bad {
            let mut block =
                LocatedBlockProto { b: replica.block.clone(), corrupt: true, ..Default::default() };
            block.locs = vec![replica.node.clone()];
            block.storage_types = vec![hdfs::StorageTypeProto::Disk as i32];
            block.storage_i_ds = vec![replica.storage_id.clone()];
            let request = hdfs::ReportBadBlocksRequestProto { blocks: vec![block] };
            let answer: Result<hdfs::ReportBadBlocksResponseProto> =
                self.fs.call("reportBadBlocks", &request).await;
            if let Err(error) = answer {
                tracing::warn!("a bad replica of {} could not be reported: {error}", self.path);
            }
        }
    }

    fn failed(&self, source: ReadError) -> Error {
        Error::Read { path: self.path.clone(), offset: self.position, source }
    }

    fn lost(&self, reason: String) -> Error {
        let known = self.known();
        let block = known.map_or_else(|| "unknown".into(), |located| describe(&located.b));
        let offset = self.position - known.map_or(0, |located| located.offset);
        self.failed(ReadError::NoReplica { block, offset, reason })
    }
}
