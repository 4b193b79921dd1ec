//! The errors of a store: one enum for opening it, one for serving replicas.

use base::{Block, BlockId, GenerationStamp, ReplicaState};
use std::{io, path::PathBuf};
use thiserror::Error;

pub type StoreResult<T> = Result<T, StoreError>;

/// Why a data directory cannot be used.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Mend or remove the directory.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// End the other process, or give this one another directory.
    #[error("{}: another process holds this data directory (its in_use.lock is locked)", path.display())]
    Locked { path: PathBuf },
    /// Point the server at its own cluster, or give it an empty directory.
    #[error("{}: {key} is {found}, but the metadata server's is {wanted}: the directory belongs to another cluster", path.display())]
    Foreign { path: PathBuf, key: &'static str, found: String, wanted: String },
    /// Use a newer Clover (or the Hadoop that wrote it).
    #[error("{}: layoutVersion is {found}; this server reads {supported} (a lower number is a newer layout)", path.display())]
    Layout { path: PathBuf, found: i64, supported: i64 },
    /// End the DataNode's upgrade, by Hadoop's own means.
    #[error("{}: {what}, stop it, and start this server again; nothing was changed", path.display())]
    Unfinished { path: PathBuf, what: &'static str },
    /// Restore the file, or remove the directory and let its blocks be copied again.
    #[error("{}: {what}", path.display())]
    Version { path: PathBuf, what: String },
    /// Give directories of one data server only.
    #[error("{}: datanodeUuid is {found}, but another data directory has {wanted}", path.display())]
    Uuid { path: PathBuf, found: String, wanted: String },
    #[error("{failed} of {all} data directories cannot be used, {tolerated} may fail; the first: {first}")]
    TooManyFailed { failed: usize, all: usize, tolerated: usize, first: Box<OpenError> },
    /// Mount the disk; or empty the directory, if it is to be new.
    #[error(
        "{}: this data directory was missing, and the cluster is not new: is its disk mounted? Only for a new data server or a new disk: \
         `mkdir -p {0} && rm -f {0}/in_use.lock`, and start again",
        path.display()
    )]
    Missing { path: PathBuf },
    /// Mount the disk, or make the directory if it is to be new.
    #[error("{}: there is no such data directory, or only its lock: is its disk mounted? Only for a new disk: `mkdir -p {0} && rm -f {0}/in_use.lock`, and give the order again", path.display())]
    MissingToAdd { path: PathBuf },
    /// Let other data servers serve this pool.
    #[error(
        "block pool {pool} is not served here: this data server serves {count_max} others, and no more are possible"
    )]
    TooManyPools { pool: String, count_max: usize },
    #[error("no data directory is given")]
    NoVolume,
    /// Start the server again; or give it fewer directories.
    #[error("this process has opened {count_max} data directories since its start, and opens no more")]
    TooManyVolumes { count_max: usize },
}

/// Why an operation on a replica is refused or failed. Each operation gives [`StoreError::UnknownPool`] if the block's
/// pool is not served, [`StoreError::NotFound`] if there is no replica of the block, and [`StoreError::VolumeLost`] or
/// [`StoreError::Io`] if the replica's disk has failed or refuses. Its own documentation says what else it gives.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Ask another server. The text is one that Hadoop's clients look for.
    #[error("Replica not found for {0}")]
    NotFound(BlockId),
    #[error("the replica of {wanted} has generation stamp {found}")]
    GenerationStamp { wanted: Block, found: GenerationStamp },
    /// Hadoop: `ReplicaAlreadyExistsException`.
    #[error("Block {block} already exists in state {state} and thus cannot be created.")]
    Exists { block: Block, state: ReplicaState },
    /// Try again later. Hadoop: `ReplicaAlreadyExistsException`.
    #[error("{0} cannot be created yet: the files of the replica that was here are being removed")]
    BeingRemoved(Block),
    #[error("the replica of {block} is {state}: {what}")]
    State { block: Block, state: ReplicaState, what: String },
    /// Try again later. Hadoop: `RecoveryInProgressException`.
    #[error("{block} is being recovered at stamp {recovery}")]
    UnderRecovery { block: Block, recovery: GenerationStamp },
    /// The pool of another cluster, or the server has not yet shaken hands.
    #[error("block pool {0} is not served here")]
    UnknownPool(String),
    /// Fix the request.
    #[error("{0}")]
    Checksum(String),
    /// Fix the request: a gap, an overlap that cannot be written, a length out of range.
    #[error("{0}")]
    Range(String),
    /// The replica on disk is not what its meta file says: take another replica.
    #[error("the replica of {block} is corrupt: {what}")]
    Corrupt { block: Block, what: String },
    /// Another writer has taken the replica over (pipeline recovery).
    #[error("the writer of {0} has been replaced by a newer one")]
    Replaced(Block),
    /// Hadoop: `DiskOutOfSpaceException`.
    #[error("Out of space: no volume has {0} bytes free")]
    OutOfSpace(u64),
    /// The volume is gone; its replicas are reported so.
    #[error("the volume that held {0} has failed")]
    VolumeLost(Block),
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
    #[error("{0}")]
    Unsupported(String),
}
