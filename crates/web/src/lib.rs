//! The HTTP shell: `/health` and `/metrics`, later WebHDFS and pages.
//!
//! Pages see snapshots and closures that they are given, never live state: this crate knows neither the
//! namespace nor the block map. Start with [`server::Web`].

mod few;
mod process;
pub mod server;
mod times;

pub use process::put_process;
pub use prometheus_client;
pub use server::{Health, HealthSource, Web};
pub use times::put_times;
