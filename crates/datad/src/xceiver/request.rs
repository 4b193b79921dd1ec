//! Operations as received, turned into words and checked.

use super::refusal::Refusal;
use crate::state::State;
use base::{Block, BlockId, ExtendedBlock, GenerationStamp, StorageType};
use proto::hdfs::{
    ChecksumProto, DatanodeInfoProto, ExtendedBlockProto, OpWriteBlockProto, StorageTypeProto,
    op_write_block_proto::BlockConstructionStage as Stage,
};
use std::net::{IpAddr, SocketAddr};

/// Servers in one pipeline. A file has at most 512 replicas in HDFS.
pub const TARGETS_MAX: usize = 512;

/// The bytes that a replica may grow to when its final length is not known. HDFS knows no limit. This one, which the
/// metadata servers share, also keeps a runaway writer from filling a disk that holds more.
pub use base::BLOCK_BYTES_MAX;

pub fn block(proto: &ExtendedBlockProto) -> ExtendedBlock {
    ExtendedBlock {
        pool: proto.pool_id.as_str().into(),
        block: Block {
            id: BlockId(proto.block_id),
            generation_stamp: GenerationStamp(proto.generation_stamp),
            length: proto.num_bytes(),
        },
    }
}

pub fn block_proto(block: &ExtendedBlock) -> ExtendedBlockProto {
    ExtendedBlockProto {
        pool_id: block.pool.to_string(),
        block_id: block.block.id.0,
        generation_stamp: block.block.generation_stamp.0,
        num_bytes: Some(block.block.length),
    }
}

pub fn checksum(proto: &ChecksumProto) -> Result<pipeline::Checksum, Refusal> {
    pipeline::Checksum::new(proto.r#type, proto.bytes_per_checksum)
        .map_err(|error| Refusal::error(error.to_string()))
}

pub fn checksum_proto(checksum: pipeline::Checksum) -> ChecksumProto {
    ChecksumProto { r#type: checksum.kind() as i32, bytes_per_checksum: checksum.bytes_per_checksum() }
}

pub fn wire_checksum(checksum: blockstore::Checksum) -> Result<pipeline::Checksum, Refusal> {
    pipeline::Checksum::new(checksum.kind as i32, checksum.bytes_per_checksum)
        .map_err(|error| Refusal::error(error.to_string()))
}

pub fn disk_checksum(checksum: pipeline::Checksum) -> Result<blockstore::Checksum, Refusal> {
    Ok(blockstore::Checksum::new(checksum.kind() as u8, checksum.bytes_per_checksum() as i32)?)
}

/// `host:port` of a server, as clients compare it.
pub fn address(node: &DatanodeInfoProto) -> String {
    format!("{}:{}", node.id.ip_addr, node.id.xfer_port)
}

pub fn socket_addr(node: &DatanodeInfoProto) -> Result<SocketAddr, Refusal> {
    let bad = |what: &str| {
        Refusal::bad_link(address(node), format!("{} is no address of a data server: {what}", address(node)))
    };
    let ip = node.id.ip_addr.parse::<IpAddr>().map_err(|_| bad("an IP address is needed"))?;
    let port = u16::try_from(node.id.xfer_port).map_err(|_| bad("the port is above 65535"))?;
    if port == 0 || ip.is_unspecified() {
        return Err(bad("nobody listens there"));
    }
    Ok(SocketAddr::new(ip, port))
}

/// Refuses targets that cannot make a pipeline behind this server.
pub fn check_targets(state: &State, targets: &[DatanodeInfoProto]) -> Result<(), Refusal> {
    if targets.len() > TARGETS_MAX {
        return Err(Refusal::error(format!(
            "a pipeline of {} more servers; at most {TARGETS_MAX} are served",
            targets.len()
        )));
    }
    for (index, target) in targets.iter().enumerate() {
        let addr = socket_addr(target)?;
        let id = &target.id;
        let is_self = (!id.datanode_uuid.is_empty() && *id.datanode_uuid == *state.identity.uuid)
            || addr == state.identity.transfer_addr;
        if is_self {
            return Err(Refusal::bad_link(address(target), "this server is already in the pipeline"));
        }
        let is_repeated = targets[..index].iter().any(|earlier| address(earlier) == address(target));
        if is_repeated {
            return Err(Refusal::bad_link(
                address(target),
                format!("{} is in the pipeline twice", address(target)),
            ));
        }
    }
    Ok(())
}

/// A write, checked as far as it can be before anything is touched.
pub struct Write {
    pub block: ExtendedBlock,
    pub stage: Stage,
    pub new_stamp: GenerationStamp,
    pub length_min: u64,
    pub length_max: u64,
    pub checksum: pipeline::Checksum,
    pub storage_type: StorageType,
    /// The writer is another data server that copies a replica; nothing is acknowledged to it.
    pub is_copy: bool,
    pub header: OpWriteBlockProto,
}

impl Write {
    pub fn new(state: &State, header: OpWriteBlockProto) -> Result<Self, Refusal> {
        check_targets(state, &header.targets)?;
        let stage = Stage::try_from(header.stage)
            .map_err(|_| Refusal::error(format!("unknown stage {}", header.stage)))?;
        let is_copy = header.header.client_name.is_empty();
        let write = Self {
            block: block(&header.header.base_header.block),
            stage,
            new_stamp: GenerationStamp(header.latest_generation_stamp),
            length_min: header.min_bytes_rcvd,
            length_max: header.max_bytes_rcvd,
            checksum: checksum(&header.requested_checksum)?,
            storage_type: storage_type(header.storage_type),
            is_copy,
            header,
        };
        if write.is_transfer() && !write.header.targets.is_empty() {
            return Err(Refusal::error(format!("{stage:?} does not support further targets")));
        }
        Ok(write)
    }

    /// An append by a client that did not ask for a new stamp.
    pub fn keeps_its_stamp(&self) -> bool {
        self.stage == Stage::PipelineSetupAppend && self.new_stamp == self.block.block.generation_stamp
    }

    /// A client has another server bring this one up to a broken pipeline's state.
    pub fn is_transfer(&self) -> bool {
        matches!(self.stage, Stage::TransferRbw | Stage::TransferFinalized)
    }

    /// Packets are acknowledged one by one.
    pub fn is_acknowledged(&self) -> bool {
        !self.is_copy && !self.is_transfer()
    }
}

/// The storage type asked for. No volume is of the provided kind, so a disk serves in its place.
pub fn storage_type(code: Option<i32>) -> StorageType {
    let asked = code.and_then(|code| StorageTypeProto::try_from(code).ok()).map(StorageType::from);
    asked.filter(|asked| *asked != StorageType::Provided).unwrap_or_default()
}
