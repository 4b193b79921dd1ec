//! Block files that the store does not know become replicas, if every byte of them is vouched for.
//!
//! Nothing is deleted here, and no file is written over: the block's id is reserved while files are moved, as it is for a
//! replica that is being removed, so that nobody else makes a replica of it meanwhile.

use super::check::{Fault, GoOn, look_at_files};
use crate::{
    layout::{Place, block_name, meta_name},
    map::{Record, Settled},
    meta_file,
    pool::PoolStore,
    volume::VolumeIndex,
};
use base::{Block, BlockId, GenerationStamp};
use env::OpenMode;
use std::{io, path::Path};

/// What became of a block file that the store did not know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TakenUp {
    /// It is a replica now.
    Yes(Block),
    /// Someone has made a replica of this block, or is about to, or removes one.
    Known,
    /// It stays where it is; the text says why.
    No(String),
    Stopped,
}

/// A block file and its meta file in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unknown<'a> {
    pub id: BlockId,
    pub stamp: GenerationStamp,
    pub directory: &'a Path,
}

impl PoolStore {
    /// Whether a replica of the block is on its way from one volume to another, and has files on both.
    pub(super) fn is_moving(&self, id: BlockId) -> bool {
        self.state.map.read().moving.contains(&id)
    }

    /// Whether the store has a replica of the block, anywhere and in any state, or is moving or removing one.
    pub(crate) fn is_known(&self, id: BlockId) -> bool {
        let map = self.state.map.read();
        map.records.contains_key(&id) || map.removing.contains(&id) || map.moving.contains(&id)
    }

    /// Takes up a replica that lies in its own directory or another one of this volume.
    pub(crate) fn take_up(&self, volume: VolumeIndex, found: Unknown<'_>, go_on: &mut GoOn<'_>) -> TakenUp {
        if self.is_known(found.id) {
            return TakenUp::Known;
        }
        let length = match self.whole_length(found, go_on) {
            Ok(length) => length,
            Err(refused) => return refused,
        };
        let Some(_in_use) = self.volume(volume).enter() else {
            return TakenUp::No("its volume is out of use".into());
        };
        if !self.reserve(found.id) {
            return TakenUp::Known;
        }
        // From here on nobody but this thread makes or removes files of this block.
        let taken = self.settle_found(volume, found, length);
        let mut map = self.state.map.write();
        map.removing.remove(&found.id);
        let (settled, used) = match taken {
            Ok(taken) => taken,
            Err(error) => return TakenUp::No(error.to_string()),
        };
        if !self.volume(volume).is_alive() || self.volumes.is_closed() {
            return TakenUp::No("its volume is out of use".into());
        }
        map.records.insert(found.id, Record::Finalized(settled));
        drop(map);
        self.state.add_used(volume, used);
        let block = settled.block(found.id);
        if let Some(observer) = self.state.observer.get() {
            observer.received(self.storage_id(volume), block);
        }
        TakenUp::Yes(block)
    }

    /// Reads both files. The meta file must be exactly as long as the block file asks for: a copy that is not complete has the
    /// sums of all bytes, and not the bytes.
    fn whole_length(&self, found: Unknown<'_>, go_on: &mut GoOn<'_>) -> Result<u64, TakenUp> {
        let refused = |error: io::Error| TakenUp::No(error.to_string());
        let (block, meta) = found.paths();
        let length = self.fitting_length(found).map_err(refused)?;
        match look_at_files(self.disk(), &block, &meta, length, 0, go_on) {
            Ok(()) => Ok(length),
            Err(Fault::Bytes { what, .. }) => Err(TakenUp::No(what)),
            Err(Fault::Io { what, error, .. }) => Err(TakenUp::No(format!("{what}: {error}"))),
            Err(Fault::Missing) => Err(TakenUp::No("its block file is gone".into())),
            Err(Fault::Stopped) => Err(TakenUp::Stopped),
        }
    }

    /// The length of the block file, if that of the meta file fits.
    fn fitting_length(&self, found: Unknown<'_>) -> io::Result<u64> {
        let (block, meta) = found.paths();
        let length = self.disk().length(&block)?;
        let file = self.disk().open(&meta, OpenMode::Read)?;
        let (wanted, has) = (meta_file::length_for(meta_file::read_header(&*file)?, length), file.length()?);
        match has == wanted {
            true => Ok(length),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("its meta file has {has} bytes, and {wanted} belong to a block file of {length}"),
            )),
        }
    }

    fn reserve(&self, id: BlockId) -> bool {
        let mut map = self.state.map.write();
        // A replica that is moved to another volume has files there before it is known to be there.
        !map.records.contains_key(&id) && !map.moving.contains(&id) && map.removing.insert(id)
    }

    /// Moves the files to their place, if they are elsewhere. They are looked at once more: before the id was reserved, others
    /// may have made a replica of it and removed it again.
    fn settle_found(
        &self,
        volume: VolumeIndex,
        found: Unknown<'_>,
        length: u64,
    ) -> io::Result<(Settled, u64)> {
        let changed = || io::Error::other("it was changed meanwhile");
        if self.fitting_length(found)? != length {
            return Err(changed());
        }
        let paths = self.paths(volume);
        let (block, meta) = found.paths();
        let home = paths.directory(Place::Finalized, found.id);
        let (block_home, meta_home) =
            (paths.block(Place::Finalized, found.id), paths.meta(Place::Finalized, found.id, found.stamp));
        if home != found.directory {
            self.disk().create_directory(&home)?;
            if self.disk().exists(&block_home)? || self.disk().exists(&meta_home)? {
                return Err(io::Error::other("there is another file in its place"));
            }
            // Meta file first, as at the end of a write.
            self.disk().rename(&meta, &meta_home)?;
            if let Err(error) = self.disk().rename(&block, &block_home) {
                let _ = self.disk().rename(&meta_home, &meta);
                return Err(error);
            }
            self.disk().sync_directory(&home)?;
        }
        let used = length + self.disk().length(&meta_home)?;
        let turn = self.state.next_turn();
        Ok((Settled { volume, generation_stamp: found.stamp, length, turn }, used))
    }
}

impl Unknown<'_> {
    fn paths(&self) -> (std::path::PathBuf, std::path::PathBuf) {
        (self.directory.join(block_name(self.id)), self.directory.join(meta_name(self.id, self.stamp)))
    }
}
