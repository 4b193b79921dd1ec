//! A replica opened for reading.

use crate::{
    active::{Active, OpenFiles},
    checksum::Checksum,
    error::{StoreError, StoreResult},
    layout::Place,
    map::{Record, Settled},
    meta_file,
    pool::PoolStore,
    schedule::read_stream::ReadStream,
    usage::VolumeUse,
    volume::VolumeIndex,
};
use base::{Block, BlockId, ChecksumKind, ExtendedBlock, ReplicaState};
use env::{File, OpenMode};
use std::{io, sync::Arc};

/// Open files and a consistent picture of how far they may be read. Stays readable when the replica is
/// finalized, moved or deleted meanwhile, since the files are open.
pub struct ReplicaReader {
    pub block_file: Arc<dyn File>,
    /// The whole meta file; sums begin at [`crate::meta_file::HEADER_SIZE`]. `None` when the meta file is missing (a
    /// replica without sums can still be read by a client that does not ask for them); `checksum` is of kind `Null`
    /// then.
    pub meta_file: Option<Arc<dyn File>>,
    pub checksum: Checksum,
    /// Id, generation stamp and how many bytes may be served. While the replica is being written this is
    /// what is on disk (packets that later fail in the pipeline included); see `visible_length`.
    pub block: Block,
    pub visible_length: u64,
    pub state: ReplicaState,
    /// While being written: the sum of the last, partial chunk that ends exactly at `block.length`. The meta
    /// file may already cover more of that chunk, so this one is sent instead.
    pub last_sum: Option<[u8; 4]>,
    pub volume: VolumeIndex,
    /// The volume is not given away while this is held.
    _in_use: VolumeUse,
}

impl PoolStore {
    /// Opens a replica for reading: not temporary ones, and not those waiting for recovery. The stamp may be
    /// older than the replica's, as a reader learnt it before an append; a replica older than asked for is
    /// refused.
    ///
    /// # Errors
    /// [`StoreError::GenerationStamp`] if the replica's stamp is lower than asked for, [`StoreError::State`] if it is
    /// temporary or waits for recovery, [`StoreError::Corrupt`] if the header of its meta file is damaged; and those of
    /// every operation, see [`StoreError`].
    pub fn read(&self, block: &ExtendedBlock) -> StoreResult<ReplicaReader> {
        self.check_pool(&block.pool)?;
        let id = block.block.id;
        let record = self.record(id)?;
        let found = record.block(id).generation_stamp;
        if found < block.block.generation_stamp {
            return Err(StoreError::GenerationStamp { wanted: block.block, found });
        }
        match record {
            Record::Finalized(settled) => self.read_finished(id, settled),
            Record::Waiting(settled) => Err(StoreError::State {
                block: settled.block(id),
                state: ReplicaState::WaitingRecovery,
                what: "it can be read once its lease has been recovered".into(),
            }),
            Record::Active(active) => self.read_active(&active),
        }
    }

    /// Whether the volume of an opened replica has been lost since it was opened. Its readers then go to another server.
    pub fn is_lost(&self, reader: &ReplicaReader) -> bool {
        !self.volume(reader.volume).is_alive()
    }

    /// Turns for a reader of bytes `begin..end` of a replica one after the other; `None` where its volume has no turns.
    pub fn read_stream(&self, reader: &ReplicaReader, begin: u64, end: u64) -> Option<ReadStream> {
        let turns = self.volumes.turns(reader.volume)?;
        Some(ReadStream::open(turns, &reader.block_file, reader.meta_file.clone(), (begin, end)))
    }

    /// An append, a new stamp or a move renames files: what was looked up may be elsewhere before it is opened. Then it is looked up
    /// once more, as often as somebody else has changed it.
    fn read_finished(&self, id: BlockId, mut settled: Settled) -> StoreResult<ReplicaReader> {
        loop {
            let reader = self.read_settled(id, settled);
            if reader.as_ref().is_ok_and(|reader| reader.meta_file.is_some()) {
                return reader;
            }
            match self.record(id)? {
                Record::Finalized(now) if now != settled => settled = now,
                Record::Active(active) => return self.read_active(&active),
                _ => return reader,
            }
        }
    }

    pub(crate) fn read_settled(&self, id: BlockId, settled: Settled) -> StoreResult<ReplicaReader> {
        let block = settled.block(id);
        let in_use = self.enter(settled.volume, block)?;
        let paths = self.paths(settled.volume);
        let block_file = match self.disk().open(&paths.block(Place::Finalized, id), OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.forget_missing(id, settled);
                return Err(StoreError::NotFound(id));
            }
            Err(error) => {
                return Err(self.io_error(settled.volume, &format!("the block file of {block}"), error));
            }
        };
        let meta_path = paths.meta(Place::Finalized, id, settled.generation_stamp);
        let (meta_file, checksum) = match self.disk().open(&meta_path, OpenMode::Read) {
            Ok(file) => {
                let checksum = read_header(self, settled.volume, block, &*file)?;
                (Some(file), checksum)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                (None, Checksum { kind: ChecksumKind::Null, ..Checksum::DEFAULT })
            }
            Err(error) => {
                return Err(self.io_error(settled.volume, &format!("the meta file of {block}"), error));
            }
        };
        Ok(ReplicaReader {
            block_file,
            meta_file,
            checksum,
            block,
            visible_length: block.length,
            state: ReplicaState::Finalized,
            last_sum: None,
            volume: settled.volume,
            _in_use: in_use,
        })
    }

    pub(crate) fn read_active(&self, active: &Arc<Active>) -> StoreResult<ReplicaReader> {
        // Held while the picture is taken, so that length and last sum belong together.
        let files = active.files.lock();
        let block = active.block();
        if files.is_gone {
            return Err(StoreError::NotFound(active.id));
        }
        if active.state() == ReplicaState::Temporary {
            return Err(StoreError::State {
                block,
                state: ReplicaState::Temporary,
                what: "it is being copied and cannot be read yet".into(),
            });
        }
        let in_use = self.enter(active.volume, block)?;
        let open = match &files.open {
            Some(open) => open.clone(),
            None => self.open_files(active.volume, files.place, block, OpenMode::Read)?,
        };
        Ok(ReplicaReader {
            block_file: open.block,
            meta_file: Some(open.meta),
            checksum: active.checksum,
            block,
            visible_length: active.visible(),
            // Finalized between the look-up and now: nothing else about it has changed.
            state: match files.place {
                Place::Finalized => ReplicaState::Finalized,
                _ => ReplicaState::BeingWritten,
            },
            last_sum: files.last_sum,
            volume: active.volume,
            _in_use: in_use,
        })
    }

    /// Both files of a replica.
    pub(crate) fn open_files(
        &self,
        volume: VolumeIndex,
        place: Place,
        block: Block,
        mode: OpenMode,
    ) -> StoreResult<OpenFiles> {
        let paths = self.paths(volume);
        let open = |path: &std::path::Path| {
            self.disk()
                .open(path, mode)
                .map_err(|error| self.io_error(volume, &format!("opening {}", path.display()), error))
        };
        Ok(OpenFiles {
            block: open(&paths.block(place, block.id))?,
            meta: open(&paths.meta(place, block.id, block.generation_stamp))?,
        })
    }
}

pub(crate) fn read_header(
    store: &PoolStore,
    volume: VolumeIndex,
    block: Block,
    meta: &dyn File,
) -> StoreResult<Checksum> {
    meta_file::read_header(meta).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            StoreError::Corrupt { block, what: format!("its meta file: {error}") }
        }
        _ => store.io_error(volume, &format!("the meta file of {block}"), error),
    })
}
