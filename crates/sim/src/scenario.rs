//! Worlds and what happens in them.

mod all_at_once;
pub mod cluster;
mod data_servers;
pub mod lone_server;
mod plots;
mod standing;
mod times;
