//! The keys of a data server, and the plain structs that they become.

use super::{
    key::{self, HadoopUnit::*, Key, Kind::*},
    loopback,
    place::is_host_port,
    settings::Settings,
};
use anyhow::bail;
use blockstore::{TurnsConfig, VolumeConfig};
use datad::{DataConfig, slowness::SlownessConfig};

const ANY: u64 = i64::MAX as u64;

#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    Key { name: "data_dirs", hadoop: Some(("dfs.datanode.data.dir", Same)), kind: Texts, default: "",
        help: "Directories for blocks, one a disk; `[SSD]/path` names the medium." },
    Key { name: "metadata_servers", hadoop: None, kind: Texts, default: "127.0.0.1:8020",
        help: "host:port of each metadata server, of all groups and namespaces that are served." },
    Key { name: "transfer_address", hadoop: Some(("dfs.datanode.address", Same)), kind: Address, default: "127.0.0.1:9866",
        help: "Where blocks are sent and fetched." },
    Key { name: "domain_socket_path", hadoop: Some(("dfs.domain.socket.path", Same)), kind: Text, default: "",
        help: "The path of a socket for clients of this machine; `_PORT` in it stands for the transfer port. Empty for none." },
    Key { name: "short_circuit_reads", hadoop: Some(("dfs.client.read.shortcircuit", Same)), kind: Bool, default: "true",
        help: "Whether clients that come through this socket may have the open files of blocks, and read them without this server." },
    Key { name: "ipc_address", hadoop: Some(("dfs.datanode.ipc.address", Same)), kind: Address, default: "127.0.0.1:9867",
        help: "Where data servers answer calls." },
    Key { name: "data_http_address", hadoop: Some(("dfs.datanode.http.address", Same)), kind: Address, default: "127.0.0.1:9864",
        help: "Where /health and /metrics of a data server are, and its part of WebHDFS." },
    key::WEBHDFS,
    key::WEBHDFS_TRANSFERS,
    key::CORS_ORIGINS,
    key::HTTP_HOSTS,
    key::PROXY_USERS,
    Key { name: "hostname", hadoop: Some(("dfs.datanode.hostname", Same)), kind: Text, default: "",
        help: "The name that clients are given; empty for the transfer address." },
    key::HEARTBEAT_INTERVAL_MS,
    Key { name: "block_report_interval_ms", hadoop: Some(("dfs.blockreport.intervalMsec", Same)), kind: Milliseconds { min: 1_000, max: ANY }, default: "6h",
        help: "How often a data server reports all its replicas anew." },
    Key { name: "sync_on_close", hadoop: Some(("dfs.datanode.synconclose", Same)), kind: Bool, default: "false",
        help: "Whether closing a block makes it durable before the client hears of it." },
    Key { name: "reserved_bytes", hadoop: Some(("dfs.datanode.du.reserved", Same)), kind: Bytes { min: 0, max: ANY }, default: "0",
        help: "Bytes of each disk that are never used for blocks." },
    Key { name: "failed_volumes_tolerated", hadoop: Some(("dfs.datanode.failed.volumes.tolerated", Same)), kind: Integer { min: 0, max: 1_000 }, default: "0",
        help: "Disks that may be missing at the start." },
    Key { name: "max_transfers", hadoop: Some(("dfs.datanode.max.transfer.threads", Same)), kind: Integer { min: 1, max: 1_000_000 }, default: "4096",
        help: "Connections served at once on the transfer port." },
    Key { name: "max_moves", hadoop: Some(("dfs.datanode.balance.max.concurrent.moves", Same)), kind: Integer { min: 1, max: 10_000 }, default: "100",
        help: "Replicas that are sent or received for a balancer at once." },
    Key { name: "move_bytes_per_second", hadoop: Some(("dfs.datanode.balance.bandwidthPerSec", Same)), kind: Bytes { min: 1, max: 1 << 40 }, default: "100m",
        help: "How fast a data server moves replicas for a balancer, in bytes per second; `dfsadmin -setBalancerBandwidth` changes it while it runs." },
    Key { name: "transfer_timeout_ms", hadoop: None, kind: Milliseconds { min: 100, max: ANY }, default: "1m",
        help: "A transfer connection without progress ends after this." },
    Key { name: "block_scan_period_ms", hadoop: Some(("dfs.datanode.scan.period.hours", Hours)), kind: Milliseconds { min: 0, max: ANY }, default: "504h",
        help: "All replicas of a disk are read and compared with their checksums once in so long; 0 for never." },
    Key { name: "block_scan_bytes_per_second", hadoop: Some(("dfs.block.scanner.volume.bytes.per.second", Same)), kind: Bytes { min: 0, max: ANY }, default: "1m",
        help: "At most so much of each disk is read for that; 0 for nothing." },
    Key { name: "directory_scan_interval_ms", hadoop: Some(("dfs.datanode.directoryscan.interval", Seconds)), kind: Milliseconds { min: 0, max: ANY }, default: "6h",
        help: "How often the directories of each disk are compared with what the server knows; 0 for never." },
    Key { name: "directory_scan_ms_per_second", hadoop: Some(("dfs.datanode.directoryscan.throttle.limit.ms.per.sec", Same)), kind: Integer { min: 1, max: 1_000 }, default: "1000",
        help: "The milliseconds of each second that this may take; 1000 for no limit." },
    Key { name: "disk_turns", hadoop: None, kind: Text, default: "none",
        help: "On which directories streams take turns, in long runs: `none`, `auto` for those of type DISK or ARCHIVE on a device that seeks (queue/rotational says so), or `all`. Directories on one device take turns each for itself: give a device that seeks one directory." },
    Key { name: "disk_run_bytes", hadoop: None, kind: Bytes { min: 1 << 20, max: 1 << 30 }, default: "32m",
        help: "The bytes that a stream writes in one turn, if it has as many." },
    Key { name: "disk_queue_bytes", hadoop: None, kind: Bytes { min: 16 << 20, max: 1 << 40 }, default: "256m",
        help: "The bytes that all writers of a disk together may have sent and the disk not have yet. From a writer that has used up its share no more is read." },
    Key { name: "preallocate_blocks", hadoop: None, kind: Bool, default: "true",
        help: "Whether a block takes all the room that it may need at once, where streams take turns. The room that it did not need is given back when it ends." },
    Key { name: "drop_cache_behind_writes", hadoop: Some(("dfs.datanode.drop.cache.behind.writes", Same)), kind: Bool, default: "false",
        help: "Whether written bytes leave the system's memory once the disk has them, if the client does not say." },
    Key { name: "peer_stats", hadoop: Some(("dfs.datanode.peer.stats.enabled", Same)), kind: Bool, default: "false",
        help: "Whether the times of packets to other data servers are measured, and slow ones reported." },
    Key { name: "slow_peer_packets_min", hadoop: Some(("dfs.datanode.peer.metrics.min.outlier.detection.samples", Same)), kind: Integer { min: 0, max: ANY }, default: "1000",
        help: "A data server to which no more packets went is not judged." },
    Key { name: "slow_peer_count_min", hadoop: Some(("dfs.datanode.min.outlier.detection.nodes", Same)), kind: Integer { min: 1, max: 1_000_000 }, default: "10",
        help: "With fewer data servers that can be judged, none is." },
    Key { name: "slow_peer_threshold_ms", hadoop: Some(("dfs.datanode.slowpeer.low.threshold.ms", Same)), kind: Milliseconds { min: 1, max: ANY }, default: "5ms",
        help: "A data server to which a packet takes no longer is not slow." },
    Key { name: "disk_stats_percent", hadoop: Some(("dfs.datanode.fileio.profiling.sampling.percentage", Same)), kind: Integer { min: 0, max: 100 }, default: "0",
        help: "How many of a hundred disk operations are measured, to report slow disks; 0 for none." },
    Key { name: "slow_disk_count_min", hadoop: Some(("dfs.datanode.min.outlier.detection.disks", Same)), kind: Integer { min: 1, max: 1_000_000 }, default: "5",
        help: "With fewer disks of a medium, none is judged." },
    Key { name: "slow_disk_threshold_ms", hadoop: Some(("dfs.datanode.slowdisk.low.threshold.ms", Same)), kind: Milliseconds { min: 1, max: ANY }, default: "20ms",
        help: "A disk whose operations take no longer is not slow." },
    key::SLOW_REPORT_INTERVAL_MS,
    Key { name: "slowness_memory_ms", hadoop: None, kind: Milliseconds { min: 100, max: 31_536_000_000 }, default: "3h",
        help: "Measured times count for so long; HDFS has no key for it." },
    key::INSECURE_SIMPLE_AUTH,
];

/// The configuration of a data server from the settings.
pub fn config(settings: &Settings, user: &str) -> anyhow::Result<DataConfig> {
    let directories = settings.texts("data_dirs");
    if directories.is_empty() {
        bail!("data_dirs is not set: name at least one directory for blocks");
    }
    let volumes = directories
        .iter()
        .map(|text| text.parse::<VolumeConfig>())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| anyhow::anyhow!("data_dirs: {error}"))?;
    let servers = settings.texts("metadata_servers");
    if servers.is_empty() {
        bail!("metadata_servers is empty: name the metadata server as host:port");
    }
    if let Some(server) = servers.iter().find(|server| !is_host_port(server)) {
        let remedy = if server.contains("://") {
            "leave out what stands before the host"
        } else {
            "as meta-1.example:8020"
        };
        bail!("metadata_servers: `{server}` is not host:port; {remedy}");
    }
    let mut config = DataConfig::new(volumes, servers.to_vec());
    config.transfer_addr = settings.required_address("transfer_address")?;
    config.ipc_addr = settings.required_address("ipc_address")?;
    config.http_addr = settings.required_address("data_http_address")?;
    for (key, address) in [
        ("transfer_address", config.transfer_addr),
        ("ipc_address", config.ipc_addr),
        ("data_http_address", config.http_addr),
    ] {
        loopback::check(settings, key, Some(address))?;
    }
    config.domain_socket_path = settings.text("domain_socket_path").trim().to_owned();
    config.short_circuit = settings.flag("short_circuit_reads");
    config.hostname = settings.text("hostname").to_owned();
    config.heartbeat_interval_ms = settings.number("heartbeat_interval_ms");
    config.block_report_interval_ms = settings.number("block_report_interval_ms");
    config.sync_on_close = settings.flag("sync_on_close");
    config.transfer_count_max = settings.number("max_transfers") as usize;
    config.move_count_max = settings.number("max_moves") as usize;
    config.move_bytes_per_second = settings.number("move_bytes_per_second");
    config.transfer_timeout_ms = settings.number("transfer_timeout_ms");
    config.store.reserved_bytes = settings.number("reserved_bytes");
    config.store.failed_volumes_tolerated = settings.number("failed_volumes_tolerated") as usize;
    config.scan.block_period_ms = settings.number("block_scan_period_ms");
    config.scan.block_bytes_per_second = settings.number("block_scan_bytes_per_second");
    config.scan.directory_interval_ms = settings.number("directory_scan_interval_ms");
    config.scan.directory_ms_per_second = settings.number("directory_scan_ms_per_second");
    config.slowness = SlownessConfig {
        measures_peers: settings.flag("peer_stats"),
        peer_packets_min: settings.number("slow_peer_packets_min"),
        peer_count_min: settings.number("slow_peer_count_min") as usize,
        peer_threshold_ms: settings.number("slow_peer_threshold_ms"),
        disk_percent: settings.number("disk_stats_percent") as u32,
        disk_count_min: settings.number("slow_disk_count_min") as usize,
        disk_threshold_ms: settings.number("slow_disk_threshold_ms"),
        report_interval_ms: settings.number("slow_report_interval_ms"),
        memory_ms: settings.number("slowness_memory_ms"),
    };
    config.store.turns = turns(settings)?;
    config.user = user.to_owned();
    Ok(config)
}

fn turns(settings: &Settings) -> anyhow::Result<TurnsConfig> {
    let which =
        settings.text("disk_turns").parse().map_err(|error| anyhow::anyhow!("disk_turns: {error}"))?;
    let (run_bytes, queue_bytes) = (settings.number("disk_run_bytes"), settings.number("disk_queue_bytes"));
    if run_bytes > queue_bytes {
        bail!(
            "disk_run_bytes is {run_bytes}, and disk_queue_bytes only {queue_bytes}: no stream would ever have a run"
        );
    }
    let mut turns = TurnsConfig { which, ..TurnsConfig::default() };
    turns.limits.run_bytes = run_bytes;
    turns.limits.queue_bytes = queue_bytes;
    turns.preallocates = settings.flag("preallocate_blocks");
    turns.drops_behind_writes = settings.flag("drop_cache_behind_writes");
    Ok(turns)
}
