//! One partition of the tree.

use crate::{Edit, Reply, RetryLookup, Snapshot};
use base::{Block, BlockId, CallOrigin, InodeId, Timestamp, TxId};

/// See the crate's documentation.
pub struct Namespace {}

/// What `blocks` must be told after an edit was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockChange {
    /// A new last block, of length 0 and not committed.
    Allocated {
        block: Block,
        inode: InodeId,
        replication: u16,
    },
    /// The block's length is final; its replicas are now expected to be finished with exactly it.
    Committed {
        block: Block,
    },
    /// The file was closed: the block is complete as far as the namespace is concerned.
    Completed {
        block: Block,
    },
    /// The stamp of a block being written rose (pipeline recovery or block recovery), perhaps with a length.
    Restamped {
        block: Block,
    },
    ReplicationChanged {
        block: BlockId,
        from: u16,
        to: u16,
    },
    Removed(Block),
}

/// What an edit did, besides changing the tree.
#[derive(Debug, Default, PartialEq)]
pub struct Applied {
    pub reply: Reply,
    /// In the order in which they happened.
    pub block_changes: Vec<BlockChange>,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub files: u64,
    pub directories: u64,
    pub blocks: u64,
    pub files_under_construction: u64,
    /// Deleted subtrees that [`crate::ops::cleanup`] has still to take apart.
    pub orphans: u64,
    pub retry_entries: u64,
}

/// Allocated bytes, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub inodes: usize,
    pub names: usize,
    pub children: usize,
    pub blocks: usize,
    pub index: usize,
    pub attributes: usize,
    pub leases: usize,
    pub retry_cache: usize,
}

/// A digest of a request, to tell a repeated call from a call id used twice.
pub fn fingerprint(method: &str, request: &[u8]) -> u64 {
    let _ = (method, request);
    todo!()
}

impl Namespace {
    /// An empty tree whose root belongs to `owner:group`. `seed` keys the hash tables of this process: it
    /// reaches no edit, digest or image.
    pub fn new(seed: u64, owner: &str, group: &str, now: Timestamp) -> Self {
        let _ = (seed, owner, group, now);
        todo!()
    }

    /// Carries out an edit that [`crate::ops`] planned, on this member or another.
    pub fn apply(&mut self, at: TxId, edit: &Edit) -> Applied {
        let _ = (at, edit);
        todo!()
    }

    /// The first entry of an epoch: raises the id counters by these steps, so that an id given out in a tail
    /// that was cut off is never used again. Needed by `metad` at every start.
    pub fn start_epoch(&mut self, at: TxId, inodes: u64, blocks: u64, generation_stamps: u64) {
        let _ = (at, inodes, blocks, generation_stamps);
        todo!()
    }

    /// An entry of the log that is no edit (a checkpoint): only the place in the log moves on.
    pub fn pass(&mut self, at: TxId) {
        let _ = at;
        todo!()
    }

    /// The newest block id and generation stamp given out; `blocks` is told after a start.
    pub fn last_allocated(&self) -> (BlockId, base::GenerationStamp) {
        todo!()
    }

    /// The last edit applied; `TxId::default()` before the first.
    pub fn applied(&self) -> TxId {
        todo!()
    }

    /// To be asked before planning a call that changes something.
    pub fn retry_lookup(&self, origin: &CallOrigin, fingerprint: u64) -> RetryLookup {
        let _ = (origin, fingerprint);
        todo!()
    }

    /// Equal on all members that applied the same edits.
    pub fn digest(&self) -> u64 {
        todo!()
    }

    /// The tree as it is now, to be written by another thread while this one goes on.
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }

    pub fn counts(&self) -> Counts {
        todo!()
    }

    pub fn memory(&self) -> Memory {
        todo!()
    }

    /// The holders of leases in order of their names, with the files that each has open.
    pub fn leases(&self) -> impl Iterator<Item = (&str, usize)> {
        std::iter::empty()
    }

    /// The files that a holder has open, in order of their ids.
    pub fn files_of(&self, holder: &str) -> Vec<InodeId> {
        let _ = holder;
        todo!()
    }

    /// All blocks of all files, to fill `blocks` after an image was read. The flag says whether the block is
    /// committed.
    pub fn for_each_block(&self, visit: &mut dyn FnMut(Block, InodeId, u16, bool)) {
        let _ = visit;
        todo!()
    }

    /// The file that a block being written belongs to.
    pub fn file_of_open_block(&self, block: BlockId) -> Option<InodeId> {
        let _ = block;
        todo!()
    }

    /// The path of an inode; `None` if it is not (or no longer) in the tree.
    pub fn path_of(&self, inode: InodeId) -> Option<String> {
        let _ = inode;
        todo!()
    }
}
