//! The tree as a state machine: plan an operation, apply an edit.
//!
//! [`Namespace`] is one partition of the tree: inodes, files and their blocks, permissions, leases and the
//! retry cache. An operation is a file of [`ops`]. A client's request for it is a value, a [`Request`]. Its `plan`, on the active, checks a
//! request against the tree and resolves everything (time, ids, user, reply) into an [`Edit`]. The edit's rules stand
//! beside it, behind the trait of `operation.rs`: what it answers, marks for readers, changes of snapshots and charges to
//! quotas, and `apply`, which carries it out on every member, decides nothing and refuses nothing. A plan may come to more
//! than an edit: a [`Step`] says what is to be done next. A read is a file of [`reads`], and a request for one is a value as well, a
//! [`Read`]: it says which part of the tree it looks at ([`Sight`]), and looks.
//!
//! This crate must never know a clock, a disk, a socket, randomness, or where a block's replicas are: what a
//! plan needs to know of them comes in as an argument ([`Context`], [`BlockFacts`]). Nothing that depends on
//! handles, hash order or seeds reaches an edit, a digest or an image.
//!
//! Start with [`Namespace`], then `ops/mkdirs.rs`.

mod access;
pub mod acl;
mod apply;
mod asking;
mod change;
pub mod charge;
mod codec;
mod consistency;
mod contents;
pub mod context;
mod digest;
mod directory_log;
pub mod edit;
mod edit_bytes;
mod entry_limits;
mod epoch;
pub mod erasure_coding;
pub mod events;
mod exporting;
pub mod exports;
pub mod file_status;
mod followed;
mod footprint;
#[doc(hidden)]
pub mod given_facts;
pub mod home_of_path;
pub mod homes;
pub mod image;
mod kinds;
mod lease;
pub mod lease_watch;
mod level;
pub mod limits;
mod look;
mod looks;
pub mod namespace;
mod new_directory;
mod next_step;
pub mod older_calls;
mod operation;
pub mod ops;
pub mod outbox;
mod overtaken;
pub mod path;
mod paths;
mod plannable;
mod posting;
pub mod preserve;
pub mod privilege;
pub mod protected;
pub mod questions;
pub mod quota;
mod readable;
pub mod reads;
pub mod renewals;
mod reply;
mod reserved;
mod resolve;
mod retry;
pub mod satisfying;
pub mod server_orders;
pub mod shares;
mod slots;
mod snapshot_id;
mod snapshots;
pub mod staging;
mod step;
mod store;
mod together;
pub mod tour;
mod tree;
mod unknown;
mod usage;
mod used_files;
mod visits;
mod watches;
pub mod xattr;

pub use access::mode_text;
pub use charge::Charge;
pub use codec::DecodeError;
pub use context::{BlockFacts, Context};
pub use digest::fingerprint;
pub use epoch::NewEpoch;
pub use file_status::{FileBlock, FileBlocks, FileKind, FileStatus};
pub use followed::NotShared;
pub use footprint::{Mark, Reach, Sight};
pub use image::{FrozenTree, ImageError};
pub use lease_watch::LeaseWatch;
pub use level::GroupLevel;
pub use limits::{AccessPolicy, Limits, XattrLimits};
pub use look::Look;
pub use looks::{Counted, Looks, Question, Watch};
pub use namespace::{Applied, BlockChange, Counts, Memory, Namespace};
pub use next_step::next_step;
pub use older_calls::OlderCalls;
pub use ops::{Edit, Planned, Request, Step};
pub use paths::Paths;
pub use plannable::Plannable;
pub use privilege::Privileged;
pub use protected::ProtectedDirectories;
pub use quota::{Amounts, Quota};
pub use readable::{Readable, Walkable};
pub use reads::{Read, Seen};
pub use renewals::Renewals;
pub use reply::{Reply, RetryLookup};
pub use retry::{Origin, WINDOW_MS as RETRY_WINDOW_MS};
pub use snapshot_id::SnapshotId;
pub use together::{ONE_BY_ONE, Piece, Together};
pub use unknown::UnknownReplicas;
pub use watches::Watches;
