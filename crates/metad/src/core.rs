//! What all parts of a running metadata server share, and the two ways to reach the namespace.
//!
//! Lock order: the namespace, then renewals, then the block map. The member's lock is taken under none of
//! them and holds none. Nothing here is held across I/O.

use crate::{
    client_protocol::Leading,
    commit::CommitWatch,
    config::MetaConfig,
    forward::{self, Forwarder},
    groups::GroupMapping,
    replica::Replica,
    turn::Turn,
    uncommitted::Uncommitted,
};
use ::blocks::BlockMap;
use base::{CallOrigin, Caller, FsError, Moment, Sn};
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard};
use env::Env;
use namespace::{Context, Namespace, Renewals};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The namespace with what is known of its edits in flight.
pub struct Tree {
    pub namespace: Namespace,
    pub uncommitted: Uncommitted,
}

/// A write waiting for its turn.
pub type Write = Box<dyn FnOnce(&mut Turn<'_>) + Send>;

pub struct Core {
    pub env: Env,
    pub config: MetaConfig,
    pub cluster: Cluster,
    /// Many readers at a time, each on its thread's own shard; one writer for a batch of edits.
    tree: ShardedLock<Tree>,
    pub blocks: Arc<Mutex<BlockMap>>,
    pub renewals: Mutex<Renewals>,
    pub commit: Arc<CommitWatch>,
    pub replica: Replica,
    pub groups: Arc<GroupMapping>,
    /// Takes the calls that cannot be answered here.
    pub forwarder: Forwarder,
    /// Answers that wait for the lease.
    pub leading: Leading,
    started: Moment,
    /// `complete` calls that wait for a data server's report.
    pub parked: crate::client_protocol::Parked,
    queue: Queue,
    /// Asks the checkpoint thread to write an image now.
    pub checkpoint: crate::checkpoint::Trigger,
}

/// What this cluster is called.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub cluster_id: String,
    pub namespace_id: u32,
    pub block_pool: Arc<str>,
    pub created_ms: u64,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<VecDeque<Write>>,
    wake: Condvar,
    closed: AtomicBool,
}

impl Core {
    pub fn new(
        env: Env,
        config: MetaConfig,
        cluster: Cluster,
        namespace: Namespace,
        blocks: Arc<Mutex<BlockMap>>,
        replica: Replica,
        commit: Arc<CommitWatch>,
    ) -> Self {
        let now = env.clock.moment();
        let (forwarder, leading) = forward::of(&config, &cluster, &replica, None);
        Self {
            env,
            config,
            cluster,
            tree: ShardedLock::new(Tree { namespace, uncommitted: Uncommitted::default() }),
            blocks,
            renewals: Mutex::new(Renewals::new(now)),
            commit,
            replica,
            groups: Arc::default(),
            forwarder,
            leading,
            started: now,
            parked: crate::client_protocol::Parked::default(),
            queue: Queue::default(),
            checkpoint: crate::checkpoint::Trigger::default(),
        }
    }

    /// For the length of one read. Never across a wait.
    pub fn tree(&self) -> ShardedLockReadGuard<'_, Tree> {
        // A panic under the lock means that an invariant of the tree is broken: nothing may be served from it.
        self.tree.read().expect("the namespace was left whole by its last writer")
    }

    pub fn moment(&self) -> Moment {
        self.env.clock.moment()
    }

    /// Whether all data servers that live have had the time to say what they have. Before, a block of which
    /// none has spoken is not taken for one that was never written.
    pub fn is_settled(&self) -> bool {
        self.moment().ms_since(self.started) >= SETTLING_MS
    }

    /// The context of a read.
    pub fn context<'a>(&'a self, caller: &'a Caller, origin: Option<CallOrigin>) -> Context<'a> {
        Context {
            caller,
            origin,
            fingerprint: 0,
            now: self.env.clock.timestamp(),
            moment: self.moment(),
            limits: &self.config.limits,
            renewals: None,
        }
    }

    /// Whether another write is taken. To be asked before [`Core::write`], while the call can still be refused.
    pub fn admit(&self) -> Result<(), FsError> {
        if self.queue.closed.load(Ordering::Acquire) {
            return Err(FsError::Retry("This metadata server is stopping.".into()));
        }
        if let Some(reason) = self.commit.failure() {
            return Err(FsError::NotActive(format!("This metadata server no longer takes writes: {reason}")));
        }
        let waiting = self.queue.waiting.lock().len();
        if waiting >= self.config.call_queue.write_count_max {
            return Err(FsError::Retry(format!(
                "{waiting} operations are waiting already; try again in a moment."
            )));
        }
        Ok(())
    }

    /// Queues a write. It runs on the writer's thread, in the order of arrival; once the server has stopped it
    /// is dropped, and the replies it holds say so.
    pub fn write(&self, write: Write) {
        let mut waiting = self.queue.waiting.lock();
        if self.queue.closed.load(Ordering::Acquire) {
            drop(waiting);
            return drop(write);
        }
        waiting.push_back(write);
        drop(waiting);
        self.queue.wake.notify_one();
    }

    /// Runs on the writer's thread until [`Core::close`].
    pub fn run_writer(self: &Arc<Self>) {
        let mut batch = VecDeque::new();
        while self.next_batch(&mut batch) {
            self.replica.wait_for_room();
            self.run_batch(&mut batch);
        }
    }

    pub fn close(&self) {
        // Under the queue's lock: what was pushed before is still run, what comes later is dropped.
        let waiting = self.queue.waiting.lock();
        self.queue.closed.store(true, Ordering::Release);
        drop(waiting);
        self.queue.wake.notify_all();
    }

    /// False at the end: the queue is closed and empty.
    fn next_batch(&self, batch: &mut VecDeque<Write>) -> bool {
        let mut waiting = self.queue.waiting.lock();
        loop {
            if !waiting.is_empty() {
                std::mem::swap(&mut *waiting, batch);
                return true;
            }
            if self.queue.closed.load(Ordering::Acquire) {
                return false;
            }
            self.queue.wake.wait(&mut waiting);
        }
    }

    /// Runs what waits in turns of a millisecond at most, so that readers get in between.
    fn run_batch(self: &Arc<Self>, batch: &mut VecDeque<Write>) {
        while !batch.is_empty() {
            let began = self.moment();
            let finished = {
                let mut tree = self.tree.write().expect("the namespace was left whole by its last writer");
                tree.uncommitted.forget_committed(self.commit.committed());
                let mut turn = Turn::begin(self, &mut tree, began);
                while let Some(write) = batch.pop_front() {
                    write(&mut turn);
                    if self.moment().ns - began.ns > TURN_NS_MAX {
                        break;
                    }
                }
                turn.clean_up_orphans();
                turn.finish()
            };
            // The lock is free again; replies that need not wait go out here.
            for (sn, release) in finished.releases {
                self.commit.when(sn, release);
            }
            if finished.orphans_left {
                // Behind those who came meanwhile: a large delete does not stop anyone.
                batch.extend(self.queue.waiting.lock().drain(..));
                batch.push_back(Box::new(|_| {}));
            }
        }
    }
}

/// Several heartbeats of the data servers, and some time to reconnect.
const SETTLING_MS: u64 = 30_000;

/// How long one turn may keep readers waiting.
const TURN_NS_MAX: u64 = 1_000_000;

/// What a turn leaves to be done once the namespace is unlocked.
pub struct Finished {
    pub releases: Vec<(Sn, crate::turn::Release)>,
    pub orphans_left: bool,
}
