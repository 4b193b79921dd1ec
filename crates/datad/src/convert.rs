//! Between Hadoop's messages and the words of `base` and `blockstore`.

use base::{Block, BlockId, ExtendedBlock, GenerationStamp, StorageType};
use blockstore::ReplicaState;
use proto::hdfs::{
    BlockProto, DatanodeStorageProto, ExtendedBlockProto, ReplicaStateProto, StorageTypeProto,
    datanode_storage_proto::StorageState,
};

/// Negative numbers travel in unsigned fields.
pub fn signed(number: u32) -> i32 {
    number as i32
}

pub fn block_to_proto(block: Block) -> BlockProto {
    BlockProto { block_id: block.id.0, gen_stamp: block.generation_stamp.0, num_bytes: Some(block.length) }
}

pub fn block_from_proto(block: &BlockProto) -> Block {
    Block {
        id: BlockId(block.block_id),
        generation_stamp: GenerationStamp(block.gen_stamp),
        length: block.num_bytes.unwrap_or(0),
    }
}

pub fn extended_from_proto(block: &ExtendedBlockProto) -> ExtendedBlock {
    ExtendedBlock {
        pool: block.pool_id.as_str().into(),
        block: Block {
            id: BlockId(block.block_id),
            generation_stamp: GenerationStamp(block.generation_stamp),
            length: block.num_bytes.unwrap_or(0),
        },
    }
}

pub fn extended_to_proto(pool: &str, block: Block) -> ExtendedBlockProto {
    ExtendedBlockProto {
        pool_id: pool.into(),
        block_id: block.id.0,
        generation_stamp: block.generation_stamp.0,
        num_bytes: Some(block.length),
    }
}

pub fn replica_state_to_proto(state: ReplicaState) -> ReplicaStateProto {
    match state {
        ReplicaState::Finalized => ReplicaStateProto::Finalized,
        ReplicaState::BeingWritten => ReplicaStateProto::Rbw,
        ReplicaState::WaitingRecovery => ReplicaStateProto::Rwr,
        ReplicaState::UnderRecovery => ReplicaStateProto::Rur,
        ReplicaState::Temporary => ReplicaStateProto::Temporary,
    }
}

pub fn replica_state_from_proto(state: ReplicaStateProto) -> ReplicaState {
    match state {
        ReplicaStateProto::Finalized => ReplicaState::Finalized,
        ReplicaStateProto::Rbw => ReplicaState::BeingWritten,
        ReplicaStateProto::Rwr => ReplicaState::WaitingRecovery,
        ReplicaStateProto::Rur => ReplicaState::UnderRecovery,
        ReplicaStateProto::Temporary => ReplicaState::Temporary,
    }
}

pub fn storage_to_proto(storage_id: &str, storage_type: StorageType) -> DatanodeStorageProto {
    DatanodeStorageProto {
        storage_uuid: storage_id.into(),
        state: Some(StorageState::Normal as i32),
        storage_type: Some(StorageTypeProto::from(storage_type) as i32),
    }
}
