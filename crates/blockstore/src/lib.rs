//! A data server's disks: volumes, replicas, block files and meta files.
//!
//! Directories have the layout of a Hadoop DataNode, so that one can be taken over and given back. A store
//! has the volumes; the replicas of each block pool are a value of their own above them. Block ids are unique in their pool
//! only. Losing a volume takes its replicas away, those of every pool, and leaves the server standing. Everything blocks and is meant to run on [`VolumeThreads`], never on an async runtime.
//!
//! This crate never opens a socket and never learns who asks: it knows blocks, generation stamps and bytes.
//! It does not check data against checksums while writing (the caller has, before it acknowledges); it does
//! check what it reads back from its own disks to continue a replica.
//!
//! Start with [`store::BlockStore`] and [`pool::PoolStore`]; the layout is in [`layout`], a replica's life in [`replica`].

mod active;
pub mod checksum;
pub mod choice;
pub mod config;
mod copying;
mod create;
mod doubles;
pub mod error;
pub mod layout;
mod map;
pub mod meta_file;
mod moving;
mod observer;
mod open;
mod opening;
pub mod pool;
mod pool_state;
mod presence;
pub mod reader;
mod recovery;
mod remove;
pub mod replica;
mod scan;
pub mod scanner;
pub mod schedule;
mod serve;
mod settle;
pub mod store;
pub mod survey;
mod swap;
pub mod takeover;
pub mod threads;
mod usage;
pub mod version_file;
mod volume;
mod volume_index;
mod volume_list;
pub mod writer;

pub use base::{Candidate, ReplicaState, StorageType};
pub use checksum::Checksum;
pub use choice::VolumeChoice;
pub use config::{PoolInfo, StoreConfig, VolumeConfig};
pub use create::NewReplica;
pub use error::{OpenError, StoreError, StoreResult};
pub use observer::Observer;
pub use opening::POOL_COUNT_MAX;
pub use pool::{PoolStore, StorageReplicas};
pub use reader::ReplicaReader;
pub use replica::ReplicaFacts;
pub use scanner::{ScanConfig, Scanners};
pub use schedule::{config::TurnsConfig, read_stream::ReadStream, write_stream::Gate};
pub use store::{BlockStore, StorageReport, VolumeFailures};
pub use swap::{Swap, SwapError, SwapFailure};
pub use threads::VolumeThreads;
pub use volume::VolumeIndex;
pub use volume_list::VOLUME_COUNT_MAX;
pub use writer::{Acknowledger, ReplicaWriter};
