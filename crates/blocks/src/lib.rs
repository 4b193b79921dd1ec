//! Which replicas exist where: reports in, commands out.

pub mod config;
mod map;
pub mod server;
pub mod words;

pub use config::{Config, SafeModeConfig};
pub use map::{BlockMap, Placement, ServerFilter, Stats, StorageStats};
pub use server::{DataServer, Registration, StorageReport, StorageState, StorageType};
pub use words::{
    BlockState, Command, CorruptReason, Events, Facts, Heartbeat, Increment, Located, Location, Reader,
    RegisterError, ReplicaState, ReportDone, ReportId, ReportedReplica, ServerError, ServerId, Transfer,
    UcReplica,
};
