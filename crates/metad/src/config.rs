//! The numbers and places that a metadata server is started with. Collaborators (clock, disk) come apart.

use namespace::Limits;
use std::{net::SocketAddr, path::PathBuf};

#[derive(Clone, Debug)]
pub struct MetaConfig {
    /// Where the journal, the images and the member's own state live; made by [`crate::format`].
    pub name_directory: PathBuf,
    pub rpc_address: SocketAddr,
    /// None: no HTTP port.
    pub http_address: Option<SocketAddr>,
    pub limits: Limits,
    pub defaults: FileDefaults,
    pub blocks: blocks::Config,
    /// How long a `complete` waits for the report of the last block before it answers "not yet". A stock
    /// client then sleeps 400 ms and more, so a moment spent here is well spent; longer than this, a data
    /// server is in trouble and the client had better know.
    pub complete_wait_ms: u64,
    /// After so many edits the next image is written.
    pub edits_per_image: u64,
    /// And after so long, if there was any edit.
    pub image_period_ms: u64,
    pub call_queue: CallLimits,
    /// Hosts and their racks; a host that is not named is in `/default-rack`.
    pub racks: Vec<(String, String)>,
}

/// What a client that says nothing gets, and what it is told by `getServerDefaults`.
#[derive(Clone, Debug)]
pub struct FileDefaults {
    pub block_size: u64,
    pub replication: u16,
    pub bytes_per_checksum: u32,
    pub write_packet_size: u32,
    pub file_buffer_size: u32,
    pub trash_interval_minutes: u64,
}

impl Default for FileDefaults {
    fn default() -> Self {
        Self {
            block_size: 128 << 20,
            replication: 3,
            bytes_per_checksum: 512,
            write_packet_size: 64 << 10,
            file_buffer_size: 4096,
            trash_interval_minutes: 0,
        }
    }
}

/// What a connection may ask for at once.
#[derive(Clone, Copy, Debug)]
pub struct CallLimits {
    /// Writes waiting for the writer; more are refused with a retriable error.
    pub write_count_max: usize,
    /// Largest request frame (`ipc.maximum.data.length`).
    pub frame_bytes_max: usize,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self { write_count_max: 100_000, frame_bytes_max: 128 << 20 }
    }
}
