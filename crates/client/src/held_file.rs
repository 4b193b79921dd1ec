//! A file that is being written: the calls to the metadata service about its blocks.

use crate::{Error, FileSystem, Result, block::PipelineKeeper};
use base::FsError;
use parking_lot::Mutex;
use proto::hdfs::{self, DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto};
use std::{future::Future, pin::Pin, time::Duration};

/// A file that this client holds. Its blocks' pipelines have the metadata service's part in mending done here.
pub(crate) struct HeldFile {
    pub fs: FileSystem,
    pub path: String,
    pub file_id: u64,
    /// Data servers, as `host:port`, on which its blocks are to be.
    favoured: Vec<String>,
    /// Servers that failed in this file's pipelines. As in Hadoop's client, they take no part in this file's
    /// pipelines again.
    lost: Mutex<Vec<DatanodeInfoProto>>,
}

impl HeldFile {
    pub fn new(fs: FileSystem, path: String, file_id: u64, favoured: Vec<String>) -> Self {
        Self { fs, path, file_id, favoured, lost: Mutex::default() }
    }

    /// Allocates the next block.
    pub async fn add_block(
        &self,
        previous: Option<ExtendedBlockProto>,
        excluded: &[DatanodeInfoProto],
    ) -> Result<LocatedBlockProto> {
        let request = hdfs::AddBlockRequestProto {
            src: self.path.clone(),
            client_name: self.fs.client_name().to_owned(),
            previous,
            exclude_nodes: excluded.to_vec(),
            file_id: Some(self.file_id),
            favored_nodes: self.favoured.clone(),
            ..Default::default()
        };
        let mut pauses = Pauses::new(&self.fs);
        loop {
            match self.fs.call::<_, hdfs::AddBlockResponseProto>("addBlock", &request).await {
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

    /// Gives a block back to which nothing was written.
    pub async fn abandon_block(&self, block: ExtendedBlockProto) -> Result<()> {
        let request = hdfs::AbandonBlockRequestProto {
            b: block,
            src: self.path.clone(),
            holder: self.fs.client_name().to_owned(),
            file_id: Some(self.file_id),
        };
        let _: hdfs::AbandonBlockResponseProto = self.fs.call("abandonBlock", &request).await?;
        Ok(())
    }

    /// Tells the metadata service that the current block is being written, with the bytes that it has so far.
    pub async fn fsync(&self, last_block_length: Option<i64>) -> Result<()> {
        let request = hdfs::FsyncRequestProto {
            src: self.path.clone(),
            client: self.fs.client_name().to_owned(),
            last_block_length,
            file_id: Some(self.file_id),
        };
        let _: hdfs::FsyncResponseProto = self.fs.call("fsync", &request).await?;
        Ok(())
    }

    /// Ends the file.
    pub async fn complete(&self, last: Option<ExtendedBlockProto>) -> Result<()> {
        let request = hdfs::CompleteRequestProto {
            src: self.path.clone(),
            client_name: self.fs.client_name().to_owned(),
            last,
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

    /// Has a file closed that could not be appended to. Some of its servers may have taken up the append, with a stamp
    /// that nobody else knows: they are to agree, rather than that this client calls the block what it was.
    pub async fn give_up(&self) {
        let request = hdfs::RecoverLeaseRequestProto {
            src: self.path.clone(),
            client_name: self.fs.client_name().to_owned(),
        };
        let closed: Result<hdfs::RecoverLeaseResponseProto> = self.fs.call("recoverLease", &request).await;
        if let Err(error) = closed {
            tracing::info!("{} stays open; its lease will close it: {error}", self.path);
        }
    }
}

/// The first pause when a server is asked again about a block; it doubles. The servers of Clover wait by
/// themselves, so that a short one costs little, and Hadoop's know soon after.
const PAUSE_FIRST: Duration = Duration::from_millis(5);

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

type Answer<'a, T> = Pin<Box<dyn Future<Output = std::result::Result<T, String>> + Send + 'a>>;

impl PipelineKeeper for HeldFile {
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

    fn lost(&self, node: &DatanodeInfoProto) {
        let mut lost = self.lost.lock();
        if !lost.iter().any(|known| known.id.datanode_uuid == node.id.datanode_uuid) {
            lost.push(node.clone());
        }
    }

    fn another_server<'a>(
        &'a self,
        block: &'a ExtendedBlockProto,
        nodes: &'a [DatanodeInfoProto],
        storage_ids: &'a [String],
        unreachable: &'a [DatanodeInfoProto],
    ) -> Answer<'a, LocatedBlockProto> {
        Box::pin(async move {
            let excludes = [&self.lost.lock()[..], unreachable].concat();
            let request = hdfs::GetAdditionalDatanodeRequestProto {
                src: self.path.clone(),
                blk: block.clone(),
                existings: nodes.to_vec(),
                excludes,
                num_additional_nodes: 1,
                client_name: self.fs.client_name().to_owned(),
                existing_storage_uuids: storage_ids.to_vec(),
                file_id: Some(self.file_id),
            };
            let response: hdfs::GetAdditionalDatanodeResponseProto =
                self.fs.call("getAdditionalDatanode", &request).await.map_err(|error| error.to_string())?;
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
