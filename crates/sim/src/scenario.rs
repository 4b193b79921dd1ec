//! Worlds and what happens in them.

pub mod lone_server;
