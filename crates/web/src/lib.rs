//! The HTTP shell: `/live`, `/health`, `/ready`, `/metrics` and `/stacks`, Hadoop's small pages for a program that has what they show
//! ([`jmx`], [`prom`], [`settings`], [`log_levels`], [`data_node`]), and the pages that a program adds ([`Pages`]).
//!
//! Pages see snapshots and closures that they are given, never live state: this crate knows neither the
//! namespace nor the block map. Start with [`server::Web`].

pub mod amounts;
pub mod body;
mod calls;
mod connection;
mod connections;
pub mod data_node;
mod exposition;
mod facts;
pub mod guard;
mod health;
pub mod hosts;
pub mod image_transfer;
pub mod in_sync;
pub mod jmx;
mod limit;
pub mod loading;
pub mod log_levels;
mod log_lines;
pub mod name_node;
pub mod origin;
mod pace;
mod pages;
mod parameters;
mod places;
mod process;
mod prometheus;
mod refusal;
pub mod server;
pub mod settings;
mod stacks;
mod times;

pub use axum::http;
pub use calls::put_calls;
pub use connection::Connection;
pub use connections::Peer;
pub use facts::{CallSource, EndangeredSource, Facts, Sources, Superusers};
pub use health::{FurtherFacts, Health, HealthSource};
pub use limit::{Limit, Permit};
pub use log_lines::{LogLine, LogSource};
pub use pages::{Pages, Watch};
pub use process::put_process;
pub use prometheus::prom;
pub use prometheus_client;
pub use server::{Web, listen};
pub use times::put_times;
