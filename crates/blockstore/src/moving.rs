//! A finished replica goes from one volume to another: to one of another storage type, or to an emptier one of the same type.
//!
//! The replica is copied, each chunk checked against its checksum, and is durable under its new name before the old files
//! go. If the server dies in between, both volumes have it; the next start takes one of them, and removes the other when it has read the first
//! ([`crate::doubles`]). Nobody waits: the
//! replica is read, appended to and removed while it is copied, and the copy is given up if the replica has changed. Only
//! while the copy gets its name is the replica kept from changes.

use crate::{
    error::{StoreError, StoreResult},
    layout::Place,
    map::{Record, Settled},
    meta_file,
    pool::PoolStore,
    reader::ReplicaReader,
    scanner::check::GoOn,
    volume::VolumeIndex,
};
use base::{Block, BlockId, ChecksumKind, ExtendedBlock, ReplicaState, StorageType};
use env::{File, OpenMode, disk::read_exact_at};
use std::{io, sync::Arc};

/// About so many bytes are copied at a time.
const PIECE: usize = 1 << 20;

impl PoolStore {
    /// Moves a finished replica of exactly `block`'s stamp, and its length unless that is 0, to a volume of
    /// `storage_type` (Hadoop: `moveBlockAcrossStorage`). Returns the storage id of that volume. It takes as long as the
    /// disks need for the copy.
    ///
    /// # Errors
    /// [`StoreError::State`] if the replica is not finished or is being moved already, or has changed meanwhile,
    /// [`StoreError::GenerationStamp`] or [`StoreError::Range`] if it has another stamp or length,
    /// [`StoreError::UnderRecovery`] if it is being recovered, [`StoreError::Exists`] if it is on a volume of that type,
    /// [`StoreError::OutOfSpace`] if no volume of that type has room, [`StoreError::Corrupt`] if it does not match its
    /// checksums; and those of every operation, see [`StoreError`]. Then the replica is where it was.
    pub fn move_to_type(&self, block: &ExtendedBlock, storage_type: StorageType) -> StoreResult<Arc<str>> {
        self.check_pool(&block.pool)?;
        let wanted = block.block;
        let id = wanted.id;
        let settled = self.finished(wanted)?;
        let found = settled.block(id);
        if self.volume(settled.volume).storage_type == storage_type {
            return Err(StoreError::Exists { block: found, state: ReplicaState::Finalized });
        }
        let target = self.volumes.choose_volume(storage_type, settled.length)?;
        if self.volume(target).storage_type != storage_type {
            return Err(StoreError::OutOfSpace(settled.length));
        }
        self.move_settled(id, settled, target, &mut |_| true)?;
        Ok(self.storage_id(target).clone())
    }

    /// Moves a finished replica of exactly `block`'s stamp and length to another volume of the same storage type. Before each
    /// piece is copied, `go_on` is asked with its bytes; it may wait, and gives the move up by `false`.
    ///
    /// # Errors
    /// Those of [`PoolStore::move_to_type`], but that [`StoreError::Exists`] tells that the replica is on that volume;
    /// [`StoreError::Unsupported`] if that volume is of another storage type, [`StoreError::VolumeLost`] if it has failed
    /// or is removed, [`StoreError::State`] if the move is given up. Then the replica is where it was.
    pub fn move_to_volume(
        &self,
        block: &ExtendedBlock,
        target: VolumeIndex,
        go_on: &mut GoOn<'_>,
    ) -> StoreResult<()> {
        self.check_pool(&block.pool)?;
        let id = block.block.id;
        let settled = self.finished(block.block)?;
        let found = settled.block(id);
        if settled.volume == target {
            return Err(StoreError::Exists { block: found, state: ReplicaState::Finalized });
        }
        if self.volume(settled.volume).storage_type != self.volume(target).storage_type {
            return Err(StoreError::Unsupported("the volumes are of different storage types".into()));
        }
        let figures = self.volumes.figures(self.volume(target));
        let figures = figures.map_err(|error| self.io_error(target, "its space cannot be read", error))?;
        if figures.remaining_bytes <= settled.length {
            return Err(StoreError::OutOfSpace(settled.length));
        }
        self.move_settled(id, settled, target, go_on)
    }

    fn move_settled(
        &self,
        id: BlockId,
        settled: Settled,
        target: VolumeIndex,
        go_on: &mut GoOn<'_>,
    ) -> StoreResult<()> {
        let found = settled.block(id);
        // Held until the last file of the copy is removed, or the copy is the replica.
        let _in_use = self.enter(target, found)?;
        if !self.state.map.write().moving.insert(id) {
            return Err(changed(found, "it is being moved already"));
        }
        self.volume(target).promise(settled.length);
        let moved = self.copy_and_switch(id, settled, target, go_on);
        self.volume(target).release(settled.length);
        match moved {
            Ok(()) => self.remove_record(found, Record::Finalized(settled)),
            Err(_) => {
                let paths = self.paths(target);
                self.remove_file(target, &paths.block(Place::Temporary, id));
                self.remove_file(target, &paths.meta(Place::Temporary, id, found.generation_stamp));
            }
        }
        // Not earlier: until then a new replica of the block would have files of the same names.
        self.state.map.write().moving.remove(&id);
        moved
    }

    /// The finished replicas on a volume, sorted by block id.
    pub fn finished_blocks(&self, volume: VolumeIndex) -> Vec<Block> {
        let map = self.state.map.read();
        let finished = map.records.iter().filter_map(|(id, record)| match record {
            Record::Finalized(settled) if settled.volume == volume => Some(settled.block(*id)),
            _ => None,
        });
        let mut blocks: Vec<_> = finished.collect();
        drop(map);
        blocks.sort_unstable();
        blocks
    }

    /// The finished replica that is asked for.
    fn finished(&self, wanted: Block) -> StoreResult<Settled> {
        let record = self.record_to_change(wanted.id)?;
        let found = record.block(wanted.id);
        let Record::Finalized(settled) = record else {
            let what = "only a finished replica can be moved".into();
            return Err(StoreError::State { block: found, state: record.state(), what });
        };
        if found.generation_stamp != wanted.generation_stamp {
            return Err(StoreError::GenerationStamp { wanted, found: found.generation_stamp });
        }
        if wanted.length > 0 && found.length != wanted.length {
            let what = format!("{found} is here, and {} bytes are to be moved", wanted.length);
            return Err(StoreError::Range(what));
        }
        Ok(settled)
    }

    fn copy_and_switch(
        &self,
        id: BlockId,
        settled: Settled,
        target: VolumeIndex,
        go_on: &mut GoOn<'_>,
    ) -> StoreResult<()> {
        let found = settled.block(id);
        let reader = self.read_settled(id, settled)?;
        let Some(meta) = reader.meta_file.clone() else {
            return Err(StoreError::Corrupt { block: found, what: "its meta file is missing".into() });
        };
        let files = self.open_files(target, Place::Temporary, found, OpenMode::CreateOrTruncate)?;
        self.copy_bytes(&reader, &*meta, target, (&*files.block, &*files.meta), go_on)?;
        for file in [&files.block, &files.meta] {
            file.sync_data().map_err(|error| self.sync_error(target, &format!("syncing {found}"), error))?;
        }
        drop(files);
        self.keep_still(id, settled)?;
        let named = self.give_name(target, found);
        let mut map = self.state.map.write();
        let is_still = map.recovering.get(&id) == Some(&found.generation_stamp);
        if is_still {
            map.recovering.remove(&id);
        }
        let is_same = is_still && is_settled_as(map.records.get(&id), settled);
        if named.is_ok() && is_same && self.volume(target).is_alive() {
            // Another turn: a replica that comes back here later is not taken for the one that was looked up before.
            let come = Settled { volume: target, turn: self.state.next_turn(), ..settled };
            map.records.insert(id, Record::Finalized(come));
            drop(map);
            self.state.unsettle(id);
            let size = found.length + meta_file::length_for(reader.checksum, found.length);
            self.state.add_used(target, size);
            return Ok(());
        }
        drop(map);
        let paths = self.paths(target);
        self.remove_file(target, &paths.block(Place::Finalized, id));
        self.remove_file(target, &paths.meta(Place::Finalized, id, found.generation_stamp));
        named?;
        Err(changed(found, "it has changed while it was being moved"))
    }

    /// Nobody changes the replica from here on, but a recovery, which has a higher stamp.
    fn keep_still(&self, id: BlockId, settled: Settled) -> StoreResult<()> {
        let mut map = self.state.map.write();
        let found = settled.block(id);
        if !is_settled_as(map.records.get(&id), settled) {
            return Err(changed(found, "it has changed while it was being moved"));
        }
        if let Some(recovery) = map.recovering.get(&id) {
            return Err(StoreError::UnderRecovery { block: found, recovery: *recovery });
        }
        map.recovering.insert(id, found.generation_stamp);
        Ok(())
    }

    /// The copy becomes a finished replica, durably.
    fn give_name(&self, target: VolumeIndex, block: Block) -> StoreResult<()> {
        let directory = self.paths(target).directory(Place::Finalized, block.id);
        self.disk()
            .create_directory(&directory)
            .and_then(|()| self.move_files(target, Place::Temporary, Place::Finalized, block))
            .map_err(|error| self.io_error(target, &format!("moving {block} to its final place"), error))?;
        self.sync_directory(target, &directory)?;
        for above in directory.ancestors().skip(1).take(2) {
            self.sync_directory(target, above)?;
        }
        Ok(())
    }

    fn copy_bytes(
        &self,
        reader: &ReplicaReader,
        meta: &dyn File,
        target: VolumeIndex,
        (block_file, meta_file): (&dyn File, &dyn File),
        go_on: &mut GoOn<'_>,
    ) -> StoreResult<()> {
        let (block, checksum) = (reader.block, reader.checksum);
        let read =
            |error: io::Error| self.io_error(reader.volume, &format!("reading {block} to move it"), error);
        let written =
            |error: io::Error| self.io_error(target, &format!("writing {block}, which is moved"), error);
        let header = meta_file::encode_header(checksum);
        write_at(meta_file, &header, 0).map_err(written)?;
        let chunk = checksum.bytes_per_checksum as usize;
        let piece = ((PIECE / chunk).max(1) * chunk) as u64;
        let mut data = Vec::new();
        let mut sums = Vec::new();
        let mut offset = 0;
        while offset < block.length {
            let size = piece.min(block.length - offset) as usize;
            if !go_on(size as u64) {
                return Err(changed(block, "its move was given up"));
            }
            // Who takes a volume away waits for this.
            if self.is_lost(reader) || !self.volume(target).is_alive() {
                return Err(StoreError::VolumeLost(block));
            }
            data.resize(size, 0);
            sums.resize(size.div_ceil(chunk) * checksum.size(), 0);
            let sums_at = meta_file::sum_offset(checksum, offset);
            read_exact_at(&*reader.block_file, &mut data, offset).map_err(read)?;
            read_exact_at(meta, &mut sums, sums_at).map_err(read)?;
            if checksum.kind != ChecksumKind::Null {
                let mut pairs = data.chunks(chunk).zip(sums.chunks(checksum.size()));
                if let Some(at) = pairs.position(|(data, sum)| checksum.sum(data) != sum) {
                    let at = offset + (at * chunk) as u64;
                    let what = format!("the chunk at offset {at} does not match its checksum");
                    return Err(StoreError::Corrupt { block, what });
                }
            }
            write_at(block_file, &data, offset).map_err(written)?;
            write_at(meta_file, &sums, sums_at).map_err(written)?;
            offset += size as u64;
        }
        Ok(())
    }
}

fn write_at(file: &dyn File, bytes: &[u8], offset: u64) -> io::Result<()> {
    if bytes.is_empty() { Ok(()) } else { file.write_at(bytes, offset) }
}

fn is_settled_as(record: Option<&Record>, settled: Settled) -> bool {
    matches!(record, Some(Record::Finalized(now)) if *now == settled)
}

fn changed(block: Block, what: &str) -> StoreError {
    StoreError::State { block, state: ReplicaState::Finalized, what: what.into() }
}
