//! The data service: drives `blockstore` and `pipeline` over sockets.
//!
//! A data server registers with every metadata server, tells it what replicas it has, carries out its
//! commands ([`metadata`]), serves clients and other data servers on the transfer port ([`xceiver`]), and
//! answers a few administrative calls ([`ipc`]). Decisions about bytes on disk are
//! made in `blockstore`, those about packets and acks in `pipeline`. This crate never learns a file's name.
//!
//! Start with [`server::DataServer`], then [`state::State`], which all parts share, and [`pool::Pool`], the value that has
//! all that belongs to one block pool.

pub mod config;
pub mod convert;
pub mod disk_balancer;
pub mod identity;
pub mod ipc;
mod jmx;
pub mod metadata;
pub mod metrics;
pub mod moves;
mod page;
pub mod pool;
pub mod reconfiguration;
pub mod reconfigure;
pub mod recovery;
mod refusal;
pub mod reporter;
pub mod server;
mod shift;
pub mod short_circuit;
pub mod slowness;
pub mod state;
pub mod transfer;
pub mod xceiver;

pub use config::DataConfig;
pub use pool::Pool;
pub use server::{DataServer, StartError};
pub use state::State;
