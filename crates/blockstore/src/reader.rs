//! A replica opened for reading.

use crate::{checksum::Checksum, replica::ReplicaState, store::VolumeIndex};
use base::Block;
use env::File;
use std::sync::Arc;

/// Open files and a consistent picture of how far they may be read. Stays readable when the replica is
/// finalized, moved or deleted meanwhile, since the files are open.
pub struct ReplicaReader {
    pub block_file: Arc<dyn File>,
    /// The whole meta file; sums begin at [`crate::meta_file::HEADER_SIZE`]. `None` when the meta file is
    /// missing (a replica without sums can still be read by whoever does not ask for them).
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
}
