//! Taking up replicas again: appends, and pipelines that broke.

use crate::{
    active::{Active, Files},
    checksum::Checksum,
    error::{StoreError, StoreResult},
    layout::Place,
    map::{Record, Settled},
    meta_file,
    pool::PoolStore,
    reader::read_header,
    volume::VolumeIndex,
    writer::ReplicaWriter,
};
use base::{Block, BlockId, ExtendedBlock, GenerationStamp, ReplicaState};
use env::OpenMode;
use parking_lot::MutexGuard;
use std::sync::Arc;

impl PoolStore {
    /// Opens a finalized replica of exactly `length` bytes and `block`'s generation stamp to be written on, at
    /// stamp `new_stamp`. That may be the stamp that it has: as in Hadoop, whose rule some clients rely on that append
    /// without asking the metadata service for a new one. `docs/protocol/stamps.md` says what holds then.
    ///
    /// # Errors
    /// [`StoreError::UnderRecovery`] if the replica is being recovered, [`StoreError::State`] if it is not finalized or
    /// has another length than asked for, [`StoreError::GenerationStamp`] if it has another stamp, or `new_stamp` is
    /// lower than its own, [`StoreError::Corrupt`] if its last chunk or the header of its meta file is damaged; and
    /// those of every operation, see [`StoreError`].
    pub fn append(
        &self,
        block: &ExtendedBlock,
        new_stamp: GenerationStamp,
        length: u64,
    ) -> StoreResult<ReplicaWriter> {
        self.check_pool(&block.pool)?;
        let wanted = block.block;
        match self.record_to_change(wanted.id)? {
            Record::Finalized(settled) => {
                let found = settled.block(wanted.id);
                if found.generation_stamp != wanted.generation_stamp || new_stamp < found.generation_stamp {
                    return Err(StoreError::GenerationStamp { wanted, found: found.generation_stamp });
                }
                check_length(found, ReplicaState::Finalized, length)?;
                self.reopen(settled, found, new_stamp)
            }
            other => Err(wrong_state(wanted.id, &other, "only a finalized replica can be appended to")),
        }
    }

    /// Takes up an interrupted append, whether its replica is finalized or being written.
    ///
    /// # Errors
    /// [`StoreError::UnderRecovery`] if the replica is being recovered, [`StoreError::State`] if it is neither
    /// finalized nor being written or has another length, [`StoreError::GenerationStamp`] if its stamp is lower than
    /// `block`'s or higher than `new_stamp`, [`StoreError::Corrupt`] if it is finalized and its last chunk or the
    /// header of its meta file is damaged; and those of every operation, see [`StoreError`].
    pub fn recover_append(
        &self,
        block: &ExtendedBlock,
        new_stamp: GenerationStamp,
        length: u64,
    ) -> StoreResult<ReplicaWriter> {
        self.check_pool(&block.pool)?;
        let wanted = block.block;
        match self.record_to_change(wanted.id)? {
            Record::Finalized(settled) => {
                let found = settled.block(wanted.id);
                check_stamp(found, wanted, new_stamp)?;
                check_length(found, ReplicaState::Finalized, length)?;
                self.reopen(settled, found, new_stamp)
            }
            Record::Active(active) if active.state() == ReplicaState::BeingWritten => {
                let (mut files, writer) = self.take_over(&active, wanted, new_stamp)?;
                check_settled(&active, length)?;
                self.raise_stamp(&active, &mut files, new_stamp)?;
                self.open_again(&active, &mut files)?;
                drop(files);
                Ok(ReplicaWriter::new(self.clone(), active, writer))
            }
            other => Err(wrong_state(wanted.id, &other, "it cannot be appended to")),
        }
    }

    /// Takes up a replica being written after its pipeline broke: the earlier writer is fenced off, and bytes
    /// that the pipeline never acknowledged are cut off. Refused when less than `length_min` was acknowledged
    /// here, or more than `length_max` is on disk.
    ///
    /// # Errors
    /// [`StoreError::UnderRecovery`] if the replica is being recovered, [`StoreError::State`] if it is not being
    /// written, [`StoreError::GenerationStamp`] if its stamp is lower than `block`'s or higher than `new_stamp`,
    /// [`StoreError::Range`] if its lengths are outside the bounds: then the earlier writer is fenced off all the same.
    /// And those of every operation, see [`StoreError`].
    pub fn recover_rbw(
        &self,
        block: &ExtendedBlock,
        new_stamp: GenerationStamp,
        length_min: u64,
        length_max: u64,
    ) -> StoreResult<ReplicaWriter> {
        self.check_pool(&block.pool)?;
        let wanted = block.block;
        let active = match self.record_to_change(wanted.id)? {
            Record::Active(active) if active.state() == ReplicaState::BeingWritten => active,
            other => return Err(wrong_state(wanted.id, &other, "Cannot recover a non-RBW replica")),
        };
        let (mut files, writer) = self.take_over(&active, wanted, new_stamp)?;
        let (visible, on_disk) = (active.visible(), active.on_disk());
        if visible < length_min || on_disk > length_max {
            return Err(StoreError::Range(format!(
                "Unmatched length replica {}: {visible} bytes acknowledged and {on_disk} received, not in the \
                 range [{length_min}, {length_max}]",
                active.block()
            )));
        }
        self.open_again(&active, &mut files)?;
        if on_disk > visible {
            self.cut(&active, &mut files, visible)?;
        } else if files.is_torn {
            self.mend(&active, &mut files)?;
        }
        self.raise_stamp(&active, &mut files, new_stamp)?;
        drop(files);
        Ok(ReplicaWriter::new(self.clone(), active, writer))
    }

    /// The pipeline broke while closing: finalizes the replica (when it is not yet) at `new_stamp`.
    /// Durable before it returns: a broken pipeline is no time to leave things to the page cache. Returns
    /// the block and the storage id that holds it.
    ///
    /// # Errors
    /// Those of [`PoolStore::recover_append`] but [`StoreError::Corrupt`].
    pub fn recover_close(
        &self,
        block: &ExtendedBlock,
        new_stamp: GenerationStamp,
        length: u64,
    ) -> StoreResult<(Block, Arc<str>)> {
        self.check_pool(&block.pool)?;
        let wanted = block.block;
        match self.record_to_change(wanted.id)? {
            Record::Finalized(settled) => {
                let found = settled.block(wanted.id);
                check_stamp(found, wanted, new_stamp)?;
                check_length(found, ReplicaState::Finalized, length)?;
                self.restamp_finalized(settled, found, new_stamp)?;
                let storage = self.storage_id(settled.volume).clone();
                Ok((Block { generation_stamp: new_stamp, ..found }, storage))
            }
            Record::Active(active) if active.state() == ReplicaState::BeingWritten => {
                let taken = self.take_over(&active, wanted, new_stamp);
                if matches!(taken, Err(StoreError::State { state: ReplicaState::Finalized, .. })) {
                    // The close went through after all, while this call waited for it.
                    return self.recover_close(block, new_stamp, length);
                }
                let (mut files, _) = taken?;
                check_settled(&active, length)?;
                self.raise_stamp(&active, &mut files, new_stamp)?;
                self.open_again(&active, &mut files)?;
                let block = self.finalize_active(&active, &mut files, true)?;
                Ok((block, self.storage_id(active.volume).clone()))
            }
            other => Err(wrong_state(wanted.id, &other, "it cannot be closed")),
        }
    }

    /// Turns a temporary replica (a transfer to a broken pipeline's new member) into one being written, all
    /// of it acknowledged. `visible` is the number of bytes that readers already see: the copy must have as many.
    ///
    /// # Errors
    /// [`StoreError::Replaced`] if a newer writer has the replica, [`StoreError::Exists`] if it is not temporary,
    /// [`StoreError::Range`] if fewer than `visible` bytes were copied, [`StoreError::Io`] if its files cannot be
    /// moved.
    pub fn convert_temporary_to_rbw(&self, writer: ReplicaWriter, visible: u64) -> StoreResult<Block> {
        let (active, token) = writer.parts();
        let mut files = active.files_for(token)?;
        let block = active.block();
        if files.place != Place::Temporary {
            return Err(StoreError::Exists { block, state: active.state() });
        }
        if block.length < visible {
            return Err(StoreError::Range(format!(
                "{block}: {} bytes were copied, {visible} are visible to readers",
                block.length
            )));
        }
        self.move_files(active.volume, Place::Temporary, Place::BeingWritten, block)
            .map_err(|error| self.io_error(active.volume, &format!("moving {block} to rbw"), error))?;
        files.place = Place::BeingWritten;
        active.set_acknowledged(&mut files, block.length);
        active.set_written_by_client(&mut files);
        Ok(block)
    }

    /// Fences off the writer there is; its next write finds out.
    fn take_over<'a>(
        &self,
        active: &'a Arc<Active>,
        wanted: Block,
        new_stamp: GenerationStamp,
    ) -> StoreResult<(MutexGuard<'a, Files>, u64)> {
        let files = self.lock_files(active)?;
        if files.place == Place::Finalized {
            return Err(StoreError::State {
                block: active.block(),
                state: ReplicaState::Finalized,
                what: "it was completed meanwhile".into(),
            });
        }
        check_stamp(active.block(), wanted, new_stamp)?;
        let writer = active.replace_writer();
        Ok((files, writer))
    }

    pub(crate) fn open_again(&self, active: &Active, files: &mut Files) -> StoreResult<()> {
        if files.open.is_none() {
            let open = self.open_files(active.volume, files.place, active.block(), OpenMode::ReadWrite)?;
            files.open = Some(open);
        }
        Ok(())
    }

    /// Cuts off the bytes that a failed write has left behind the end of the replica, and puts the last chunk's sum back.
    pub(crate) fn mend(&self, active: &Active, files: &mut Files) -> StoreResult<()> {
        self.open_again(active, files)?;
        let length = active.on_disk();
        let sum = files.last_sum;
        self.cut(active, files, length)?;
        // The cut has computed the last sum from the bytes on the disk, and these may have rotted.
        if let (Some(sum), Some(open)) = (sum, files.open.clone()) {
            let at = meta_file::sum_offset(
                active.checksum,
                length - length % active.checksum.bytes_per_checksum as u64,
            );
            let io = |error| self.io_error(active.volume, &format!("mending {}", active.block()), error);
            // As long as the sum is not there, the replica is not mended.
            (files.last_sum, files.is_torn) = (Some(sum), true);
            open.meta.write_at(&sum[..active.checksum.size()], at).map_err(io)?;
            files.is_torn = false;
        }
        Ok(())
    }

    /// Cuts a replica being written back to `length`, and makes the last chunk's sum fit.
    pub(crate) fn cut(&self, active: &Active, files: &mut Files, length: u64) -> StoreResult<()> {
        let open = files.open.clone().ok_or(StoreError::Replaced(active.block()))?;
        let checksum = active.checksum;
        let before = active.on_disk();
        let io = |error| self.io_error(active.volume, &format!("cutting {}", active.block()), error);
        let partial = length % checksum.bytes_per_checksum as u64;
        let start = length - partial;
        let mut last_sum = None;
        if partial > 0 {
            let mut chunk = vec![0; partial as usize];
            env::disk::read_exact_at(&*open.block, &mut chunk, start).map_err(io)?;
            last_sum = Some(checksum.sum(&chunk));
        }
        open.block.set_length(length).map_err(io)?;
        open.meta.set_length(meta_file::length_for(checksum, length)).map_err(io)?;
        if let Some(sum) = last_sum {
            let at = meta_file::sum_offset(checksum, start);
            open.meta.write_at(&sum[..checksum.size()], at).map_err(io)?;
        }
        files.last_sum = last_sum;
        files.is_torn = false;
        active.set_on_disk(files, length);
        let size = |length| length + meta_file::length_for(checksum, length);
        self.state.sub_used(active.volume, size(before) - size(length));
        Ok(())
    }

    pub(crate) fn raise_stamp(
        &self,
        active: &Active,
        files: &mut Files,
        stamp: GenerationStamp,
    ) -> StoreResult<()> {
        let block = active.block();
        if block.generation_stamp != stamp {
            let paths = self.paths(active.volume);
            let from = paths.meta(files.place, block.id, block.generation_stamp);
            let to = paths.meta(files.place, block.id, stamp);
            self.disk().rename(&from, &to).map_err(|error| {
                self.io_error(active.volume, &format!("raising the stamp of {block}"), error)
            })?;
            active.set_stamp(files, stamp);
            files.is_named_durably = false;
        }
        Ok(())
    }

    pub(crate) fn restamp_finalized(
        &self,
        settled: Settled,
        found: Block,
        stamp: GenerationStamp,
    ) -> StoreResult<()> {
        let _in_use = self.enter(settled.volume, found)?;
        let paths = self.paths(settled.volume);
        // Under the map's lock: a rename is quick, and nobody may look the replica up half-way.
        let mut map = self.state.map.write();
        let record = map.records.get_mut(&found.id).filter(|record| record.block(found.id) == found);
        let Some(record @ Record::Finalized(_)) = record else {
            return Err(StoreError::NotFound(found.id));
        };
        if found.generation_stamp != stamp {
            let from = paths.meta(Place::Finalized, found.id, found.generation_stamp);
            let renamed = self.disk().rename(&from, &paths.meta(Place::Finalized, found.id, stamp));
            if let Err(error) = renamed {
                drop(map);
                return Err(self.io_error(settled.volume, &format!("raising the stamp of {found}"), error));
            }
            *record = Record::Finalized(Settled {
                generation_stamp: stamp,
                turn: self.state.next_turn(),
                ..settled
            });
        }
        drop(map);
        self.sync_directory(settled.volume, &paths.directory(Place::Finalized, found.id))
    }

    /// Moves a finalized replica back to `rbw`, the block file first and durably: should the power go now, the
    /// meta file still tells the old stamp, the only one that the metadata service surely knows.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the replica was changed meanwhile, [`StoreError::Corrupt`] if its last chunk or the
    /// header of its meta file is damaged, [`StoreError::Io`] if its files cannot be opened or moved.
    pub(crate) fn reopen(
        &self,
        settled: Settled,
        found: Block,
        stamp: GenerationStamp,
    ) -> StoreResult<ReplicaWriter> {
        let open = self.open_files(settled.volume, Place::Finalized, found, OpenMode::ReadWrite)?;
        let checksum = read_header(self, settled.volume, found, &*open.meta)?;
        let last_sum = self.read_tail(settled, found, checksum, &open)?;
        let files = Files {
            place: Place::Finalized,
            open: Some(open),
            last_sum,
            promised: 0,
            is_named_durably: false,
            was_durable: true,
            is_torn: false,
            is_gone: false,
        };
        let active = Arc::new(Active::new(found, settled.volume, checksum, files));
        let writer = active.replace_writer();
        let mut files = active.files.lock();
        {
            let mut map = self.state.map.write();
            match map.records.get_mut(&found.id) {
                Some(Record::Finalized(now)) if *now == settled => {
                    *map.records.get_mut(&found.id).expect("just found") = Record::Active(active.clone());
                }
                _ => return Err(StoreError::NotFound(found.id)),
            }
        }
        self.state.unsettle(found.id);
        if let Err(error) = self.move_to_rbw(settled.volume, found, stamp) {
            // It may be gone with its volume, or be another's by now.
            let back = Settled { turn: self.state.next_turn(), ..settled };
            let _ = self.settle(&active, Record::Finalized(back));
            return Err(error);
        }
        files.place = Place::BeingWritten;
        active.set_stamp(&mut files, stamp);
        drop(files);
        Ok(ReplicaWriter::new(self.clone(), active, writer))
    }

    /// Moves the files of a finished replica to where replicas are written, under the new stamp. The names are durable before
    /// anything is written on. After an error the files are where they were; should that fail too, a restart puts it right.
    fn move_to_rbw(&self, volume: VolumeIndex, found: Block, stamp: GenerationStamp) -> StoreResult<()> {
        let paths = self.paths(volume);
        let block_home = paths.block(Place::Finalized, found.id);
        let block_away = paths.block(Place::BeingWritten, found.id);
        let meta_home = paths.meta(Place::Finalized, found.id, found.generation_stamp);
        let meta_away = paths.meta(Place::BeingWritten, found.id, stamp);
        let moving = |error| self.io_error(volume, &format!("moving {found} back to rbw"), error);
        self.disk().rename(&block_home, &block_away).map_err(moving)?;
        [Place::BeingWritten, Place::Finalized]
            .iter()
            .try_for_each(|place| self.sync_directory(volume, &paths.directory(*place, found.id)))
            .and_then(|()| self.disk().rename(&meta_home, &meta_away).map_err(moving))
            .inspect_err(|_| drop(self.disk().rename(&block_away, &block_home)))
    }

    fn read_tail(
        &self,
        settled: Settled,
        block: Block,
        checksum: Checksum,
        open: &crate::active::OpenFiles,
    ) -> StoreResult<Option<[u8; 4]>> {
        meta_file::read_last_sum(&*open.block, &*open.meta, checksum, block.length).map_err(|error| {
            match error.kind() {
                std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof => {
                    StoreError::Corrupt { block, what: error.to_string() }
                }
                _ => self.io_error(settled.volume, &format!("reading back {block}"), error),
            }
        })
    }
}

/// The replica's stamp must lie between the one that the client knows and the new one.
fn check_stamp(found: Block, wanted: Block, new_stamp: GenerationStamp) -> StoreResult<()> {
    let range = wanted.generation_stamp..=new_stamp;
    if range.contains(&found.generation_stamp) {
        return Ok(());
    }
    Err(StoreError::GenerationStamp { wanted, found: found.generation_stamp })
}

fn check_length(found: Block, state: ReplicaState, length: u64) -> StoreResult<()> {
    if found.length == length {
        return Ok(());
    }
    Err(StoreError::State {
        block: found,
        state,
        what: format!("Corrupted replica with a length of {}, expected length is {length}", found.length),
    })
}

/// A replica whose pipeline broke while closing or appending has nothing unacknowledged.
fn check_settled(active: &Active, length: u64) -> StoreResult<()> {
    check_length(active.block(), ReplicaState::BeingWritten, length)?;
    if active.visible() != length {
        return Err(StoreError::State {
            block: active.block(),
            state: ReplicaState::BeingWritten,
            what: format!("{} of its bytes are acknowledged, expected {length}", active.visible()),
        });
    }
    Ok(())
}

fn wrong_state(id: BlockId, record: &Record, what: &str) -> StoreError {
    StoreError::State { block: record.block(id), state: record.state(), what: what.into() }
}
