//! An image on its way from another member: taken in chunks, resumable, checked at the end.

use crate::{Checkpoint, Journal, StagingError};

/// An image being downloaded into the store's staging directory.
pub struct Staged {
    checkpoint: Checkpoint,
    have: u64,
}

impl Staged {
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Bytes that are here and need not be asked for again: where the next chunk begins.
    pub fn have(&self) -> u64 {
        self.have
    }

    pub fn is_complete(&self) -> bool {
        self.have == self.checkpoint.file_bytes
    }

    /// Takes the bytes that follow those that are here. Blocks.
    pub fn write_chunk(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), StagingError> {
        Err(not_built())
    }

    /// All bytes are here: syncs them and checks the digest. On a digest that is wrong everything is thrown
    /// away. Blocks.
    pub fn finish(self) -> Result<StagedImage, StagingError> {
        Err(not_built())
    }
}

/// A staged image that is whole, checked and durable.
pub struct StagedImage {
    checkpoint: Checkpoint,
}

impl StagedImage {
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }
}

impl Journal {
    /// Begins to stage the image of this checkpoint, or goes on where an earlier download of the same one has
    /// stopped. Any other staged image is thrown away. One at a time.
    pub fn stage(&self, _checkpoint: Checkpoint) -> Result<Staged, StagingError> {
        Err(not_built())
    }

    /// Puts a staged image among this store's images; to be followed by [`Journal::checkpoint_committed`].
    pub fn keep_image(&self, _image: StagedImage) -> Result<(), StagingError> {
        Err(not_built())
    }

    /// The last act of a journal: it takes nothing more, and the next start replaces the log and all images by
    /// this one. Only for a member that is not in sync. Blocks.
    pub fn install(&self, _image: StagedImage) -> Result<(), StagingError> {
        Err(not_built())
    }
}

fn not_built() -> StagingError {
    StagingError::State(crate::StateError::Io {
        file: "staging".into(),
        source: std::io::Error::other("not built yet"),
    })
}
