//! How blocks are written and read.

use super::{LocalReads, Replacement};
use std::{sync::Arc, time::Duration};

/// The checksums that a writer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    Crc32c,
    Crc32,
    None,
}

#[derive(Clone, Debug)]
pub struct BlockOptions {
    /// The name of the client that writes or reads. When writing, it is the holder of the file's lease.
    pub client_name: Arc<str>,
    pub checksums: Checksums,
    /// Data bytes under one checksum (`dfs.bytes-per-checksum`).
    pub bytes_per_checksum: u32,
    /// Bytes of a full packet (`dfs.client-write-packet-size`), header and checksums included.
    pub packet_bytes: u32,
    /// Packets under way before `write` waits (`dfs.client.write.max-packets-in-flight`).
    pub window_packets: u32,
    pub connect_timeout: Duration,
    /// How long a server may stay silent (`dfs.client.socket-timeout`).
    pub io_timeout: Duration,
    /// Connect to the host name of a data server instead of its address
    /// (`dfs.client.use.datanode.hostname`).
    pub by_host_name: bool,
    /// Copies that the file is to have. A pipeline that has lost servers and is shorter may get others.
    pub replication: u16,
    pub replacement: Replacement,
    /// Others may count on what is written: the file was flushed before, or its last block is written on.
    pub is_promised: bool,
    /// How blocks of this machine's data servers are read; through the network as others if not given.
    pub local: Option<Arc<LocalReads>>,
}

impl BlockOptions {
    pub fn new(client_name: &str) -> Self {
        Self {
            client_name: client_name.into(),
            checksums: Checksums::Crc32c,
            bytes_per_checksum: 512,
            packet_bytes: 64 * 1024,
            window_packets: 80,
            connect_timeout: Duration::from_secs(20),
            io_timeout: Duration::from_secs(60),
            by_host_name: false,
            replication: 0,
            replacement: Replacement::default(),
            is_promised: false,
            local: None,
        }
    }
}
