//! The facts about a file that exist only while it is being written.

use super::arena::{Arena, NONE, Slot};
use base::Block;

#[derive(Clone)]
pub(crate) struct OpenFile {
    pub last_block: u32,
    /// The client that holds the lease, as a handle in the strings.
    pub holder: u32,
    /// The machine that the client runs on.
    pub machine: u32,
    /// The generation stamp that a running block recovery was given; 0: none runs.
    pub recovery: u64,
    /// The file is being truncated inside its last block, and that recovery is to leave so many bytes of it. The
    /// block has the length that it had until the recovery has come to its end.
    pub truncation: Option<u64>,
    /// The block whose bytes the recovery copies into the last block, because a snapshot shows it. It is not to go
    /// away while it may be needed, whatever becomes of the snapshot.
    pub source: Option<Block>,
}

impl Default for OpenFile {
    fn default() -> Self {
        Self { last_block: NONE, holder: NONE, machine: NONE, recovery: 0, truncation: None, source: None }
    }
}

impl Slot for OpenFile {
    fn next_free(&self) -> u32 {
        self.last_block
    }
    fn set_next_free(&mut self, next: u32) {
        self.last_block = next;
    }
}

pub(crate) type OpenFiles = Arena<OpenFile>;
