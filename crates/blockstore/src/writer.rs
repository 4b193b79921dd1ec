//! A replica open for writing.

use crate::{
    active::{Active, Files},
    checksum::Checksum,
    error::{StoreError, StoreResult},
    layout::Place,
    map::{Record, Settled},
    meta_file,
    pool::PoolStore,
    schedule::write_stream::{Gate, WriteStream},
    volume::VolumeIndex,
};
use base::{Block, ChecksumKind, ReplicaState};
use env::{File, disk::read_exact_at};
use std::sync::Arc;

/// Where there are no turns, the system is asked to drop what is written each time that so much was, as Hadoop's servers do.
const DROPPED_BYTES: u64 = 8 << 20;

/// The one writer of a replica being written or copied in. Dropped without [`ReplicaWriter::finalize`], a
/// replica being written stays as it is (pipeline recovery may take it up again); a temporary one is removed.
pub struct ReplicaWriter {
    store: PoolStore,
    active: Arc<Active>,
    writer: u64,
    /// Its turns, where the volume has turns.
    stream: Option<WriteStream>,
    /// Where there are none: whether written bytes leave the system's memory, and how far that was asked for.
    drops_behind: bool,
    dropped: u64,
}

/// Raises the visible length of a replica being written.
#[derive(Clone)]
pub struct Acknowledger {
    active: Arc<Active>,
    writer: u64,
}

impl Acknowledger {
    /// The whole pipeline has this many bytes of the block. It has no effect once another writer has taken over.
    pub fn acknowledge(&self, length: u64) {
        self.active.acknowledge(self.writer, length);
    }
}

impl ReplicaWriter {
    pub(crate) fn new(store: PoolStore, active: Arc<Active>, writer: u64) -> Self {
        let stream = store.volumes.turns(active.volume).map(|turns| {
            let promised = active.files.lock().promised;
            WriteStream::open(turns, if promised > 0 { active.on_disk() + promised } else { 0 })
        });
        let drops_behind = store.volumes.config.turns.drops_behind_writes;
        let dropped = active.on_disk();
        Self { store, active, writer, stream, drops_behind, dropped }
    }

    /// Whether written bytes leave the system's memory once the disk has them: the writer's own wish.
    pub fn set_drops_behind(&mut self, drops_behind: bool) {
        self.drops_behind = drops_behind;
        if let Some(stream) = &self.stream {
            stream.file().set_drops_behind(drops_behind);
        }
    }

    /// Where the sender asks for room before it takes more from the network; `None` where the volume has no turns.
    pub fn gate(&self) -> Option<Gate> {
        self.stream.as_ref().map(WriteStream::gate)
    }

    pub(crate) fn parts(&self) -> (&Arc<Active>, u64) {
        (&self.active, self.writer)
    }

    /// Id, generation stamp and bytes on disk.
    pub fn block(&self) -> Block {
        self.active.block()
    }

    pub fn volume(&self) -> VolumeIndex {
        self.active.volume
    }

    pub fn storage_id(&self) -> &Arc<str> {
        self.store.storage_id(self.active.volume)
    }

    /// The checksum of the meta file. Packets must come with this one: a continued replica keeps the one it
    /// began with.
    pub fn checksum(&self) -> Checksum {
        self.active.checksum
    }

    /// A handle that notes, from any thread, how many bytes the whole pipeline has acknowledged. Readers may see
    /// those bytes.
    pub fn acknowledger(&self) -> Acknowledger {
        Acknowledger { active: self.active.clone(), writer: self.writer }
    }

    /// Whether another writer has taken this replica over (or it is gone): nothing more can be written.
    pub fn is_replaced(&self) -> bool {
        !self.active.is_written_by(self.writer)
    }

    /// Writes `data` at `offset` of the block with `sums`, one for each chunk of `data`, already verified by
    /// the caller. `offset` may lie before the end (a packet that repeats a partial chunk) but not beyond it.
    /// When `offset` is not at a chunk's start, `data` must not reach beyond that chunk, `sums` holds the sum
    /// of `data` alone, and the chunk's sum is computed anew from disk and data.
    ///
    /// Data first, then sums: see [`meta_file::verified_length`] for what a crash between leaves.
    ///
    /// # Errors
    /// [`StoreError::Replaced`] if a newer writer has the replica; [`StoreError::Range`] for a gap, or data that begins
    /// inside a chunk and reaches beyond it; [`StoreError::Checksum`] for a wrong number of sums;
    /// [`StoreError::Corrupt`] if the chunk that is continued does not match its sum; [`StoreError::Io`] if the disk
    /// cannot be read or written.
    pub fn write(&mut self, offset: u64, data: &[u8], sums: &[u8]) -> StoreResult<()> {
        self.write_admitted(offset, data, sums, 0)
    }

    /// The same, for data of which `admitted` bytes came through the [`ReplicaWriter::gate`].
    ///
    /// # Errors
    /// Those of [`ReplicaWriter::write`].
    pub fn write_admitted(
        &mut self,
        offset: u64,
        data: &[u8],
        sums: &[u8],
        admitted: u64,
    ) -> StoreResult<()> {
        let put = self.put(offset, data, sums);
        if let Some(stream) = &self.stream {
            match &put {
                Ok(Some(put)) => stream.wrote(&put.file, put.begin, put.end, admitted),
                _ => stream.give_back(admitted),
            }
        }
        let Some(Put { file, end, .. }) = put? else { return Ok(()) };
        if self.stream.is_none() && self.drops_behind && end >= self.dropped + DROPPED_BYTES {
            // The system drops the bytes that the disk has, and begins to write out the rest, which it drops the next time.
            file.forget_cached(0, end).map_err(|error| self.error("dropping from memory", error))?;
            self.dropped = end;
        }
        Ok(())
    }

    /// `None` when all of the data is there already.
    fn put(&mut self, offset: u64, data: &[u8], sums: &[u8]) -> StoreResult<Option<Put>> {
        if let Some(error) = self.stream.as_ref().and_then(|stream| stream.file().failure()) {
            return Err(self.error("writing out", error));
        }
        let mut files = self.active.files_for(self.writer)?;
        let before = self.active.on_disk();
        let piece = self.cut(&files, before, offset, data, sums)?;
        let Some(piece) = piece else { return Ok(None) };
        let open = files.open.clone().ok_or(StoreError::Replaced(self.active.block()))?;
        // The files are torn until both writes are done. If one fails, the bytes that it has left are cut off before the replica is
        // finished or written on.
        let was_torn = std::mem::replace(&mut files.is_torn, true);
        open.block.write_at(piece.data, piece.offset).map_err(|error| self.error("writing", error))?;
        let sums_at = meta_file::sum_offset(self.active.checksum, piece.offset);
        if !piece.sums().is_empty() {
            open.meta
                .write_at(piece.sums(), sums_at)
                .map_err(|error| self.error("writing sums of", error))?;
        }
        // An earlier one may have reached further.
        files.is_torn = was_torn;
        let end = piece.offset + piece.data.len() as u64;
        let checksum = self.active.checksum;
        files.last_sum = match end % checksum.bytes_per_checksum as u64 {
            0 => None,
            _ => piece.sums().last_chunk().copied(),
        };
        self.active.set_on_disk(&mut files, end);
        let volume = self.store.volume(self.active.volume);
        let fresh = end - before;
        let has_room = self.stream.as_ref().is_some_and(|stream| stream.file().has_taken_room());
        // Room that is taken is not free any more, and is not promised a second time.
        let kept = if has_room { files.promised } else { files.promised.min(fresh) };
        files.promised -= kept;
        volume.release(kept);
        let size = |length| length + meta_file::length_for(checksum, length);
        self.store.state.add_used(self.active.volume, size(end) - size(before));
        Ok(Some(Put { file: open.block, begin: piece.offset, end }))
    }

    /// The part of a packet that is to be written, with its sums; `None` when all of it is there already.
    fn cut<'a>(
        &self,
        files: &Files,
        before: u64,
        offset: u64,
        data: &'a [u8],
        sums: &'a [u8],
    ) -> StoreResult<Option<Piece<'a>>> {
        let checksum = self.active.checksum;
        let chunk = checksum.bytes_per_checksum as u64;
        let block = self.active.block();
        let range = |what: String| StoreError::Range(format!("{block}: {what}"));
        let end = offset
            .checked_add(data.len() as u64)
            .filter(|end| *end <= i64::MAX as u64)
            .ok_or_else(|| range(format!("offset {offset} is out of range")))?;
        if offset > before {
            return Err(range(format!("a packet at offset {offset} leaves a gap: {before} bytes are here")));
        }
        let within = offset % chunk;
        if within > 0 && end > offset - within + chunk {
            return Err(range(format!(
                "a packet that begins inside a chunk, at {offset}, reaches beyond that chunk, to {end}"
            )));
        }
        // A packet without data, which only asks for a sync, may come at any place.
        let is_continued = within > 0 && !data.is_empty();
        let chunk_count = if is_continued { 1 } else { checksum.chunk_count(data.len() as u64) };
        if sums.len() as u64 != chunk_count * checksum.size() as u64 {
            return Err(StoreError::Checksum(format!(
                "{block}: {} bytes of checksums for {chunk_count} chunks of at most {chunk} bytes",
                sums.len()
            )));
        }
        if end <= before {
            return Ok(None);
        }
        if within > 0 {
            let sum = self.continued_sum(files, before, offset, data)?;
            return Ok(Some(Piece { offset, data, sums: Sums::Computed(sum, checksum.size()) }));
        }
        // Full chunks that are here already stay untouched: readers may be at them.
        let skipped_chunks = (before / chunk).saturating_sub(offset / chunk);
        let skipped = skipped_chunks * chunk;
        Ok(Some(Piece {
            offset: offset + skipped,
            data: &data[skipped as usize..],
            sums: Sums::Given(&sums[skipped_chunks as usize * checksum.size()..]),
        }))
    }

    /// The sum of the chunk that holds `offset`, once `data` stands there: from what is on disk, which is
    /// checked first so that a corrupt beginning is not blessed with a fresh sum.
    fn continued_sum(&self, files: &Files, before: u64, offset: u64, data: &[u8]) -> StoreResult<[u8; 4]> {
        let checksum = self.active.checksum;
        let start = offset - offset % checksum.bytes_per_checksum as u64;
        if checksum.kind == ChecksumKind::Null {
            return Ok([0; 4]);
        }
        let open = files.open.as_ref().ok_or(StoreError::Replaced(self.active.block()))?;
        let mut bytes = vec![0; (before - start) as usize];
        read_exact_at(&*open.block, &mut bytes, start).map_err(|error| self.error("reading back", error))?;
        if files.last_sum.is_some_and(|sum| checksum.sum(&bytes) != sum) {
            return Err(StoreError::Corrupt {
                block: self.active.block(),
                what: format!("the chunk at offset {start} does not match its checksum"),
            });
        }
        bytes.truncate((offset - start) as usize);
        bytes.extend_from_slice(data);
        Ok(checksum.sum(&bytes))
    }

    /// Makes all written so far durable (hsync).
    ///
    /// # Errors
    /// [`StoreError::Replaced`] if a newer writer has the replica; [`StoreError::Io`] if a file or directory cannot be
    /// synced.
    pub fn sync(&mut self) -> StoreResult<()> {
        let _urgent = self.stream.as_ref().map(WriteStream::urgent);
        let mut files = self.active.files_for(self.writer)?;
        self.store.sync_files(&self.active, &mut files)?;
        files.was_durable = true;
        if !files.is_named_durably {
            let directory = self.store.paths(self.active.volume).directory(files.place, self.active.id);
            self.store.sync_directory(self.active.volume, &directory)?;
            files.is_named_durably = true;
        }
        if let Some(stream) = &self.stream {
            stream.synced(self.active.on_disk());
        }
        Ok(())
    }

    /// The replica is complete: moves block and meta file to their final place. With `sync`, and where some of its bytes have been durable before,
    /// its bytes and names are durable before this returns.
    ///
    /// # Errors
    /// [`StoreError::Replaced`] if a newer writer has the replica; [`StoreError::Io`] if the files cannot be synced or
    /// moved.
    pub fn finalize(self, sync: bool) -> StoreResult<Block> {
        if let Some(stream) = &self.stream {
            stream.file().end();
        }
        let sync = sync || self.active.files_for(self.writer)?.was_durable;
        let _urgent = self.stream.as_ref().filter(|_| sync).map(WriteStream::urgent);
        let mut files = self.active.files_for(self.writer)?;
        let open = files.open.clone().filter(|_| self.stream.is_none() && self.drops_behind);
        let block = self.store.finalize_active(&self.active, &mut files, sync)?;
        match &self.stream {
            Some(stream) if sync => stream.synced(block.length),
            _ => {}
        }
        if let Some(open) = open
            && let Err(error) = open.block.forget_cached(0, block.length)
        {
            tracing::debug!(%block, %error, "a replica stays in the system's memory");
        }
        Ok(block)
    }

    fn error(&self, what: &str, error: std::io::Error) -> StoreError {
        self.store.io_error(self.active.volume, &format!("{what} {}", self.active.block()), error)
    }
}

impl Drop for ReplicaWriter {
    fn drop(&mut self) {
        let mut files = self.active.files.lock();
        if let Some(stream) = &self.stream
            && (files.is_gone || files.place == Place::Temporary)
        {
            stream.forget();
        }
        if files.is_gone || files.place == Place::Finalized || !self.active.is_written_by(self.writer) {
            return;
        }
        let volume = self.store.volume(self.active.volume);
        volume.release(std::mem::take(&mut files.promised));
        files.open = None;
        if self.active.state() == ReplicaState::Temporary {
            self.store.forget_active(&self.active);
            self.store.remove_active(&self.active, &mut files);
        }
    }
}

/// Bytes that have been written to a block file.
struct Put {
    file: Arc<dyn File>,
    begin: u64,
    end: u64,
}

struct Piece<'a> {
    offset: u64,
    data: &'a [u8],
    sums: Sums<'a>,
}

enum Sums<'a> {
    Given(&'a [u8]),
    Computed([u8; 4], usize),
}

impl Piece<'_> {
    fn sums(&self) -> &[u8] {
        match &self.sums {
            Sums::Given(sums) => sums,
            Sums::Computed(sum, size) => &sum[..*size],
        }
    }
}

impl PoolStore {
    /// Moves a complete replica to its final place. A crash may leave one of its files here and the other in
    /// `rbw`, which [`crate::scan`] brings together again.
    pub(crate) fn finalize_active(
        &self,
        active: &Arc<Active>,
        files: &mut Files,
        sync: bool,
    ) -> StoreResult<Block> {
        if files.is_torn {
            self.mend(active, files)?;
        }
        let block = active.block();
        let index = active.volume;
        if let Some(open) = &files.open {
            open.block
                .give_back_room()
                .map_err(|error| self.io_error(index, &format!("giving back room of {block}"), error))?;
        }
        if sync && files.open.is_some() {
            self.sync_files(active, files)?;
        }
        let paths = self.paths(index);
        let target = paths.directory(Place::Finalized, block.id);
        let moved = self
            .disk()
            .create_directory(&target)
            .and_then(|()| self.move_files(index, files.place, Place::Finalized, block));
        moved.map_err(|error| self.io_error(index, &format!("moving {block} to its final place"), error))?;
        let source = paths.place(files.place);
        if sync {
            self.sync_directory(index, &target)?;
            if !self.state.is_directory_durable(index, block.id) {
                for above in target.ancestors().skip(1).take(2) {
                    self.sync_directory(index, above)?;
                }
                self.state.set_directory_durable(index, block.id);
            }
            self.sync_directory(index, &source)?;
        }
        files.place = Place::Finalized;
        files.open = None;
        files.last_sum = None;
        self.volume(index).release(std::mem::take(&mut files.promised));
        let settled = Settled {
            volume: index,
            generation_stamp: block.generation_stamp,
            length: block.length,
            turn: self.state.next_turn(),
        };
        active.set_acknowledged(files, block.length);
        active.set_written_by_client(files);
        self.settle(active, Record::Finalized(settled))?;
        Ok(block)
    }

    /// Meta file first.
    pub(crate) fn move_files(
        &self,
        index: VolumeIndex,
        from: Place,
        to: Place,
        block: Block,
    ) -> std::io::Result<()> {
        let paths = self.paths(index);
        let stamp = block.generation_stamp;
        self.disk().rename(&paths.meta(from, block.id, stamp), &paths.meta(to, block.id, stamp))?;
        self.disk().rename(&paths.block(from, block.id), &paths.block(to, block.id))
    }

    pub(crate) fn sync_files(&self, active: &Active, files: &mut Files) -> StoreResult<()> {
        let open = files.open.as_ref().ok_or(StoreError::Replaced(active.block()))?;
        for file in [&open.block, &open.meta] {
            file.sync_data().map_err(|error| {
                self.sync_error(active.volume, &format!("syncing {}", active.block()), error)
            })?;
        }
        Ok(())
    }

    pub(crate) fn sync_directory(&self, index: VolumeIndex, path: &std::path::Path) -> StoreResult<()> {
        self.disk()
            .sync_directory(path)
            .map_err(|error| self.sync_error(index, &format!("syncing {}", path.display()), error))
    }
}
