//! The HTTP shell: `/health` and `/metrics`, later WebHDFS and pages.
//!
//! Pages see snapshots and closures that they are given, never live state: this crate knows neither the
//! namespace nor the block map. Start with [`server::Web`].

mod few;
pub mod server;

pub use prometheus_client;
pub use server::{Health, HealthSource, Web};
