//! All that one client has from the data servers of its machine.

use super::{
    address::Addresses,
    releases,
    replica::LocalReplica,
    replicas::Replicas,
    request::{self, Got},
    segments::{Release, Segments},
};
use parking_lot::Mutex;
use proto::{
    common::TokenProto,
    hdfs::{DatanodeInfoProto, ExtendedBlockProto},
};
use rpc::local::path;
use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How a client reads from the data servers of its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalConfig {
    /// The path of their sockets, with `_PORT` in place of the transfer port (`dfs.domain.socket.path`).
    pub socket_path: String,
    /// Asks for open files (`dfs.client.read.shortcircuit`).
    pub asks_for_files: bool,
    /// Reads through the socket where it has no files (`dfs.client.domain.socket.data.traffic`).
    pub carries_data: bool,
    /// Does not compare files with their checksums (`dfs.client.read.shortcircuit.skip.checksum`).
    pub skips_checksums: bool,
    /// How long a server that has refused is left alone (`dfs.domain.socket.disable.interval.seconds`).
    pub pause: Duration,
    /// Replicas that are kept open while nobody reads them (`dfs.client.read.shortcircuit.streams.cache.size`).
    pub unused_max: usize,
    /// How long they are (`dfs.client.read.shortcircuit.streams.cache.expiry.ms`).
    pub unused_for: Duration,
    /// How long files are used of which no server tells when they go
    /// (`dfs.client.read.short.circuit.replica.stale.threshold.ms`).
    pub stale_after: Duration,
}

impl LocalConfig {
    /// Open files, with Hadoop's defaults for all else.
    pub fn new(socket_path: &str) -> Self {
        Self {
            socket_path: socket_path.to_owned(),
            asks_for_files: true,
            carries_data: false,
            skips_checksums: false,
            pause: Duration::from_secs(600),
            unused_max: 256,
            unused_for: Duration::from_secs(300),
            stale_after: Duration::from_secs(1800),
        }
    }
}

/// The open files and the shared memory that a client has got from the data servers of its machine. All readers of the client share one.
pub struct LocalReads {
    config: LocalConfig,
    client_name: Arc<str>,
    patience: Duration,
    addresses: Addresses,
    /// Servers that are left alone, by their sockets.
    left_alone: Mutex<HashMap<PathBuf, LeftAlone>>,
    segments: Arc<Segments>,
    replicas: Arc<Replicas>,
    releases: UnboundedSender<Release>,
    /// Until the first use, which has a runtime.
    unheard: Mutex<Option<UnboundedReceiver<Release>>>,
    bytes_read: AtomicU64,
}

#[derive(Default)]
struct LeftAlone {
    /// Nothing goes through the socket before this.
    all_until: Option<Instant>,
    /// No files are asked for before this.
    files_until: Option<Instant>,
    /// It makes no shared memory.
    has_no_segments: bool,
}

impl LocalReads {
    /// `patience`: how long a server may take for each step.
    pub fn new(config: LocalConfig, client_name: &str, patience: Duration) -> Self {
        let (releases, unheard) = unbounded_channel();
        let replicas = Replicas::new(config.unused_max, config.unused_for, config.stale_after);
        Self {
            config,
            client_name: client_name.into(),
            patience,
            addresses: Addresses::default(),
            left_alone: Mutex::default(),
            segments: Arc::default(),
            replicas: Arc::new(replicas),
            releases,
            unheard: Mutex::new(Some(unheard)),
            bytes_read: AtomicU64::new(0),
        }
    }

    /// Bytes that were read from files that data servers have handed over.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Segments of shared memory that this client has.
    pub fn segment_count(&self) -> usize {
        self.segments.count()
    }

    pub(super) fn count(&self, bytes: usize) {
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    pub(super) fn skips_checksums(&self) -> bool {
        self.config.skips_checksums
    }

    /// The open files of a replica on `node`, which hold the block up to `end`. `None`: the server is elsewhere, or does not give
    /// them, or is left alone.
    pub(in crate::block) async fn replica(
        &self,
        node: &DatanodeInfoProto,
        block: &ExtendedBlockProto,
        token: &TokenProto,
        end: u64,
    ) -> Option<Arc<LocalReplica>> {
        if !self.config.asks_for_files {
            return None;
        }
        let path = self.socket_of(node)?;
        if self.is_left_alone(&path, |known| known.files_until) {
            return None;
        }
        let key = (block.pool_id.clone(), block.block_id);
        if let Some(replica) = self.replicas.find(&key, block.generation_stamp, end) {
            return Some(replica);
        }
        self.listen();
        let slot = if self.left_alone.lock().get(&path).is_some_and(|known| known.has_no_segments) {
            Ok(None)
        } else {
            let refused = |why: String| {
                tracing::info!(path = %path.display(), why, "a data server shares no memory");
                self.left_alone.lock().entry(path.clone()).or_default().has_no_segments = true;
            };
            self.segments.take(&path, &self.client_name, self.patience, &self.releases, refused).await
        };
        let got = match slot {
            Ok(slot) => request::files(&path, block, token, slot, self.patience).await,
            Err(error) => Err(error),
        };
        match got {
            Ok(Got::Files(replica)) => {
                let replica = Arc::new(replica);
                // Shorter than the block: the namespace knows more than the disk, and the server says what that means.
                let serves = replica.serves(block.generation_stamp, end, self.config.stale_after);
                serves.then(|| {
                    self.replicas.keep(key, replica.clone());
                    replica
                })
            }
            Ok(Got::NotThisOne(why)) => {
                tracing::debug!(path = %path.display(), why, "a block is not read from its files");
                None
            }
            Ok(Got::Nothing(why)) => {
                tracing::warn!(path = %path.display(), why, "a data server gives no files; they are not asked for now");
                self.leave_alone(&path, |known, until| known.files_until = Some(until));
                None
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a data server is not reached through its socket; it is not tried now");
                self.leave_alone(&path, |known, until| known.all_until = Some(until));
                None
            }
        }
    }

    /// The files of a block have turned out to be of no use.
    pub(in crate::block) fn forget(&self, block: &ExtendedBlockProto) {
        self.replicas.forget(&(block.pool_id.clone(), block.block_id));
    }

    /// The socket through which blocks of a server are read instead of the network, if any.
    pub(in crate::block) fn data_path(&self, node: &DatanodeInfoProto) -> Option<PathBuf> {
        if !self.config.carries_data {
            return None;
        }
        self.socket_of(node)
    }

    /// A server could not be read through its socket.
    pub(in crate::block) fn data_failed(&self, path: &Path) {
        self.leave_alone(path, |known, until| known.all_until = Some(until));
    }

    /// The socket of a server, if it is on this machine and not left alone.
    fn socket_of(&self, node: &DatanodeInfoProto) -> Option<PathBuf> {
        let port = u16::try_from(node.id.xfer_port).ok()?;
        if !self.addresses.is_local(&node.id.ip_addr) {
            return None;
        }
        let path = path::effective(&self.config.socket_path, port);
        (!self.is_left_alone(&path, |known| known.all_until)).then_some(path)
    }

    fn is_left_alone(&self, path: &Path, until: impl Fn(&LeftAlone) -> Option<Instant>) -> bool {
        let known = self.left_alone.lock();
        known.get(path).and_then(until).is_some_and(|until| Instant::now() < until)
    }

    fn leave_alone(&self, path: &Path, note: impl FnOnce(&mut LeftAlone, Instant)) {
        let mut known = self.left_alone.lock();
        note(known.entry(path.to_owned()).or_default(), Instant::now() + self.config.pause);
    }

    /// Begins to give slots back, at the first use.
    fn listen(&self) {
        if let Some(unheard) = self.unheard.lock().take() {
            let replicas = Arc::downgrade(&self.replicas);
            tokio::spawn(releases::run(unheard, self.segments.clone(), replicas, self.patience));
        }
    }
}

impl fmt::Debug for LocalReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalReads").field("config", &self.config).finish_non_exhaustive()
    }
}
