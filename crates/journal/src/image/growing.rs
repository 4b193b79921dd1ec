//! The file of an image that arrives in pieces, and goes on where an earlier arrival stopped.

use super::{ImageHeader, intact_bytes};
use crate::Checkpoint;
use base::GroupId;
use env::File;
use std::{io, sync::Arc};

/// The beginning of an image, with room for the rest behind it.
pub(crate) struct GrowingImage {
    checkpoint: Checkpoint,
    file: Arc<dyn File>,
    have: u64,
    synced: u64,
}

impl GrowingImage {
    /// Begins with an empty file.
    pub fn begin(file: Arc<dyn File>, checkpoint: Checkpoint) -> Self {
        Self { checkpoint, file, have: 0, synced: 0 }
    }

    /// Goes on with the bytes in the file that are surely those of this image. The bytes behind them are dropped.
    ///
    /// # Errors
    /// `Unsupported` if a later release wrote the file; or it cannot be read or cut.
    pub fn resume(file: Arc<dyn File>, checkpoint: Checkpoint, group: GroupId) -> io::Result<Self> {
        let header = ImageHeader { group, at: checkpoint.at, store_uuid: [0; 16] };
        let have = intact_bytes(&file, &header)?.min(checkpoint.file_bytes);
        file.set_length(have)?;
        Ok(Self { checkpoint, file, have, synced: have })
    }

    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The number of bytes that are here: the offset of the next piece.
    pub fn have(&self) -> u64 {
        self.have
    }

    pub fn is_complete(&self) -> bool {
        self.have == self.checkpoint.file_bytes
    }

    /// Refuses a piece that goes beyond the image's length, with a text that says so.
    ///
    /// # Errors
    /// The piece is too long.
    pub fn check_length(&self, piece: &[u8]) -> Result<(), String> {
        match piece.len() as u64 > self.checkpoint.file_bytes - self.have {
            true => Err(format!("more than its {} bytes", self.checkpoint.file_bytes)),
            false => Ok(()),
        }
    }

    /// Writes a piece behind the bytes that are here, and syncs the file each time that `unsynced_max` bytes have come.
    ///
    /// # Errors
    /// The file cannot be written or synced.
    pub fn write(&mut self, piece: &[u8], unsynced_max: u64) -> io::Result<()> {
        self.file.write_at(piece, self.have)?;
        self.have += piece.len() as u64;
        if self.have - self.synced >= unsynced_max {
            self.sync()?;
        }
        Ok(())
    }

    /// # Errors
    /// The file cannot be synced.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.synced = self.have;
        Ok(())
    }
}
