//! The state that all parts of a running metadata server share, and the two ways to reach the namespace.
//!
//! Lock order: the namespace, then the index of older calls, then renewals, then the news that waits for the block
//! map, then the block map. The member's lock is taken under none of them and holds none. Nothing here is held across
//! I/O.

use crate::{
    apply,
    audit::AuditLog,
    chronicle::Chronicle,
    cluster::Cluster,
    commit::CommitWatch,
    config::MetaConfig,
    datanodes::Admission,
    fatal::InHand,
    forward::{self, Forwarder},
    groups::GroupMapping,
    older_answers::OlderAnswers,
    partition::{condition::Condition, leading::Leading, parked::Parked, upgrade::Upgrade},
    peers::Secret,
    queue::{Attempt, Queue, Work},
    replica::Replica,
    settle::Unsettled,
    turn::Turn,
    watch::WRITER,
};
use ::blocks::BlockMap;
use base::{CallOrigin, Caller, FsError, Moment, Sn};
use bytes::Bytes;
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use env::{Env, pulse};
use namespace::{Context, Namespace, Renewals};
use parking_lot::Mutex;
use rpc::{Call, Replier};
use serving::{Refusals, Rules, Tree};
use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};
use tokio::sync::watch;

/// A write waiting for its turn. It is dropped if this member does not serve by then.
pub type Write = Box<dyn FnOnce(&mut Turn<'_>) + Send>;

/// Answers a call that came from a client.
pub type AnswerCall = fn(&Arc<Core>, Call, Replier);

pub struct Core {
    pub env: Env,
    pub config: MetaConfig,
    pub cluster: Cluster,
    /// The secret that members prove to each other: the configuration's, or else the cluster's own.
    pub secret: Option<Secret>,
    /// Many readers at a time, each on its thread's own shard; one writer for a batch of edits.
    tree: ShardedLock<Tree>,
    pub blocks: Arc<Mutex<BlockMap>>,
    /// The changes that the block map is told when their edits have committed.
    pub unsettled: Arc<Unsettled>,
    pub renewals: Mutex<Renewals>,
    /// Which data servers may take part.
    pub admission: Admission,
    pub commit: Arc<CommitWatch>,
    pub replica: Replica,
    pub groups: Arc<GroupMapping>,
    /// None: calls leave no trace.
    pub audit: Option<AuditLog>,
    /// Takes the calls that cannot be answered here.
    pub forwarder: Forwarder,
    /// Answers that wait for the lease.
    pub leading: Leading,
    /// The conditions that keep this server from serving although nothing has failed.
    pub condition: Condition,
    /// The level of the group, as far as the rest of this server was told of it.
    pub upgrade: Upgrade,
    /// The group's past takeovers, for operators.
    pub chronicle: Chronicle,
    /// The challenges with which operators' orders are proved.
    pub challenges: crate::admin_protocol::Challenges,
    started: Moment,
    /// `complete` calls that wait for a data server's report.
    pub parked: Parked,
    /// Answers to calls that changed nothing, for late copies of them.
    pub refusals: Mutex<Refusals>,
    queue: Arc<Queue>,
    /// Answers to calls that the retry cache has forgotten.
    pub older_answers: OlderAnswers,
    /// Reads that look at a great deal, in slices.
    pub walks: crate::walks::Walks,
    /// Asks the checkpoint thread to write an image now.
    pub checkpoint: crate::checkpoint::Trigger,
    /// The payload of the checkpoint that has committed last of those that another member has made.
    pub checkpoints: watch::Sender<Option<Bytes>>,
    /// Pieces of images that others read from here.
    pub pool_reads: crate::pool::reads::Reads,
    /// The results of scrubbing the store.
    pub scrub: crate::scrub::Counts,
    /// A look at the RPC server's work under way, once there is a server.
    pub load: OnceLock<rpc::Load>,
    /// The image that is being fetched from others.
    pub fetching: crate::pool::fetch::Progress,
    /// Answers a client's call, from the first question on: for calls that were held until this member serves.
    pub answer: AnswerCall,
}

impl Core {
    #[expect(clippy::too_many_arguments)]
    pub fn new(
        env: Env,
        mut config: MetaConfig,
        cluster: Cluster,
        secret: Option<Secret>,
        namespace: Namespace,
        blocks: Arc<Mutex<BlockMap>>,
        unsettled: Arc<Unsettled>,
        replica: Replica,
        commit: Arc<CommitWatch>,
        queue: Arc<Queue>,
        answer: AnswerCall,
    ) -> Self {
        let (now, began) = (env.clock.moment(), env.clock.timestamp());
        config.limits.created = base::Timestamp::from_ms(cluster.created_ms);
        let chronicle = Chronicle::open(&env, &config.name_directory).unwrap_or_else(|error| {
            tracing::error!(%error, reason = %error.0, "unclean elections are not counted");
            Chronicle::default()
        });
        let forwarder = forward::of(&config, &cluster, &replica, secret.as_ref().map(Secret::as_bytes));
        let leading = match forwarder.runtime() {
            Some(runtime) => Leading::in_group(runtime.clone(), &config.group),
            None => Leading::default(),
        };
        let admission = Admission::new(config.data_servers_file.clone());
        let groups = Arc::new(GroupMapping::new(&config.groups));
        let audit = config.audit_log.clone().map(AuditLog::new);
        Self {
            challenges: crate::admin_protocol::Challenges::new(&env),
            env,
            config,
            cluster,
            secret,
            older_answers: OlderAnswers::new(&namespace),
            tree: ShardedLock::new(Tree::new(namespace, Rules::default())),
            blocks,
            unsettled,
            renewals: Mutex::new(Renewals::new(now)),
            admission,
            commit,
            groups,
            audit,
            forwarder,
            leading,
            condition: Condition::default(),
            upgrade: Upgrade::new(began),
            chronicle,
            started: now,
            parked: Parked::default(),
            refusals: Mutex::default(),
            queue,
            replica,
            walks: crate::walks::Walks::default(),
            checkpoint: crate::checkpoint::Trigger::default(),
            checkpoints: watch::Sender::new(None),
            pool_reads: crate::pool::reads::Reads::default(),
            scrub: crate::scrub::Counts::default(),
            load: OnceLock::new(),
            fetching: crate::pool::fetch::Progress::default(),
            answer,
        }
    }

    /// The namespace, locked for the length of one read. Never across a wait.
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

    /// Data servers that have been heard lately.
    pub fn data_servers(&self) -> u32 {
        let limit_ms = HEARTBEATS_MISSED * self.config.blocks.heartbeat_interval_ms;
        self.blocks.lock().heard_within(limit_ms, self.moment())
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
        if self.queue.is_closed() {
            return Err(FsError::Retry("This metadata server is stopping.".into()));
        }
        if let Some(reason) = self.commit.failure() {
            return Err(FsError::NotActive(format!("This metadata server no longer takes writes: {reason}")));
        }
        if !self.replica.is_serving() {
            return Err(FsError::NotActive(
                "This metadata server is not the active one of its group.".into(),
            ));
        }
        let waiting = self.queue.attempts_waiting();
        if waiting >= self.config.call_queue.write_count_max {
            return Err(FsError::Retry(format!(
                "{waiting} operations are waiting already; try again in a moment."
            )));
        }
        Ok(())
    }

    /// Queues a write of the service's own. It runs on the writer's thread, in the order of arrival; once the server has
    /// stopped, or when it does not serve by then, it is dropped, and the replies it holds say so.
    pub fn write(&self, write: Write) {
        self.push(
            None,
            Box::new(move |turn| {
                if let Some(turn) = turn {
                    write(turn);
                }
            }),
        );
    }

    /// As [`Core::write`], for a request. The attempt is told if this member no longer serves by then: it gets no
    /// turn, and nothing has happened.
    pub fn attempt(&self, request: InHand, attempt: Attempt) {
        self.push(Some(request), attempt);
    }

    /// A handle of this call for the threads that work on it: each holds it while it does.
    pub fn in_hand(&self, call: &Call) -> InHand {
        self.replica.fatal().in_hand(call)
    }

    fn push(&self, in_hand: Option<InHand>, attempt: Attempt) {
        if let Err(Work::Attempt(_, attempt)) = self.queue.push(Work::Attempt(in_hand, attempt)) {
            attempt(None);
        }
    }

    /// Runs on the writer's thread until [`Core::close`].
    pub fn run_writer(self: &Arc<Self>) {
        let _watched = self.replica.watched().pulses.begin(WRITER);
        let mut batch = VecDeque::new();
        while self.queue.take(&mut batch) {
            self.run_batch(&mut batch);
        }
    }

    pub fn close(&self) {
        self.queue.close();
    }

    /// Does what waits, in its order.
    fn run_batch(self: &Arc<Self>, batch: &mut VecDeque<Work>) {
        while let Some(work) = batch.front() {
            match work {
                Work::Attempt(..) if self.replica.is_serving() => {
                    self.replica.wait_for_room();
                    self.run_turn(batch);
                }
                _ => match batch.pop_front().expect("looked at above") {
                    Work::Attempt(in_hand, attempt) => {
                        let _holding = in_hand.map(InHand::hold);
                        attempt(None);
                    }
                    Work::Follow(followed) => apply::follow(self, followed),
                    Work::Between(run) => run(),
                },
            }
            pulse::step();
        }
    }

    /// Runs attempts for a millisecond at most, so that readers get in between.
    fn run_turn(self: &Arc<Self>, batch: &mut VecDeque<Work>) {
        let began = self.moment();
        let finished = {
            let mut tree = self.tree_mut();
            tree.forget_committed(self.commit.committed());
            let mut turn = Turn::begin(self, &mut tree, began);
            while let Some(Work::Attempt(..)) = batch.front() {
                let Some(Work::Attempt(in_hand, attempt)) = batch.pop_front() else {
                    unreachable!("looked at above")
                };
                {
                    let _holding = in_hand.map(InHand::hold);
                    attempt(Some(&mut turn));
                }
                pulse::step();
                if self.moment().ns - began.ns > TURN_NS_MAX {
                    break;
                }
            }
            turn.clean_up_orphans();
            turn.finish()
        };
        // The lock is free again: readers need not wait for the disk. Replies that need not wait go out here.
        self.replica.write_proposed();
        for (sn, release) in finished.releases {
            self.commit.when(sn, release);
        }
        for (_, release) in finished.unreleased {
            release(Err("this member was deposed before the operation reached the log"));
        }
        if finished.orphans_left {
            // Behind those who came meanwhile: a large delete does not stop anyone.
            self.queue.take_more(batch);
            batch.push_back(Work::Attempt(None, Box::new(|_| {})));
        }
    }

    /// The namespace, locked for the writer, no longer than a turn.
    pub fn tree_mut(&self) -> ShardedLockWriteGuard<'_, Tree> {
        self.tree.write().expect("the namespace was left whole by its last writer")
    }
}

/// A data server that has missed so many heartbeats does not reach this member.
const HEARTBEATS_MISSED: u64 = 3;

/// Several heartbeats of the data servers, and some time to reconnect.
const SETTLING_MS: u64 = 30_000;

/// How long one turn may keep readers waiting.
pub const TURN_NS_MAX: u64 = 1_000_000;

/// The work that a turn leaves for after the namespace is unlocked.
pub struct Finished {
    pub releases: Vec<(Sn, crate::turn::Release)>,
    /// The replies whose edits never reached the log.
    pub unreleased: Vec<(Sn, crate::turn::Release)>,
    pub orphans_left: bool,
}
