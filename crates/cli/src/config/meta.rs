//! The keys of a metadata server, and the plain structs that they become.

use super::{
    group,
    key::{self, HadoopUnit::*, Key, Kind::*},
    loopback,
    settings::Settings,
};
use anyhow::bail;
use base::Proxies;
use metad::{CallLimits, FileDefaults, MetaConfig, RackScript, UserGroupsConfig};
use namespace::{AccessPolicy, Limits, ProtectedDirectories, XattrLimits};
use std::{path::PathBuf, time::Duration};

const ANY: u64 = i64::MAX as u64;
/// The fewest heartbeats after which a silent data server is stale.
const STALE_HEARTBEATS: u64 = 3;

#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    Key { name: "name_dir", hadoop: Some(("dfs.namenode.name.dir", Same)), kind: Text, default: "",
        help: "Where journal, images and the member's state live. Made by `clover meta format`." },
    Key { name: "rpc_address", hadoop: Some(("dfs.namenode.rpc-address", Same)), kind: Address, default: "127.0.0.1:8020",
        help: "Where clients and data servers call." },
    Key { name: "http_address", hadoop: Some(("dfs.namenode.http-address", Same)), kind: Address, default: "127.0.0.1:9870",
        help: "Where /health, /metrics, WebHDFS and the web console are; empty for nowhere." },
    Key { name: "console", hadoop: None, kind: Bool, default: "true",
        help: "Whether the HTTP port also serves the web console, at /." },
    key::WEBHDFS,
    Key { name: "webhdfs_redirects", hadoop: None, kind: Bool, default: "true",
        help: "Whether those who read or write files over WebHDFS are sent to data servers. If not, this server moves the bytes itself, so that clients never meet the names of data servers." },
    key::WEBHDFS_TRANSFERS,
    key::CORS_ORIGINS,
    key::HTTP_HOSTS,
    key::PROXY_USERS,
    key::INSECURE_SIMPLE_AUTH,
    Key { name: "superuser", hadoop: None, kind: Text, default: "",
        help: "The user above all permissions; empty for the one who runs the server." },
    Key { name: "supergroup", hadoop: Some(("dfs.permissions.superusergroup", Same)), kind: Text, default: "supergroup",
        help: "Members of this group are above all permissions as well." },
    Key { name: "group_overrides", hadoop: Some(("hadoop.user.group.static.mapping.overrides", Same)), kind: Text, default: "dr.who=;",
        help: "Groups of users for whom the operating system is not asked: user=group,group;user=;..." },
    Key { name: "groups_kept_ms", hadoop: Some(("hadoop.security.groups.cache.secs", Seconds)), kind: Milliseconds { min: 0, max: ANY }, default: "5m",
        help: "How long the system's answer about a user's groups is kept." },
    Key { name: "audit_log", hadoop: None, kind: Text, default: "",
        help: "The file that tells who asked for what, in HDFS's format; empty for none." },
    Key { name: "permissions_enabled", hadoop: Some(("dfs.permissions.enabled", Same)), kind: Bool, default: "true",
        help: "Whether permissions are checked." },
    Key { name: "acls_enabled", hadoop: Some(("dfs.namenode.acls.enabled", Same)), kind: Bool, default: "true",
        help: "Whether ACLs may be set and read; those that are there count in any case." },
    Key { name: "posix_acl_inheritance", hadoop: Some(("dfs.namenode.posix.acl.inheritance.enabled", Same)), kind: Bool, default: "true",
        help: "Where a default ACL is inherited, the client's umask does not count." },
    Key { name: "xattrs_enabled", hadoop: Some(("dfs.namenode.xattrs.enabled", Same)), kind: Bool, default: "true",
        help: "Whether extended attributes may be set and read." },
    Key { name: "max_xattrs_per_inode", hadoop: Some(("dfs.namenode.fs-limits.max-xattrs-per-inode", Same)), kind: Integer { min: 0, max: 1_000_000 }, default: "32",
        help: "Attributes of the namespaces user and trusted that one file may have." },
    Key { name: "max_xattr_size", hadoop: Some(("dfs.namenode.fs-limits.max-xattr-size", Same)), kind: Bytes { min: 1, max: 32_768 }, default: "16384",
        help: "Bytes of an attribute's name and value together." },
    Key { name: "storage_policy_satisfier", hadoop: Some(("dfs.storage.policy.satisfier.mode", Same)), kind: Text, default: "internal",
        help: "Whether `hdfs storagepolicies -satisfyStoragePolicy` has replicas moved. `internal`: the active metadata server does it; so with Hadoop's `external`, for which no further process is needed here. `none`: it is refused." },
    Key { name: "protected_directories", hadoop: Some(("fs.protected.directories", Same)), kind: Text, default: "",
        help: "Directories that nobody deletes or renames unless they are empty, with commas between." },
    Key { name: "protected_subdirectories", hadoop: Some(("dfs.protected.subdirectories.enable", Same)), kind: Bool, default: "false",
        help: "Whether the directories below those are protected as well." },
    Key { name: "default_block_size", hadoop: Some(("dfs.blocksize", Same)), kind: Bytes { min: 512, max: 1 << 46 }, default: "128m",
        help: "Told to clients that do not choose a block size." },
    Key { name: "default_replication", hadoop: Some(("dfs.replication", Same)), kind: Integer { min: 1, max: 512 }, default: "3",
        help: "Told to clients that do not choose a replication." },
    Key { name: "bytes_per_checksum", hadoop: Some(("dfs.bytes-per-checksum", Same)), kind: Integer { min: 1, max: 1 << 20 }, default: "512",
        help: "Told to clients; Java's take only multiples of it as block sizes." },
    Key { name: "trash_interval_minutes", hadoop: Some(("fs.trash.interval", Same)), kind: Integer { min: 0, max: 1 << 31 }, default: "0",
        help: "How long clients keep deleted files in the trash; 0 for not at all." },
    Key { name: "min_block_size", hadoop: Some(("dfs.namenode.fs-limits.min-block-size", Same)), kind: Bytes { min: 1, max: 1 << 46 }, default: "1m",
        help: "Smaller block sizes are refused." },
    Key { name: "max_blocks_per_file", hadoop: Some(("dfs.namenode.fs-limits.max-blocks-per-file", Same)), kind: Integer { min: 1, max: 1 << 30 }, default: "10000",
        help: "A file with more blocks is refused." },
    Key { name: "max_component_length", hadoop: Some(("dfs.namenode.fs-limits.max-component-length", Same)), kind: Integer { min: 1, max: 255 }, default: "255",
        help: "Bytes of one name in a path." },
    Key { name: "max_directory_items", hadoop: Some(("dfs.namenode.fs-limits.max-directory-items", Same)), kind: Integer { min: 1, max: 6_400_000 }, default: "1048576",
        help: "Children of one directory." },
    Key { name: "max_snapshots_per_directory", hadoop: Some(("dfs.namenode.snapshot.max.limit", Same)), kind: Integer { min: 0, max: 65_536 }, default: "65536",
        help: "Snapshots of one directory." },
    Key { name: "max_snapshots", hadoop: Some(("dfs.namenode.snapshot.filesystem.limit", Same)), kind: Integer { min: 0, max: 1 << 28 }, default: "65536",
        help: "Snapshots of all directories." },
    Key { name: "snapshot_diff_page_entries", hadoop: Some(("dfs.namenode.snapshotdiff.listing.limit", Same)), kind: Integer { min: 1, max: 100_000 }, default: "1000",
        help: "Entries of one page of a snapshot diff." },
    Key { name: "max_objects", hadoop: Some(("dfs.namenode.max.objects", Same)), kind: Integer { min: 0, max: ANY }, default: "0",
        help: "Files, directories and blocks that there may be; 0 for no limit." },
    Key { name: "min_replication", hadoop: Some(("dfs.namenode.replication.min", Same)), kind: Integer { min: 1, max: 512 }, default: "1",
        help: "Finished replicas that a block needs before its file can be closed." },
    Key { name: "maintenance_replication", hadoop: Some(("dfs.namenode.maintenance.replication.min", Same)), kind: Integer { min: 0, max: 512 }, default: "1",
        help: "Replicas that must be on other data servers before one may be away for maintenance; at most `default_replication`." },
    Key { name: "max_replication", hadoop: Some(("dfs.replication.max", Same)), kind: Integer { min: 1, max: 512 }, default: "512",
        help: "The highest replication that a file may ask for." },
    Key { name: "listing_limit", hadoop: Some(("dfs.ls.limit", Same)), kind: Integer { min: 1, max: 100_000 }, default: "1000",
        help: "Entries of one page of a listing." },
    Key { name: "inotify_events_max", hadoop: Some(("dfs.namenode.inotify.max.events.per.rpc", Same)), kind: Integer { min: 1, max: 100_000 }, default: "1000",
        help: "Events of one answer to a client that watches the namespace's changes." },
    Key { name: "access_time_precision_ms", hadoop: Some(("dfs.namenode.accesstime.precision", Same)), kind: Milliseconds { min: 0, max: ANY }, default: "1h",
        help: "How stale an access time may be; 0 keeps none." },
    Key { name: "safe_mode_threshold", hadoop: Some(("dfs.namenode.safemode.threshold-pct", Same)), kind: Threshold, default: "0.999",
        help: "The share of blocks that must be reported before a starting server changes anything; with more than 1 it waits for an order." },
    Key { name: "safe_mode_extension_ms", hadoop: Some(("dfs.namenode.safemode.extension", Same)), kind: Milliseconds { min: 0, max: ANY }, default: "30s",
        help: "How long safe mode goes on after that." },
    Key { name: "safe_mode_min_data_servers", hadoop: Some(("dfs.namenode.safemode.min.datanodes", Same)), kind: Integer { min: 0, max: 100_000 }, default: "0",
        help: "Data servers that must be there as well." },
    Key { name: "unknown_share", hadoop: None, kind: Fraction, default: "0.1",
        help: "Replicas that belong to no file are deleted; but if they are more than this share of a data server's replicas in a day (and more than 100), only when an operator allows it." },
    key::HEARTBEAT_INTERVAL_MS,
    Key { name: "heartbeat_recheck_ms", hadoop: Some(("dfs.namenode.heartbeat.recheck-interval", Same)), kind: Milliseconds { min: 10, max: ANY }, default: "5m",
        help: "A data server is dead after two of these and ten heartbeats of silence." },
    Key { name: "stale_after_ms", hadoop: Some(("dfs.namenode.stale.datanode.interval", Same)), kind: Milliseconds { min: 10, max: ANY }, default: "30s",
        help: "A data server that has been silent for so long, and for three heartbeats at least, is read from last, and its replicas are no reason to delete others." },
    key::SLOW_REPORT_INTERVAL_MS,
    Key { name: "exclude_slow_data_servers", hadoop: Some(("dfs.namenode.block-placement-policy.exclude-slow-nodes.enabled", Same)), kind: Bool, default: "false",
        help: "Whether data servers that others have reported as slow get no new replicas while others will do." },
    Key { name: "read_slow_last", hadoop: Some(("dfs.namenode.avoid.read.slow.datanode", Same)), kind: Bool, default: "false",
        help: "Whether they are read from last." },
    Key { name: "slow_data_servers_max", hadoop: Some(("dfs.namenode.max.slowpeer.collect.nodes", Same)), kind: Integer { min: 0, max: 100_000 }, default: "5",
        help: "How many data servers count as slow for these two at a time; never more than half of those in service." },
    Key { name: "transfers_per_data_server", hadoop: Some(("dfs.namenode.replication.max-streams", Same)), kind: Integer { min: 1, max: 1_000 }, default: "2",
        help: "Copies that one data server makes at a time for re-replication." },
    Key { name: "transfers_per_tick", hadoop: Some(("dfs.namenode.replication.work.multiplier.per.iteration", Same)), kind: Integer { min: 1, max: 1_000 }, default: "2",
        help: "Copies that are ordered in half a second for each live data server, as far as servers are free." },
    Key { name: "transfer_retry_ms", hadoop: Some(("dfs.namenode.reconstruction.pending.timeout-sec", Seconds)), kind: Milliseconds { min: 100, max: ANY }, default: "5m",
        help: "A copy that is not reported after this is ordered again." },
    Key { name: "complete_wait_ms", hadoop: None, kind: Milliseconds { min: 0, max: 60_000 }, default: "1000",
        help: "How long closing a file waits for the data servers' report before the client is told to ask again." },
    Key { name: "edits_per_image", hadoop: Some(("dfs.namenode.checkpoint.txns", Same)), kind: Integer { min: 100, max: ANY }, default: "1000000",
        help: "After so many edits an image is written." },
    Key { name: "image_period_ms", hadoop: Some(("dfs.namenode.checkpoint.period", Seconds)), kind: Milliseconds { min: 1_000, max: ANY }, default: "1h",
        help: "And after so long, if there was any edit." },
    Key { name: "journal_bytes_per_image", hadoop: None, kind: Bytes { min: 1 << 20, max: i64::MAX as u64 }, default: "64m",
        help: "And after so much journal, or four times the size of an image if that is more, where it has 512 bytes an edit or more, or sixteen times as much: edits that come one by one count 4 KiB each, which they take until their file of the journal is full." },
    Key { name: "max_request_bytes", hadoop: Some(("ipc.maximum.data.length", Same)), kind: Bytes { min: 4096, max: 1 << 30 }, default: "128m",
        help: "The longest RPC request." },
    Key { name: "max_requests_bytes", hadoop: None, kind: Bytes { min: 1 << 20, max: 1 << 40 }, default: "512m",
        help: "Bytes of RPC requests of all connections that are being read or answered; further ones wait. Never less than one of the longest." },
    Key { name: "max_waiting_writes", hadoop: None, kind: Integer { min: 1, max: 10_000_000 }, default: "100000",
        help: "Writes that may wait; the clients of further ones are told to try again." },
    Key { name: "data_servers_file", hadoop: Some(("dfs.hosts", Same)), kind: Text, default: "",
        help: "A file with the hosts or addresses of the data servers that may take part; empty for all." },
    Key { name: "excluded_data_servers_file", hadoop: Some(("dfs.hosts.exclude", Same)), kind: Text, default: "",
        help: "A file with the hosts or addresses of the data servers that are to be decommissioned; empty for none." },
    Key { name: "racks", hadoop: None, kind: Table, default: "",
        help: "Racks of data servers by host name or address; those of other hosts are asked of the script, if there is one." },
    Key { name: "rack_script", hadoop: Some(("net.topology.script.file.name", Same)), kind: Text, default: "",
        help: "A program that is given addresses and prints the rack of each; empty for none. A host without a rack is in /default-rack." },
    Key { name: "rack_script_args_max", hadoop: Some(("net.topology.script.number.args", Same)), kind: Integer { min: 1, max: 10_000 }, default: "100",
        help: "Addresses that the script is given at once at most." },
    Key { name: "rack_script_limit_ms", hadoop: None, kind: Milliseconds { min: 100, max: 600_000 }, default: "10s",
        help: "A run of the script that takes longer is ended, and has failed." },
];

fn rack_script(settings: &Settings) -> Option<RackScript> {
    let program = settings.text("rack_script").to_owned();
    (!program.is_empty()).then(|| RackScript {
        program,
        args_max: settings.number("rack_script_args_max") as usize,
        limit: Duration::from_millis(settings.number("rack_script_limit_ms")),
    })
}

/// The configuration of a metadata server from the settings.
pub fn config(settings: &Settings, user: &str) -> anyhow::Result<MetaConfig> {
    let name_dir = settings.text("name_dir");
    if name_dir.is_empty() {
        bail!("name_dir is not set: name the directory that `clover meta format` made");
    }
    if name_dir.split(',').count() > 1 && name_dir.split(',').all(|one| one.trim().starts_with(['/', 'f'])) {
        bail!(
            "name_dir = {name_dir}: several directories, as Hadoop takes them. A metadata server has one; the copies are further \
             members of a group (docs/operating/groups.md)"
        );
    }
    let rpc_address = settings.required_address("rpc_address")?;
    let http_address = settings.address("http_address");
    for (key, address) in [("rpc_address", Some(rpc_address)), ("http_address", http_address)] {
        loopback::check(settings, key, address)?;
    }
    let (kept, usual) = (settings.number("maintenance_replication"), settings.number("default_replication"));
    if kept > usual {
        bail!(
            "maintenance_replication is {kept}, and default_replication {usual}: a server could never go into maintenance; \
             make it {usual} at most"
        );
    }
    if settings.number("min_replication") > settings.number("max_replication") {
        bail!(
            "min_replication is {} and max_replication {}: the first cannot be larger",
            settings.number("min_replication"),
            settings.number("max_replication")
        );
    }
    let superuser = match settings.text("superuser") {
        "" => user,
        named => named,
    };
    let protected = settings.text("protected_directories");
    let protected = ProtectedDirectories::parse(protected, settings.flag("protected_subdirectories"))
        .map_err(|path| {
            anyhow::anyhow!("protected_directories: `{path}` is no path of a directory that could be deleted")
        })?;
    let limits = Limits {
        protected,
        component_length_max: settings.number("max_component_length") as usize,
        directory_items_max: settings.number("max_directory_items") as u32,
        block_size_min: settings.number("min_block_size"),
        blocks_per_file_max: settings.number("max_blocks_per_file") as u32,
        snapshots_per_directory_max: settings.number("max_snapshots_per_directory") as usize,
        snapshots_max: settings.number("max_snapshots") as usize,
        snapshot_diff_page_max: settings.number("snapshot_diff_page_entries") as usize,
        objects_max: settings.number("max_objects"),
        replication_min: settings.number("min_replication") as u16,
        replication_max: settings.number("max_replication") as u16,
        listing_max: settings.number("listing_limit") as usize,
        access_time_precision_ms: settings.number("access_time_precision_ms"),
        xattrs: XattrLimits {
            enabled: settings.flag("xattrs_enabled"),
            per_inode_max: settings.number("max_xattrs_per_inode") as usize,
            bytes_max: settings.number("max_xattr_size") as usize,
        },
        access: AccessPolicy {
            enabled: settings.flag("permissions_enabled"),
            superuser: superuser.into(),
            supergroup: settings.text("supergroup").into(),
            acls_enabled: settings.flag("acls_enabled"),
            posix_acl_inheritance: settings.flag("posix_acl_inheritance"),
        },
        ..Limits::default()
    };
    let defaults = FileDefaults {
        block_size: settings.number("default_block_size"),
        replication: settings.number("default_replication") as u16,
        bytes_per_checksum: settings.number("bytes_per_checksum") as u32,
        trash_interval_minutes: settings.number("trash_interval_minutes"),
        ..FileDefaults::default()
    };
    let blocks = blocks::Config {
        min_replication: settings.number("min_replication") as u16,
        maintenance_replication: settings.number("maintenance_replication") as u16,
        default_replication: settings.number("default_replication") as u16,
        heartbeat_interval_ms: settings.number("heartbeat_interval_ms"),
        recheck_interval_ms: settings.number("heartbeat_recheck_ms"),
        // A server that is heard as often as it should be is not stale; HDFS has the same bound.
        stale_interval_ms: settings
            .number("stale_after_ms")
            .max(STALE_HEARTBEATS * settings.number("heartbeat_interval_ms")),
        slow_report_interval_ms: settings.number("slow_report_interval_ms"),
        exclude_slow: settings.flag("exclude_slow_data_servers"),
        read_slow_last: settings.flag("read_slow_last"),
        slow_servers_max: settings.number("slow_data_servers_max") as usize,
        max_transfers_per_server: settings.number("transfers_per_data_server") as usize,
        transfers_per_live_server: settings.number("transfers_per_tick") as usize,
        pending_timeout_ms: settings.number("transfer_retry_ms"),
        unknown_share: settings.fraction("unknown_share"),
        safe_mode: blocks::SafeModeConfig {
            threshold: settings.fraction("safe_mode_threshold") as f32,
            min_servers: settings.number("safe_mode_min_data_servers") as usize,
            extension_ms: settings.number("safe_mode_extension_ms"),
        },
        ..blocks::Config::default()
    };
    let satisfies_policies = match settings.text("storage_policy_satisfier").to_ascii_lowercase().as_str() {
        "internal" | "external" => true,
        "none" => false,
        other => bail!("storage_policy_satisfier is {other:?}: write internal, external or none"),
    };
    let overrides = settings.text("group_overrides");
    let Some(overrides) = UserGroupsConfig::parse_overrides(overrides) else {
        bail!("group_overrides is {overrides:?}: write user=group,group;user=;...");
    };
    let proxies = Proxies::parse(settings.table("proxy_users"))
        .map_err(|reason| anyhow::anyhow!("proxy_users: {reason}"))?;
    Ok(MetaConfig {
        name_directory: PathBuf::from(name_dir.strip_prefix("file://").unwrap_or(name_dir)),
        rpc_address,
        http_address,
        pages: Default::default(),
        limits,
        defaults,
        blocks,
        satisfies_policies,
        complete_wait_ms: settings.number("complete_wait_ms"),
        edits_per_image: settings.number("edits_per_image"),
        image_period_ms: settings.number("image_period_ms"),
        journal_bytes_per_image: settings.number("journal_bytes_per_image"),
        call_queue: CallLimits {
            write_count_max: settings.number("max_waiting_writes") as usize,
            frame_bytes_max: settings.number("max_request_bytes") as usize,
            request_bytes_max: settings.number("max_requests_bytes") as usize,
            events_max: settings.number("inotify_events_max") as usize,
        },
        data_servers_file: Some(settings.text("data_servers_file"))
            .filter(|file| !file.is_empty())
            .map(PathBuf::from),
        excluded_data_servers_file: Some(settings.text("excluded_data_servers_file"))
            .filter(|file| !file.is_empty())
            .map(PathBuf::from),
        racks: settings.table("racks").to_vec(),
        rack_script: rack_script(settings),
        proxies,
        user_groups: UserGroupsConfig { overrides, kept_ms: settings.number("groups_kept_ms") },
        audit_log: Some(settings.text("audit_log")).filter(|path| !path.is_empty()).map(PathBuf::from),
        group: group::config(settings)?,
    })
}
