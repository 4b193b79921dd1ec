//! The types that go into a [`crate::BlockMap`] and come out of it.

use crate::{
    contested::Contest,
    server::{DataServer, StorageReport, StorageType, VolumeFailures},
    slow_reports::{SlowDisk, SlowPeer},
};
pub use base::ReplicaState;
use base::{AdminState, Block, BlockId, GenerationStamp, InodeId};
use std::{fmt, sync::Arc};
use thiserror::Error;

/// How far the writing of a block has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockState {
    /// A client writes it; length and generation stamp may still change.
    UnderConstruction,
    /// The client has said how long it is; not yet enough replicas have been reported.
    Committed,
    Complete,
}

/// A row of a block report, already freed of what cannot be represented: the decoder drops rows with a negative id,
/// length or stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedReplica {
    pub block: Block,
    pub state: ReplicaState,
}

/// A row of an incremental report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Increment {
    Receiving(Block),
    /// Finalized. `delete_hint` is the uuid of a server whose replica may go if there are too many.
    Received {
        block: Block,
        delete_hint: Option<Arc<str>>,
    },
    /// A deleted replica; only the id of the block counts.
    Deleted(Block),
}

/// The data server that speaks, as it names itself in each message. All of it must agree with its registration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ServerId<'a> {
    pub uuid: &'a str,
    pub ip: &'a str,
    pub transfer_port: u16,
    /// The key that the server was given when it registered. Unlike the other fields, only the server itself knows
    /// it.
    pub session: &'a [u8],
    /// The number of the connection that brings the message. One that was made later has a higher number.
    pub connection: u64,
}

/// The key of a registration, made of chance. A later message that does not carry it is not from whom it says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionKey(pub [u8; SessionKey::BYTES]);

impl SessionKey {
    pub const BYTES: usize = 16;
}

#[derive(Clone, Debug, Default)]
pub struct Heartbeat {
    pub storages: Vec<StorageReport>,
    pub cache_capacity: u64,
    pub cache_used: u64,
    pub xceivers: u32,
    pub transfers_in_progress: u32,
    pub failed_volumes: u32,
    pub volume_failures: Option<VolumeFailures>,
    pub slow_peers: Vec<SlowPeer>,
    pub slow_disks: Vec<SlowDisk>,
}

/// An order to a data server.
#[derive(Clone, Debug)]
pub enum Command {
    /// Register again: it is not known here.
    Register,
    Transfer(Vec<Transfer>),
    /// Delete these replicas.
    Invalidate(Vec<Block>),
    /// Have the servers of each block agree on its length.
    Recover(Vec<Recovery>),
    /// Move blocks for balancing at this many bytes per second at most.
    BalancingRate(u64),
}

/// Bring an unfinished block to an end under a new stamp.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The block, with the stamp that its replicas have so far.
    pub block: Block,
    pub stamp: GenerationStamp,
    /// The block that shall result, whatever length its servers have; `None` lets the servers agree on a length. If
    /// it has another id, `block` stays as it is and is copied.
    pub truncation: Option<Block>,
    pub places: Vec<Location>,
}

/// Copy a block from the commanded server through a pipeline of the targets.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub block: Block,
    pub targets: Vec<Location>,
}

/// A storage on a data server, as the wire names it: where a replica is, or shall be.
#[derive(Clone, Debug)]
pub struct Location {
    pub server: Arc<DataServer>,
    pub storage: Arc<str>,
    pub storage_type: StorageType,
}

/// The places where a block can be read, the best for the asking reader first.
#[derive(Clone, Debug)]
pub struct Located {
    pub block: Block,
    pub state: BlockState,
    /// Every replica is known to be damaged; they are listed all the same.
    pub corrupt: bool,
    pub locations: Vec<Location>,
}

/// The place of a reader or writer in the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reader<'a> {
    /// Address or host name.
    pub host: Option<&'a str>,
}

/// A replica of a block that is not complete, as its data server last described it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UcReplica {
    pub generation_stamp: GenerationStamp,
    pub length: u64,
    pub state: ReplicaState,
}

/// The facts that data servers have reported about a block. The plans of `complete` and `addBlock` need them.
#[derive(Clone, Debug)]
pub struct Facts {
    pub block: Block,
    pub inode: InodeId,
    pub state: BlockState,
    pub replication: u16,
    /// Finalized, undamaged replicas on live servers, with the block's generation stamp (and its length,
    /// once that is known).
    pub live: usize,
    /// `live` has reached the minimum for a written block.
    pub min_replication_reached: bool,
    /// All replicas that were reported while the block was under construction.
    pub replicas: Vec<UcReplica>,
}

impl Facts {
    /// Finalized replicas that have exactly this length and stamp: what counts when a client closes a block.
    pub fn finalized_as(&self, block: Block) -> usize {
        if self.state == BlockState::Complete {
            return if self.block == block { self.live } else { 0 };
        }
        let matches = |replica: &&UcReplica| {
            replica.state == ReplicaState::Finalized
                && replica.length == block.length
                && replica.generation_stamp == block.generation_stamp
        };
        self.replicas.iter().filter(matches).count()
    }
}

/// News that parked calls or the operator may wait for. Fetched with [`crate::BlockMap::take_events`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Blocks not yet complete for which another finalized replica was reported and which now have the
    /// minimal number. Parked `complete` calls look again.
    pub newly_safe: Vec<BlockId>,
    /// Safe mode ended by itself.
    pub left_safe_mode: bool,
    /// Servers with more unknown replicas than may be deleted before an operator has looked.
    pub held_back: Vec<HeldBack>,
    /// Servers that were found dead or came (back) to life, as `ip:port`.
    pub died: Vec<String>,
    pub joined: Vec<String>,
    /// Servers that may be switched off, as `ip:port`: they are decommissioned, or in maintenance, from now on.
    pub left_service: Vec<(String, AdminState)>,
    /// Servers that are no newcomers any more, and those that have not shown what they claim to store.
    pub passed: Vec<String>,
    pub doubted: Vec<String>,
    /// Addresses that servers take from each other, told once.
    pub contested: Vec<Contest>,
}

/// More of what a server holds is unknown than may be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// The server's address, as `ip:port`.
    pub server: String,
    /// The number of unknown replicas that would be deleted, together with those that were deleted within the last
    /// day.
    pub unknown: u64,
    /// The number of all replicas that the server holds, or held then.
    pub replicas: u64,
}

impl Events {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Why a replica is held to be damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CorruptReason {
    GenerationStampMismatch,
    SizeMismatch,
    InvalidState,
    /// A client or data server read it and the checksum did not match.
    CorruptionReported,
}

/// Names a full report under way. It is void after `finish_report`, or once the server died or began another report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportId {
    pub(crate) storage: u32,
    pub(crate) serial: u64,
}

/// The result of a full report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportDone {
    pub rows: u64,
    /// Rows that named a block twice: dropped.
    pub duplicates: u64,
    /// Rows about blocks that the namespace does not have.
    pub unknown: u64,
    /// Rows whose replica does not fit the block.
    pub corrupt: u64,
    /// Some replicas known before were not in the report; [`crate::BlockMap::sweep`] will forget them.
    pub needs_sweep: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    #[error("a data server needs a uuid, an address and a transfer port")]
    Incomplete,
    #[error("{limit} data servers are known already; raise the limit of data servers")]
    TooMany { limit: usize },
    /// The server of that uuid lives, and elsewhere.
    #[error(
        "data server {uuid} is registered from {registered} and was heard {silent_ms} ms ago: it cannot speak from \
         {speaker} as well. If it has moved, it is taken when nothing was heard from there for {wait_ms} ms; if its \
         directory was copied, give the copy a uuid of its own"
    )]
    LivesElsewhere { uuid: Arc<str>, registered: String, speaker: String, silent_ms: u64, wait_ms: u64 },
}

/// Why a data server's message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ServerError {
    /// Another server holds this uuid. Hadoop: `UnregisteredNodeException`.
    #[error(
        "Data node {speaker} is attempting to report storage ID {uuid}. Node {registered} is expected to serve this storage."
    )]
    AnotherHolds { speaker: String, uuid: String, registered: String },
    /// It must register first: it is unknown or lost, or does not carry the key of its last registration.
    #[error("dead or unregistered node: {0}")]
    NotRegistered(String),
    #[error("a data server has at most {limit} storages")]
    TooManyStorages { limit: usize },
    #[error("the report is no longer awaited: its server was lost or has begun another one")]
    ReportGone,
    #[error(
        "the data server has reported on a later connection since: what it said here before may be outdated"
    )]
    Overtaken,
}

/// Keys are in no log.
impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey")
    }
}

impl fmt::Debug for ServerId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {self}", self.uuid)
    }
}

impl fmt::Display for ServerId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.ip, self.transfer_port)
    }
}
