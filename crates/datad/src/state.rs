//! The state that all parts of a data server share.

use crate::{
    config::DataConfig,
    disk_balancer::book::DiskBalancer,
    identity::Identity,
    moves::Moves,
    pool::Pool,
    reconfiguration::Reconfiguration,
    short_circuit::ShortCircuit,
    slowness::Slowness,
    xceiver::{fill_room::FillRoom, waiting::Waiting},
};
use base::{BlockId, Moment, StorageType};
use blockstore::{BlockStore, POOL_COUNT_MAX, PoolStore, Scanners, StoreError, StoreResult, VolumeIndex};
use env::{Env, descriptors::Place};
use measures::{Figures, Times};
use proto::data_transfer::Opcode;
use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};
use tokio::sync::{oneshot, watch};

/// The connection itself, the two files of a replica, and the connection to the next server.
const DESCRIPTORS_PER_TRANSFER: usize = 4;

/// One for a server, behind an `Arc`.
pub struct State {
    pub env: Env,
    pub config: DataConfig,
    /// The volumes, which all pools share.
    pub volumes: Arc<BlockStore>,
    pub identity: Identity,
    pub counters: Counters,
    /// They look after the replicas. There are none until the server has started.
    pub(crate) scanners: OnceLock<Scanners>,
    /// The replicas that balancers have moved.
    pub moves: Arc<Moves>,
    /// The times of packets to other servers, and of operations on the disks.
    pub slowness: Slowness,
    /// The measures of the RPC port. The field is empty until the server has started.
    pub(crate) rpc: OnceLock<RpcCalls>,
    /// The segments of shared memory that clients of this machine have.
    pub short_circuit: Arc<ShortCircuit>,
    /// Settings that change while the server runs.
    pub reconfiguration: Reconfiguration,
    /// It moves replicas between the volumes.
    pub disk_balancer: DiskBalancer,
    /// The pools that are served, from the front: each has a place from its first handshake on. So each transfer finds
    /// its pool without a lock.
    pools: Box<[OnceLock<Arc<Pool>>]>,
    started: Moment,
    transfers: AtomicUsize,
    /// The transfer connections that wait for an operation.
    pub(crate) waiting: Waiting,
    copies: AtomicUsize,
    pub(crate) fill_room: FillRoom,
    reads: AtomicU64,
    end: watch::Sender<Option<String>>,
}

/// The counts and times of calls to the RPC port, and a view of its connections and its traffic.
pub(crate) struct RpcCalls {
    pub calls: Arc<measures::Calls>,
    pub load: rpc::Load,
}

/// The counters of the transfer service for `/metrics`. Each part of the service counts its own work.
#[derive(Default)]
pub struct Counters {
    pub bytes_written: AtomicU64,
    pub bytes_read: AtomicU64,
    pub blocks_written: AtomicU64,
    pub blocks_read: AtomicU64,
    pub transfer_errors: AtomicU64,
    /// How long operations of the transfer port took, in the order of [`OPERATIONS`].
    pub operations: [Times; OPERATIONS.len()],
}

/// The operations that are timed, and their names for `/metrics`.
const OPERATIONS: [(Opcode, &str); 6] = [
    (Opcode::WriteBlock, "write"),
    (Opcode::ReadBlock, "read"),
    (Opcode::BlockChecksum, "checksum"),
    (Opcode::TransferBlock, "transfer"),
    (Opcode::CopyBlock, "copy"),
    (Opcode::ReplaceBlock, "replace"),
];

impl Counters {
    /// Takes in how long an operation took, whether it failed or not. Operations on shared memory are not timed.
    pub fn operated(&self, code: Opcode, began: Moment, now: Moment) {
        if let Some(at) = OPERATIONS.iter().position(|(timed, _)| *timed == code) {
            self.operations[at].record_ns(now.ns.saturating_sub(began.ns));
        }
    }

    /// How long operations took, by their names.
    pub fn operation_figures(&self) -> impl Iterator<Item = (&'static str, Figures)> {
        OPERATIONS.iter().zip(&self.operations).map(|((_, name), times)| (*name, times.figures()))
    }
}

impl State {
    pub(crate) fn new(env: Env, config: DataConfig, volumes: Arc<BlockStore>, identity: Identity) -> Self {
        let started = env.clock.moment();
        let reconfiguration = Reconfiguration::new(&config);
        let slowness = Slowness::new(config.slowness.clone());
        let moves = Moves::new(config.move_count_max, config.move_bytes_per_second);
        Self {
            env,
            config,
            volumes,
            identity,
            counters: Counters::default(),
            scanners: OnceLock::new(),
            moves,
            slowness,
            rpc: OnceLock::new(),
            short_circuit: Arc::default(),
            reconfiguration,
            disk_balancer: DiskBalancer::default(),
            pools: (0..POOL_COUNT_MAX).map(|_| OnceLock::new()).collect(),
            started,
            transfers: AtomicUsize::new(0),
            waiting: Waiting::default(),
            copies: AtomicUsize::new(0),
            fill_room: FillRoom::default(),
            reads: AtomicU64::new(0),
            end: watch::Sender::new(None),
        }
    }

    /// The pool that a message means, by the id that it names.
    ///
    /// # Errors
    /// [`StoreError::UnknownPool`] if that pool is not served here, or not yet.
    pub fn pool(&self, id: &str) -> StoreResult<&Arc<Pool>> {
        self.pools().find(|pool| *pool.id == *id).ok_or_else(|| StoreError::UnknownPool(id.into()))
    }

    /// All pools that are served: none before the first handshake.
    pub fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools.iter().map_while(OnceLock::get)
    }

    /// Replicas of any state, of all pools.
    pub fn replica_count(&self) -> usize {
        self.pools().map(|pool| pool.store.replica_count()).sum()
    }

    /// Begins to serve a pool. Later calls for the pool answer with the first one's.
    ///
    /// # Errors
    /// [`StoreError::UnknownPool`] if as many others are served as are possible. The store has refused the pool before.
    pub(crate) fn serve(&self, store: PoolStore) -> StoreResult<Arc<Pool>> {
        let id = store.info().pool.clone();
        for place in &self.pools {
            let pool = place.get_or_init(|| {
                let node = self.identity.to_info_proto();
                Arc::new(Pool::new(store.clone(), node, self.short_circuit.clone()))
            });
            if pool.id == id {
                return Ok(pool.clone());
            }
        }
        Err(StoreError::UnknownPool(id.to_string()))
    }

    /// Carries out work on a thread of its own: long work, for which nothing else may wait.
    ///
    /// # Errors
    /// No thread could be started, or the work panicked.
    pub(crate) async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<BlockStore>) -> T + Send + 'static,
    ) -> io::Result<T> {
        let (done, result) = oneshot::channel();
        let volumes = self.volumes.clone();
        std::thread::Builder::new().name("store-work".into()).spawn(move || {
            // The caller may be gone.
            let _ = done.send(work(&volumes));
        })?;
        result.await.map_err(|_| io::Error::other("the work was broken off"))
    }

    /// Runs `work` on an I/O thread and waits for it without blocking the runtime.
    pub async fn on_volume_thread<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        // Any lane: what must keep an order names its own.
        let lane = self.env.random.next_u64();
        self.wait_for(|_| work(), |volumes, job| volumes.threads().submit_any(lane, job)).await
    }

    /// Carries out work on the store's own thread. It is for questions about all volumes, which must not wait behind
    /// a disk that hangs.
    pub async fn in_office<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<BlockStore>) -> T + Send + 'static,
    ) -> T {
        self.wait_for(work, |volumes, job| volumes.threads().submit_office(job)).await
    }

    async fn wait_for<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<BlockStore>) -> T + Send + 'static,
        submit: impl FnOnce(&BlockStore, Box<dyn FnOnce() + Send>),
    ) -> T {
        let (done, result) = oneshot::channel();
        let volumes = self.volumes.clone();
        let job = move || {
            // The caller may be gone.
            let _ = done.send(work(&volumes));
        };
        submit(&self.volumes, Box::new(job));
        result.await.expect("a job on the store's threads ends with an answer")
    }

    pub fn storage_type(&self, storage_id: &str) -> StorageType {
        let found = self.volumes.storages().find(|(id, _)| **id == *storage_id);
        found.map(|(_, storage_type)| storage_type).unwrap_or_default()
    }

    /// Counts one transfer connection in, until the guard is dropped; `None` when there are as many as the
    /// configuration or the file descriptors allow.
    pub fn admit_transfer(self: &Arc<Self>) -> Option<TransferGuard> {
        let place = self.env.descriptors.take_quietly(DESCRIPTORS_PER_TRANSFER)?;
        let admitted = self
            .transfers
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
                (count < self.config.transfer_count_max).then_some(count + 1)
            })
            .is_ok();
        admitted.then(|| TransferGuard { state: self.clone(), _place: place })
    }

    /// Transfer connections under way, for heartbeats.
    pub fn transfer_count(&self) -> usize {
        self.transfers.load(Ordering::Acquire)
    }

    /// A number for a read that begins, which no other has.
    pub(crate) fn number_read(&self) -> u64 {
        self.reads.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts one copy to another server in, until the guard is dropped.
    pub(crate) fn begin_copy(self: &Arc<Self>) -> CopyGuard {
        self.copies.fetch_add(1, Ordering::AcqRel);
        CopyGuard { state: self.clone() }
    }

    /// Copies to other servers under way.
    pub fn copy_count(&self) -> usize {
        self.copies.load(Ordering::Acquire)
    }

    /// Has a replica scanned soon, because somebody could not read it.
    pub(crate) fn suspect(&self, pool: &Pool, volume: VolumeIndex, id: BlockId) {
        if let Some(scanners) = self.scanners.get() {
            scanners.suspect(&pool.id, volume, id);
        }
    }

    pub(crate) fn stop_scanners(&self) {
        if let Some(scanners) = self.scanners.get() {
            scanners.stop();
        }
    }

    pub fn uptime_ms(&self) -> u64 {
        self.env.clock.moment().ms_since(self.started)
    }

    /// Asks the server to end; the first reason is kept.
    pub fn request_end(&self, reason: &str) {
        self.end.send_if_modified(|end| {
            let is_first = end.is_none();
            if is_first {
                *end = Some(reason.into());
            }
            is_first
        });
    }

    /// Waits until the server is asked to end.
    pub async fn end_requested(&self) -> String {
        let mut end = self.end.subscribe();
        let reason = end.wait_for(Option::is_some).await.map(|reason| reason.clone());
        reason.ok().flatten().unwrap_or_default()
    }
}

/// See [`State::admit_transfer`].
pub struct TransferGuard {
    state: Arc<State>,
    _place: Place,
}

impl Drop for TransferGuard {
    fn drop(&mut self) {
        self.state.transfers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// See [`State::begin_copy`].
pub(crate) struct CopyGuard {
    state: Arc<State>,
}

impl Drop for CopyGuard {
    fn drop(&mut self) {
        self.state.copies.fetch_sub(1, Ordering::AcqRel);
    }
}
