//! The store: replicas by block id, over all volumes.

use crate::{
    checksum::Checksum,
    config::{PoolInfo, StorageType, StoreConfig},
    error::{OpenError, StoreResult},
    reader::ReplicaReader,
    replica::ReplicaFacts,
    threads::VolumeThreads,
    writer::ReplicaWriter,
};
use base::{Block, BlockId, ExtendedBlock, GenerationStamp};
use env::Env;
use std::sync::Arc;

/// A volume's place in the configuration; stays the same while the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeIndex(pub u16);

/// A data server's replicas.
pub struct BlockStore {
    _todo: (),
}

/// What a new replica is to be.
#[derive(Clone, Debug)]
pub struct NewReplica {
    pub block: ExtendedBlock,
    pub checksum: Checksum,
    /// Preferred; another type serves when no volume has it.
    pub storage_type: StorageType,
    /// Bytes that the replica may grow to (0 when unknown): volumes with less are not chosen.
    pub size_expected: u64,
}

/// Told of replicas that went away without the caller's doing.
pub trait Observer: Send + Sync {
    /// An invalidated replica's files are gone.
    fn deleted(&self, storage_id: &str, block: Block);
    /// A volume failed and took these with it.
    fn volume_lost(&self, storage_id: &str, blocks: Vec<Block>);
}

/// One volume's figures for a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageReport {
    pub storage_id: Arc<str>,
    pub storage_type: StorageType,
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub remaining_bytes: u64,
    /// Used on the disk by others.
    pub non_dfs_used_bytes: u64,
}

impl BlockStore {
    /// Locks the data directories and reads who they belong to. Replicas are not served before
    /// [`BlockStore::serve_pool`].
    pub fn open(env: Env, config: StoreConfig) -> Result<Arc<Self>, OpenError> {
        let _ = (env, config);
        todo!()
    }

    /// The handshake's answer: refuses directories of another cluster, formats empty ones, and scans the
    /// pool's replicas. A second call with the same pool changes nothing.
    pub fn serve_pool(&self, pool: &PoolInfo) -> Result<(), OpenError> {
        let _ = pool;
        todo!()
    }

    pub fn pool(&self) -> Option<PoolInfo> {
        todo!()
    }

    /// This server's uuid: read from the directories, or made anew for empty ones.
    pub fn uuid(&self) -> Arc<str> {
        todo!()
    }

    pub fn set_observer(&self, observer: Arc<dyn Observer>) {
        let _ = observer;
        todo!()
    }

    pub fn threads(&self) -> &VolumeThreads {
        todo!()
    }

    /// A new replica to be written by a client's pipeline.
    pub fn create_rbw(self: &Arc<Self>, new: &NewReplica) -> StoreResult<ReplicaWriter> {
        let _ = new;
        todo!()
    }

    /// A new replica to be copied from another server.
    pub fn create_temporary(self: &Arc<Self>, new: &NewReplica) -> StoreResult<ReplicaWriter> {
        let _ = new;
        todo!()
    }

    /// Opens a finalized replica of exactly `length` bytes and `block`'s generation stamp to be written on, at
    /// stamp `new_stamp`.
    pub fn append(
        self: &Arc<Self>,
        block: &ExtendedBlock,
        new_stamp: GenerationStamp,
        length: u64,
    ) -> StoreResult<ReplicaWriter> {
        let _ = (block, new_stamp, length);
        todo!()
    }

    /// Takes up an interrupted append, whether its replica is finalized or being written.
    pub fn recover_append(
        self: &Arc<Self>,
        block: &ExtendedBlock,
        new_stamp: GenerationStamp,
        length: u64,
    ) -> StoreResult<ReplicaWriter> {
        let _ = (block, new_stamp, length);
        todo!()
    }

    /// Takes up a replica being written after its pipeline broke: the earlier writer is fenced off, bytes
    /// beyond `length_max` are cut off, fewer than `length_min` are refused.
    pub fn recover_rbw(
        self: &Arc<Self>,
        block: &ExtendedBlock,
        new_stamp: GenerationStamp,
        length_min: u64,
        length_max: u64,
    ) -> StoreResult<ReplicaWriter> {
        let _ = (block, new_stamp, length_min, length_max);
        todo!()
    }

    /// The pipeline broke while closing: finalizes the replica (when it is not yet) at `new_stamp`.
    /// Returns the block and the storage id that holds it.
    pub fn recover_close(
        self: &Arc<Self>,
        block: &ExtendedBlock,
        new_stamp: GenerationStamp,
        length: u64,
    ) -> StoreResult<(Block, Arc<str>)> {
        let _ = (block, new_stamp, length);
        todo!()
    }

    /// Turns a temporary replica (a transfer to a broken pipeline's new member) into one being written.
    pub fn convert_temporary_to_rbw(self: &Arc<Self>, block: &ExtendedBlock) -> StoreResult<Block> {
        let _ = block;
        todo!()
    }

    /// Opens a replica for reading: not temporary ones. The stamp may be older than the replica's, as a
    /// reader learnt it before an append; a replica older than asked for is refused.
    pub fn read(&self, block: &ExtendedBlock) -> StoreResult<ReplicaReader> {
        let _ = block;
        todo!()
    }

    pub fn facts(&self, pool: &str, id: BlockId) -> StoreResult<ReplicaFacts> {
        let _ = (pool, id);
        todo!()
    }

    /// Forgets the replica at once and removes its files in the background, then tells the observer.
    pub fn invalidate(&self, block: &ExtendedBlock) -> StoreResult<()> {
        let _ = block;
        todo!()
    }

    /// Every replica of each living volume but temporary ones, sorted by block id.
    pub fn block_reports(&self) -> Vec<(Arc<str>, StorageType, Vec<ReplicaFacts>)> {
        todo!()
    }

    pub fn storage_reports(&self) -> Vec<StorageReport> {
        todo!()
    }

    /// Storage ids of volumes that failed since the store opened.
    pub fn failed_volumes(&self) -> Vec<String> {
        todo!()
    }

    /// The storage id of a volume.
    pub fn storage_id(&self, volume: VolumeIndex) -> Arc<str> {
        let _ = volume;
        todo!()
    }
}
