//! A recovery whose outcome is another block: the first bytes of one that a snapshot goes on showing.

use crate::{
    create::NewReplica,
    error::{StoreError, StoreResult},
    map::{Record, Settled},
    meta_file,
    pool::PoolStore,
    writer::ReplicaWriter,
};
use base::{Block, BlockId, ChecksumKind, ExtendedBlock, GenerationStamp, StorageType};
use env::disk::read_exact_at;
use std::sync::Arc;

/// About so many bytes are copied at a time.
const PIECE: usize = 1 << 20;

impl PoolStore {
    /// Like [`PoolStore::finish_recovery`], but leaves the replica as it is and makes one of `target` that has its
    /// first `length` bytes, each checked against its checksum. A replica of `target` that an earlier recovery has
    /// made is removed.
    ///
    /// # Errors
    /// Those of [`PoolStore::finish_recovery`], and [`StoreError::State`] if the replica is not finalized.
    /// [`StoreError::Corrupt`] if its meta file is missing or bytes do not match their checksums. Those of
    /// [`PoolStore::create_temporary`] for the copy.
    pub fn finish_recovery_as_copy(
        &self,
        block: &ExtendedBlock,
        recovery: GenerationStamp,
        length: u64,
        target: BlockId,
    ) -> StoreResult<Arc<str>> {
        let record = self.under_recovery(block, recovery, length)?;
        let id = block.block.id;
        let (found, state) = (record.block(id), record.state());
        let Record::Finalized(settled) = record else {
            let what = "only a finished replica can be copied".into();
            return Err(StoreError::State { block: found, state, what });
        };
        let copy = Block { id: target, generation_stamp: recovery, length };
        let storage = self.copy(id, settled, &ExtendedBlock { pool: block.pool.clone(), block: copy })?;
        let mut map = self.state.map.write();
        if map.recovering.get(&id) == Some(&recovery) {
            map.recovering.remove(&id);
        }
        Ok(storage)
    }

    fn copy(&self, id: BlockId, settled: Settled, target: &ExtendedBlock) -> StoreResult<Arc<str>> {
        let reader = self.read_settled(id, settled)?;
        let corrupt = |what: String| StoreError::Corrupt { block: reader.block, what };
        let Some(meta) = &reader.meta_file else { return Err(corrupt("its meta file is missing".into())) };
        let failed = |error| {
            self.io_error(reader.volume, &format!("copying {} to another block", reader.block), error)
        };
        let types: Vec<(Arc<str>, StorageType)> = self.volumes.storages().collect();
        let here = types.iter().find(|(storage, _)| storage == self.storage_id(reader.volume));
        let checksum = reader.checksum;
        let length = target.block.length;
        let mut writer: ReplicaWriter = self.create_temporary(&NewReplica {
            block: target.clone(),
            checksum,
            storage_type: here.map_or(StorageType::Disk, |(_, storage_type)| *storage_type),
            size_expected: length,
        })?;
        let chunk = checksum.bytes_per_checksum as usize;
        let piece = (PIECE / chunk).max(1) * chunk;
        let mut offset = 0;
        while offset < length {
            // The whole of the last chunk, without which its checksum says nothing.
            let wanted = ((length - offset).div_ceil(chunk as u64)).saturating_mul(chunk as u64);
            let size = wanted.min(piece as u64).min(reader.block.length - offset) as usize;
            let mut data = vec![0; size];
            read_exact_at(&*reader.block_file, &mut data, offset).map_err(failed)?;
            let mut sums = vec![0; data.chunks(chunk).count() * checksum.size()];
            read_exact_at(&**meta, &mut sums, meta_file::sum_offset(checksum, offset)).map_err(failed)?;
            if checksum.kind != ChecksumKind::Null {
                let mut pairs = data.chunks(chunk).zip(sums.chunks(checksum.size()));
                if let Some(at) = pairs.position(|(data, sum)| checksum.sum(data) != sum) {
                    let at = offset + (at * chunk) as u64;
                    return Err(corrupt(format!("the chunk at offset {at} does not match its checksum")));
                }
            }
            data.truncate((length - offset).min(size as u64) as usize);
            sums.truncate(data.chunks(chunk).count() * checksum.size());
            if !data.len().is_multiple_of(chunk)
                && checksum.kind != ChecksumKind::Null
                && let Some(last) = data.chunks(chunk).next_back()
            {
                let at = sums.len() - checksum.size();
                sums[at..].copy_from_slice(&checksum.sum(last));
            }
            writer.write(offset, &data, &sums)?;
            offset += data.len() as u64;
        }
        let storage = writer.storage_id().clone();
        writer.finalize(true)?;
        Ok(storage)
    }
}
