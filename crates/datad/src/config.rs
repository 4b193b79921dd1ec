//! The configuration of a data server.

use crate::slowness::SlownessConfig;
use blockstore::{ScanConfig, StoreConfig, VolumeConfig};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Settings of the data role, parsed and checked at the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataConfig {
    /// Data directories and how they are used.
    pub store: StoreConfig,
    /// How replicas are looked after.
    pub scan: ScanConfig,
    /// The address at which clients and other data servers send and fetch blocks (`dfs.datanode.address`).
    pub transfer_addr: SocketAddr,
    /// The path of the socket for clients of this machine, with `_PORT` in place of the transfer port
    /// (`dfs.domain.socket.path`); none when empty.
    pub domain_socket_path: String,
    /// Whether clients of this machine may have the open files of replicas (`dfs.client.read.shortcircuit`).
    pub short_circuit: bool,
    /// The address of the RPC port (`dfs.datanode.ipc.address`).
    pub ipc_addr: SocketAddr,
    /// The address of `/health` and `/metrics` (`dfs.datanode.http.address`).
    pub http_addr: SocketAddr,
    /// The name announced to clients (`dfs.datanode.hostname`); the transfer address's IP when empty.
    pub hostname: String,
    /// Every metadata server (`host:port`) of every group. Each names its pool in its handshake; all of a pool are told of
    /// its replicas, and the active one of them is obeyed.
    pub metadata_servers: Vec<String>,
    /// `dfs.heartbeat.interval`, here in milliseconds.
    pub heartbeat_interval_ms: u64,
    /// Full block reports are repeated this often (`dfs.blockreport.intervalMsec`).
    pub block_report_interval_ms: u64,
    /// Whether closing a block makes it durable first (`dfs.datanode.synconclose`).
    pub sync_on_close: bool,
    /// Transfer connections served at once (`dfs.datanode.max.transfer.threads`).
    pub transfer_count_max: usize,
    /// Replicas that are sent or received for a balancer at once (`dfs.datanode.balance.max.concurrent.moves`).
    pub move_count_max: usize,
    /// How fast replicas are moved for a balancer, all together, until a metadata server says otherwise
    /// (`dfs.datanode.balance.bandwidthPerSec`).
    pub move_bytes_per_second: u64,
    /// An idle transfer connection, or one that makes no progress, ends after this long.
    pub transfer_timeout_ms: u64,
    /// Whether slow peers and slow disks are looked for, and how.
    pub slowness: SlownessConfig,
    /// The user that this server's process runs as, announced to metadata servers.
    pub user: String,
}

impl DataConfig {
    /// Loopback, any free ports, Hadoop's intervals.
    pub fn new(volumes: Vec<VolumeConfig>, metadata_servers: Vec<String>) -> Self {
        let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        Self {
            store: StoreConfig::new(volumes),
            scan: ScanConfig::default(),
            transfer_addr: any,
            domain_socket_path: String::new(),
            short_circuit: true,
            ipc_addr: any,
            http_addr: any,
            hostname: String::new(),
            metadata_servers,
            heartbeat_interval_ms: 3_000,
            block_report_interval_ms: 6 * 60 * 60 * 1_000,
            sync_on_close: false,
            transfer_count_max: 4_096,
            move_count_max: 100,
            move_bytes_per_second: 100 << 20,
            transfer_timeout_ms: 60_000,
            slowness: SlownessConfig::default(),
            user: "clover".into(),
        }
    }
}
