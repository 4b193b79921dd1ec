//! The servers that are measured, and the directories that each home has.

use crate::meta::cpu;
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The active of the root group, and of Hadoop's NameNodes.
    Root,
    /// The active of a further group.
    Home,
    Standby,
    /// One of Hadoop's JournalNodes.
    Journal,
    /// One of Hadoop's DataNodes.
    Data,
}

pub struct Server {
    pub role: Role,
    pub group: u32,
    pub process: cpu::Process,
    pub address: SocketAddr,
}

/// The directories of a home.
pub struct Home {
    pub group: u32,
    /// Of its active.
    pub address: SocketAddr,
    pub directories: Vec<String>,
}
