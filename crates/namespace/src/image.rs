//! The whole tree as bytes; see `docs/format/namespace-image.md`.

mod read;
mod write;

use crate::tree::Tree;
use base::TxId;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("reading the image failed")]
    Read(#[from] io::Error),
    #[error("image section {section}: {what}")]
    Malformed { section: &'static str, what: String },
}

/// The tree at one moment. It shares the pages that did not change since then.
pub struct Snapshot {
    tree: Tree,
}

impl Snapshot {
    pub(crate) fn new(tree: Tree) -> Self {
        Self { tree }
    }

    /// The last edit that it contains.
    pub fn applied(&self) -> TxId {
        self.tree.counters.applied
    }

    pub fn digest(&self) -> u64 {
        self.tree.digest()
    }

    /// Hands out the image piece by piece. The same tree gives the same bytes on every member.
    pub fn write(&self, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        write::write(&self.tree, sink)
    }
}
