//! The HTTP shell: `/health`, `/ready` and `/metrics`, and the pages that a program adds ([`Pages`]).
//!
//! Pages see snapshots and closures that they are given, never live state: this crate knows neither the
//! namespace nor the block map. Start with [`server::Web`].

mod connection;
mod exposition;
pub mod jmx;
mod pages;
mod process;
pub mod server;
mod times;

pub use connection::Peer;
pub use pages::Pages;
pub use process::put_process;
pub use prometheus_client;
pub use server::{Health, HealthSource, Web};
pub use times::put_times;
