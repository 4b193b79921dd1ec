//! How a start of this server went: which parts of the store were read, and how long each part took.

use base::Moment;
use std::path::PathBuf;

/// The parts that were loaded at a start, and when each began. Data servers' reports come after it; the block map knows how far they are.
#[derive(Clone, Debug)]
pub struct Start {
    pub began: Moment,
    /// The image was looked for from here on.
    pub image_began: Moment,
    /// `None`: the store had no image.
    pub image: Option<ImageRead>,
    /// The image was read, and the journal behind it was begun.
    pub journal_began: Moment,
    /// The directories of the journal and of the images.
    pub journal: PathBuf,
    pub images: PathBuf,
    /// Entries of the journal that were applied.
    pub replayed: u64,
    /// The member was ready to take part, and waited for reports of blocks.
    pub loaded: Moment,
}

/// The image that a start has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRead {
    pub file: PathBuf,
    pub bytes: u64,
    /// Files and directories in it.
    pub inodes: u64,
}

impl Start {
    pub fn image_ms(&self) -> u64 {
        self.journal_began.ms_since(self.image_began)
    }

    pub fn journal_ms(&self) -> u64 {
        self.loaded.ms_since(self.journal_began)
    }
}
