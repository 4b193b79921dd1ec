//! Worlds and what happens in them.

pub mod cluster;
pub mod lone_server;
mod plots;
