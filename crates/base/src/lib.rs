//! The words of Clover: what an id, a time, a caller, a block and an error mean, everywhere.
//!
//! This crate knows nothing but values. It never does I/O, never reads a clock, and never learns how
//! something is stored or sent. A type enters when a third crate needs it, not earlier.
//!
//! Start with [`id`], then [`fs_error`].

pub mod admin_state;
pub mod block;
pub mod caller;
pub mod checksum;
pub mod directory_log;
pub mod durable;
pub mod entry;
pub mod fs_error;
pub mod id;
pub mod level;
pub mod packet;
pub mod proxies;
pub mod replica;
pub mod storage;
pub mod time;
pub mod view;

pub use admin_state::AdminState;
pub use block::{BLOCK_BYTES_MAX, Block, ExtendedBlock};
pub use caller::{CallOrigin, Caller, CopyOfCall};
pub use checksum::ChecksumKind;
pub use durable::Durable;
pub use entry::{Chain, Entry, EntryKind, LogPoint};
pub use fs_error::{FsError, FsResult};
pub use id::{
    BlockId, CallId, ClientId, Epoch, GenerationStamp, GroupId, InodeId, InodeOrigin, MemberId, ReadPoint,
    Sn, TxId,
};
pub use level::{Level, Levels, UnknownLevel};
pub use packet::PacketHeader;
pub use proxies::Proxies;
pub use replica::{Candidate, ReplicaState};
pub use storage::{POLICY_UNSPECIFIED, StoragePolicy, StorageType, types_beyond};
pub use time::{Moment, Timestamp};
pub use view::{GroupView, MemberLife, MemberStore};
