//! The settings of one client, parsed and checked.

use super::{Config, ConfigError, quantity, user};
use crate::block::{Checksums, LocalConfig, Replacement, ReplacementPolicy};
use std::{ops::RangeInclusive, time::Duration};

/// The settings of the library. For a value that is `None`, the server's own default holds.
#[derive(Clone, Debug)]
pub struct Settings {
    pub user: String,
    /// The user who acts for `user`, as a proxy does. `None`: `user` itself.
    pub real_user: Option<String>,
    /// `fs.defaultFS`, with which paths without a scheme are completed.
    pub default_fs: Option<String>,
    /// Copies of each block of a new file (`dfs.replication`).
    pub replication: Option<u16>,
    /// Bytes of a block of a new file (`dfs.blocksize`).
    pub block_size: Option<u64>,
    /// `dfs.bytes-per-checksum`.
    pub bytes_per_checksum: Option<u32>,
    /// `dfs.checksum.type`.
    pub checksums: Option<Checksums>,
    /// `dfs.client-write-packet-size`.
    pub packet_bytes: Option<u32>,
    /// Taken away from the mode of what is created (`fs.permissions.umask-mode`).
    pub umask: u16,
    /// `ipc.client.connect.timeout`.
    pub connect_timeout: Duration,
    /// How long a metadata server may take to answer a call before another one is asked
    /// (`ipc.client.rpc-timeout.ms`, or `ipc.ping.interval` without pings), or the same again where there is no other.
    pub rpc_timeout: Option<Duration>,
    /// `dfs.client.socket-timeout`.
    pub io_timeout: Duration,
    /// `dfs.client.use.datanode.hostname`.
    pub by_host_name: bool,
    /// `dfs.client.block.write.replace-datanode-on-failure.*`.
    pub replacement: Replacement,
    pub retries: Retries,
    /// How blocks of this machine's data servers are read: `dfs.client.read.shortcircuit` and its kin. `None`: as all others.
    pub local: Option<LocalConfig>,
}

/// How long the client goes on trying.
#[derive(Clone, Debug)]
pub struct Retries {
    /// Attempts over all metadata servers (`dfs.client.failover.max.attempts`). None: so many that the longest takeover is
    /// outlasted, however many servers there are.
    pub failovers_max: Option<u32>,
    /// The pause after the first attempt; it doubles (`dfs.client.failover.sleep.base.millis`).
    pub failover_pause: Duration,
    /// The pause at which doubling ends (`dfs.client.failover.sleep.max.millis`).
    pub failover_pause_max: Duration,
    /// How often fresh places are asked for when no replica of a block can be read
    /// (`dfs.client.max.block.acquire.failures`).
    pub refetches_max: u32,
    /// How often a file that is being written is looked up again while nobody is known who has its last block
    /// (`dfs.client.retry.times.get-last-block-length`).
    pub last_length_retries_max: u32,
    /// The pause before each of these (`dfs.client.retry.interval-ms.get-last-block-length`).
    pub last_length_pause: Duration,
    /// New pipelines for one block (`dfs.client.block.write.retries`).
    pub pipelines_max: u32,
    /// Further tries of `addBlock` and `complete` while blocks are not yet reported
    /// (`dfs.client.block.write.locateFollowingBlock.retries`).
    pub report_waits_max: u32,
    /// The first pause between those; it doubles.
    /// Hadoop's is 400 ms; its servers answer before a report is in, Clover's wait for it.
    pub report_pause: Duration,
}

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);
/// Hadoop's default of `ipc.ping.interval`.
const PING_INTERVAL: Duration = Duration::from_secs(60);
/// Longer than any call takes.
const RPC_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);

impl Settings {
    /// # Errors
    /// The error names the property and its place if its value makes no sense or is out of range, or says that no user
    /// can be found in the environment.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let read = Read { config };
        Ok(Self {
            user: user::of_environment()?,
            real_user: None,
            default_fs: config.get("fs.defaultFS").or_else(|| config.get("fs.default.name")),
            replication: read.number("dfs.replication", 1..=512)?.map(|count| count as u16),
            block_size: read.size("dfs.blocksize", 1..=1 << 50)?,
            bytes_per_checksum: read.size("dfs.bytes-per-checksum", 1..=1 << 24)?.map(|size| size as u32),
            checksums: read.checksums()?,
            packet_bytes: read
                .size("dfs.client-write-packet-size", 1 << 10..=16 << 20)?
                .map(|size| size as u32),
            umask: read.umask()?,
            connect_timeout: read.time("ipc.client.connect.timeout", MILLISECOND)?.unwrap_or(20 * SECOND),
            rpc_timeout: read.rpc_timeout()?,
            io_timeout: read.time("dfs.client.socket-timeout", MILLISECOND)?.unwrap_or(60 * SECOND),
            by_host_name: read.flag("dfs.client.use.datanode.hostname", false)?,
            replacement: read.replacement()?,
            retries: read.retries()?,
            local: read.local()?,
        })
    }
}

/// Reads single properties and names them when they make no sense.
struct Read<'a> {
    config: &'a Config,
}

impl Read<'_> {
    fn number(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ConfigError> {
        self.parse(key, range, "a number", |text| text.trim().parse().ok())
    }

    fn size(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ConfigError> {
        self.parse(key, range, "a size as 134217728 or 128m", quantity::bytes)
    }

    fn parse(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
        kind: &str,
        parse: impl Fn(&str) -> Option<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        let Some(text) = self.config.get(key) else { return Ok(None) };
        let value = parse(&text).ok_or_else(|| self.config.refuse(key, &format!("is not {kind}")))?;
        if !range.contains(&value) {
            let reason = format!("is not between {} and {}", range.start(), range.end());
            return Err(self.config.refuse(key, &reason));
        }
        Ok(Some(value))
    }

    fn time(&self, key: &str, plain_unit: Duration) -> Result<Option<Duration>, ConfigError> {
        let Some(text) = self.config.get(key) else { return Ok(None) };
        match quantity::time(&text, plain_unit) {
            Some(time) if time > Duration::ZERO => Ok(Some(time)),
            _ => Err(self.config.refuse(key, "is not a time above 0, as 60000 or 60s")),
        }
    }

    /// The wait for a call, as in Hadoop. At 0, the interval of pings ends the wait if no pings are sent; if they are
    /// sent, nothing ends it.
    fn rpc_timeout(&self) -> Result<Option<Duration>, ConfigError> {
        let key = "ipc.client.rpc-timeout.ms";
        match self.config.get(key).as_deref().map(str::trim) {
            Some("0") if !self.flag("ipc.client.ping", true)? => {
                let interval = self.time("ipc.ping.interval", MILLISECOND)?.unwrap_or(PING_INTERVAL);
                Ok(Some(interval.min(RPC_TIMEOUT_MAX)))
            }
            Some("0") => Ok(Some(RPC_TIMEOUT_MAX)),
            _ => Ok(self.time(key, MILLISECOND)?.map(|timeout| timeout.min(RPC_TIMEOUT_MAX))),
        }
    }

    fn flag(&self, key: &str, default: bool) -> Result<bool, ConfigError> {
        match self.config.get(key).as_deref().map(str::trim) {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(self.config.refuse(key, "is neither true nor false")),
        }
    }

    fn checksums(&self) -> Result<Option<Checksums>, ConfigError> {
        let key = "dfs.checksum.type";
        match self.config.get(key).as_deref() {
            None => Ok(None),
            Some("CRC32C") => Ok(Some(Checksums::Crc32c)),
            Some("CRC32") => Ok(Some(Checksums::Crc32)),
            Some("NULL") => Ok(Some(Checksums::None)),
            Some(_) => Err(self.config.refuse(key, "is none of CRC32C, CRC32 and NULL")),
        }
    }

    fn umask(&self) -> Result<u16, ConfigError> {
        let key = "fs.permissions.umask-mode";
        let Some(text) = self.config.get(key) else { return Ok(0o022) };
        match u16::from_str_radix(text.trim(), 8) {
            Ok(mask) if mask <= 0o777 => Ok(mask),
            _ => Err(self.config.refuse(key, "is not an octal mask between 000 and 777")),
        }
    }

    fn replacement(&self) -> Result<Replacement, ConfigError> {
        let key = |name: &str| format!("dfs.client.block.write.replace-datanode-on-failure.{name}");
        let policy_key = key("policy");
        let policy = self.config.get(&policy_key).map(|text| text.trim().to_ascii_uppercase());
        let policy = match policy.as_deref() {
            None | Some("DEFAULT") => ReplacementPolicy::Default,
            Some("NEVER") => ReplacementPolicy::Never,
            Some("ALWAYS") => ReplacementPolicy::Always,
            Some(_) => return Err(self.config.refuse(&policy_key, "is none of DEFAULT, NEVER and ALWAYS")),
        };
        let is_enabled = self.flag(&key("enable"), true)?;
        // In Hadoop a number below 0 means the same as 0.
        let at_least_0 = |text: &str| text.trim().parse().ok().map(|number: i64| number.max(0) as u64);
        let servers_min = self.parse(&key("min-replication"), 0..=512, "a number", at_least_0)?;
        Ok(Replacement {
            policy: if is_enabled { policy } else { ReplacementPolicy::Never },
            is_best_effort: self.flag(&key("best-effort"), false)?,
            servers_min: servers_min.unwrap_or(0) as u16,
        })
    }

    /// As in Hadoop, nothing is done locally unless it is asked for, and then a path is needed.
    fn local(&self) -> Result<Option<LocalConfig>, ConfigError> {
        const FILES: &str = "dfs.client.read.shortcircuit";
        const PATH: &str = "dfs.domain.socket.path";
        let asks_for_files = self.flag(FILES, false)?;
        let carries_data = self.flag("dfs.client.domain.socket.data.traffic", false)?;
        if !asks_for_files && !carries_data {
            return Ok(None);
        }
        let path = self.config.get(PATH).map(|path| path.trim().to_owned()).unwrap_or_default();
        if path.is_empty() {
            let key = if asks_for_files { FILES } else { "dfs.client.domain.socket.data.traffic" };
            return Err(self.config.refuse(key, &format!("is set, and {PATH} is not")));
        }
        let defaults = LocalConfig::new(&path);
        let seconds = self.number("dfs.domain.socket.disable.interval.seconds", 0..=1 << 32)?;
        let unused_max = self.number("dfs.client.read.shortcircuit.streams.cache.size", 0..=100_000)?;
        let unused_for = self.time("dfs.client.read.shortcircuit.streams.cache.expiry.ms", MILLISECOND)?;
        let stale_after =
            self.time("dfs.client.read.short.circuit.replica.stale.threshold.ms", MILLISECOND)?;
        Ok(Some(LocalConfig {
            asks_for_files,
            carries_data,
            skips_checksums: self.flag("dfs.client.read.shortcircuit.skip.checksum", false)?,
            pause: seconds.map_or(defaults.pause, Duration::from_secs),
            unused_max: unused_max.map_or(defaults.unused_max, |count| count as usize),
            unused_for: unused_for.unwrap_or(defaults.unused_for),
            stale_after: stale_after.unwrap_or(defaults.stale_after),
            ..defaults
        }))
    }

    fn retries(&self) -> Result<Retries, ConfigError> {
        let count =
            |key, default| Ok::<_, ConfigError>(self.number(key, 0..=1_000)?.map_or(default, |n| n as u32));
        let time = |key| self.time(key, MILLISECOND);
        Ok(Retries {
            failovers_max: self.number("dfs.client.failover.max.attempts", 0..=1_000)?.map(|n| n as u32),
            failover_pause: time("dfs.client.failover.sleep.base.millis")?.unwrap_or(500 * MILLISECOND),
            failover_pause_max: time("dfs.client.failover.sleep.max.millis")?.unwrap_or(15 * SECOND),
            refetches_max: count("dfs.client.max.block.acquire.failures", 3)?,
            last_length_retries_max: count("dfs.client.retry.times.get-last-block-length", 3)?,
            last_length_pause: time("dfs.client.retry.interval-ms.get-last-block-length")?
                .unwrap_or(4 * SECOND),
            pipelines_max: count("dfs.client.block.write.retries", 3)?,
            report_waits_max: count("dfs.client.block.write.locateFollowingBlock.retries", 5)?,
            report_pause: time("dfs.client.block.write.locateFollowingBlock.initial.delay.ms")?
                .unwrap_or(400 * MILLISECOND),
        })
    }
}
