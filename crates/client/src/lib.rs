//! The native client library: a file system over Hadoop's client protocols.
//!
//! It reads Hadoop's configuration files, speaks to whichever metadata server is active, and moves blocks to
//! and from data servers. It is the public face: command line, balancer and benches use it and nothing deeper.
//! It must never know how a server keeps anything.
//!
//! Start with [`FileSystem`], then [`FileWriter`] and [`FileReader`]; [`Config`] says where things come from.

pub mod acl;
mod administration;
pub mod balancing;
pub mod block;
mod block_checksum;
pub mod checksum;
pub mod config;
mod data_server_state;
pub mod error;
pub mod file_system;
mod held_file;
mod lease;
pub mod listing;
pub mod location;
pub mod namenodes;
pub mod quotas;
pub mod reader;
pub mod replicas;
pub mod snapshots;
pub mod status;
pub mod trash;
mod visible_length;
pub mod writer;
pub mod xattr;

pub use administration::{DataServer, OpenFile, SafeModeOrder, Volume};
pub use base::AdminState;
pub use checksum::FileChecksum;
pub use config::{Config, ConfigError, Settings};
pub use data_server_state::{DataServerState, FULL_BELOW_BYTES};
pub use error::{Error, Result};
pub use file_system::{CreateOptions, FileSystem};
pub use listing::Listing;
pub use location::Location;
pub use quotas::{KnownPolicy, Limit, QuotaUsage, TypeUsage, amount};
pub use reader::FileReader;
pub use replicas::ReplicaRegister;
pub use snapshots::{Change, Difference, Snapshot, SnapshottableDirectory};
pub use status::{ContentSummary, FileKind, FileStatus, FsStats, ServerDefaults};
pub use trash::{NotTrashed, move_to_trash};
pub use writer::FileWriter;
