//! A pipeline: the data servers in it, and how it is set up.

use super::{
    BlockOptions, WriteError,
    connection::{Link, LinkError, TIMEOUT_EXTENSION, address, header},
};
use pipeline::Checksum;
use proto::{
    common::TokenProto,
    data_transfer::Opcode,
    hdfs::{
        ChecksumProto, DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto, OpTransferBlockProto,
        OpWriteBlockProto, StorageTypeProto, op_write_block_proto::BlockConstructionStage,
    },
};
use std::{ops::Range, time::Duration};

pub(super) struct Pipe {
    nodes: Vec<DatanodeInfoProto>,
    storage_ids: Vec<String>,
    storage_types: Vec<i32>,
    token: TokenProto,
    checksum: Checksum,
    options: BlockOptions,
}

/// Why a pipeline is set up.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    Create,
    Append {
        stamp: u64,
        token: TokenProto,
    },
    /// A set-up to append failed, and some of its servers may have begun: those left go on under a newer stamp.
    AppendRecovery {
        stamp: u64,
        token: TokenProto,
    },
    /// Something was sent already; the servers left go on under a new stamp.
    Recovery {
        stamp: u64,
        token: TokenProto,
    },
    /// Everything was acknowledged but the end; nothing is sent.
    CloseRecovery {
        stamp: u64,
        token: TokenProto,
    },
}

/// `bad_node` is the place of the server to blame, when it is known.
#[derive(Debug)]
pub(super) struct SetupError {
    pub bad_node: Option<usize>,
    pub reason: String,
}

impl Pipe {
    pub fn new(located: &LocatedBlockProto, options: &BlockOptions) -> Result<Self, WriteError> {
        if located.locs.is_empty() {
            return Err(WriteError::Misuse("a block without data servers cannot be written".into()));
        }
        Ok(Self {
            nodes: located.locs.clone(),
            storage_ids: located.storage_i_ds.clone(),
            storage_types: located.storage_types.clone(),
            token: located.block_token.clone(),
            checksum: options.checksum().map_err(WriteError::Misuse)?,
            options: options.clone(),
        })
    }

    pub fn nodes(&self) -> &[DatanodeInfoProto] {
        &self.nodes
    }

    pub fn storage_ids(&self) -> &[String] {
        &self.storage_ids
    }

    pub fn storage_types(&self) -> &[i32] {
        &self.storage_types
    }

    pub fn options(&self) -> &BlockOptions {
        &self.options
    }

    /// How long an answer may take that comes from the pipeline's end.
    pub fn patience(&self) -> Duration {
        self.options.io_timeout + TIMEOUT_EXTENSION * self.nodes.len() as u32
    }

    /// A pipeline hears from its writer this often at least: servers wait as long as clients do.
    pub fn heartbeat_interval(&self) -> Duration {
        self.options.io_timeout / 2
    }

    pub fn remove(&mut self, node: usize) -> DatanodeInfoProto {
        if node < self.storage_ids.len() {
            self.storage_ids.remove(node);
        }
        if node < self.storage_types.len() {
            self.storage_types.remove(node);
        }
        self.nodes.remove(node)
    }

    /// The index of the new server among `located`, if those are the servers of this pipeline and one more.
    pub fn addition(&self, located: &LocatedBlockProto) -> Option<usize> {
        if located.locs.len() != self.nodes.len() + 1 {
            return None;
        }
        let is_here = |node: &DatanodeInfoProto| {
            self.nodes.iter().any(|here| here.id.datanode_uuid == node.id.datanode_uuid)
        };
        located.locs.iter().position(|node| !is_here(node))
    }

    /// Goes on with these servers, in this order.
    pub fn take(&mut self, located: LocatedBlockProto) {
        self.nodes = located.locs;
        self.storage_ids = located.storage_i_ds;
        self.storage_types = located.storage_types;
    }

    /// Has one of the servers send its replica to another one, and waits until that one has it.
    pub async fn transfer(
        &self,
        block: &ExtendedBlockProto,
        source: usize,
        located: &LocatedBlockProto,
        target: usize,
        sent: u64,
    ) -> Result<(), String> {
        // Longer for more bytes, as Hadoop's client waits.
        let packets = sent / u64::from(self.options.packet_bytes.max(1));
        let extensions = u32::try_from(2 + packets / 200).unwrap_or(u32::MAX);
        let patience = self.options.io_timeout + TIMEOUT_EXTENSION.saturating_mul(extensions);
        let kind = located.storage_types.get(target).copied().unwrap_or(StorageTypeProto::Disk as i32);
        let message = OpTransferBlockProto {
            header: header(block.clone(), &located.block_token, &self.options),
            targets: vec![located.locs[target].clone()],
            target_storage_types: vec![kind],
            target_storage_ids: located.storage_i_ds.get(target).cloned().into_iter().collect(),
        };
        let transferred = async {
            let opened =
                Link::open(&self.nodes[source], Opcode::TransferBlock, &message, patience, &self.options);
            opened.await?.response().await
        };
        transferred.await.map(drop).map_err(|error: LinkError| error.to_string())
    }

    /// Sets the pipeline up for `block`. `lengths` is what all servers must have and may have. Returns the
    /// block as it is called from now on.
    pub async fn open(
        &mut self,
        block: &ExtendedBlockProto,
        stage: &Stage,
        lengths: Range<u64>,
    ) -> Result<(Link, ExtendedBlockProto), SetupError> {
        let mut renamed = block.clone();
        let stage_proto = match stage {
            Stage::Create => BlockConstructionStage::PipelineSetupCreate,
            Stage::Append { stamp, token } => {
                (renamed.generation_stamp, self.token) = (*stamp, token.clone());
                BlockConstructionStage::PipelineSetupAppend
            }
            Stage::AppendRecovery { stamp, token } => {
                (renamed.generation_stamp, self.token) = (*stamp, token.clone());
                BlockConstructionStage::PipelineSetupAppendRecovery
            }
            Stage::Recovery { stamp, token } => {
                (renamed.generation_stamp, self.token) = (*stamp, token.clone());
                BlockConstructionStage::PipelineSetupStreamingRecovery
            }
            Stage::CloseRecovery { stamp, token } => {
                (renamed.generation_stamp, self.token) = (*stamp, token.clone());
                BlockConstructionStage::PipelineCloseRecovery
            }
        };
        let message = OpWriteBlockProto {
            header: header(block.clone(), &self.token, &self.options),
            targets: self.nodes[1..].to_vec(),
            stage: stage_proto.into(),
            pipeline_size: self.nodes.len() as u32,
            min_bytes_rcvd: lengths.start,
            max_bytes_rcvd: lengths.end,
            latest_generation_stamp: match stage {
                Stage::Create => 0,
                _ => renamed.generation_stamp,
            },
            requested_checksum: ChecksumProto {
                r#type: self.checksum.kind() as i32,
                bytes_per_checksum: self.checksum.bytes_per_checksum(),
            },
            storage_type: self.storage_types.first().copied(),
            target_storage_types: self.target_storage_types(),
            storage_id: self.storage_ids.first().cloned(),
            target_storage_ids: self.storage_ids.iter().skip(1).cloned().collect(),
            ..Default::default()
        };
        match self.set_up(&message).await {
            Ok(link) => Ok((link, renamed)),
            Err(error) => {
                let bad_node = match &error {
                    LinkError::Refused { first_bad_link, .. } => {
                        self.nodes.iter().position(|node| address(node) == *first_bad_link)
                    }
                    _ => None,
                };
                // The first server speaks for all; when it blames no other server, it is to blame itself.
                Err(SetupError { bad_node: bad_node.or(Some(0)), reason: error.to_string() })
            }
        }
    }

    async fn set_up(&self, message: &OpWriteBlockProto) -> Result<Link, LinkError> {
        let mut link =
            Link::open(&self.nodes[0], Opcode::WriteBlock, message, self.patience(), &self.options).await?;
        link.response().await?;
        Ok(link)
    }

    /// The storage types of the further servers, one for each: Hadoop's servers index the list without checking its
    /// length.
    fn target_storage_types(&self) -> Vec<i32> {
        (1..self.nodes.len())
            .map(|node| self.storage_types.get(node).copied().unwrap_or(StorageTypeProto::Disk as i32))
            .collect()
    }
}
