//! The HTTP shell: `/health`, `/ready` and `/metrics`, and the pages that a program adds ([`Pages`]).
//!
//! Pages see snapshots and closures that they are given, never live state: this crate knows neither the
//! namespace nor the block map. Start with [`server::Web`].

mod connection;
mod pages;
pub mod server;

pub use connection::Peer;
pub use pages::Pages;
pub use prometheus_client;
pub use server::{Health, HealthSource, Web};
