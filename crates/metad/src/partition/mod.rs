//! The part of the namespace that one group holds, as this server's member of the group sees it.
//!
//! All that depends on one log stands here: the tree with its edits in flight, the block map, what writers and waiting
//! calls have of it, and the member itself. The server around it ([`crate::core`]) knows which calls come in; a call reaches
//! the tree and the group through the partition.
//!
//! The one [`writer`] changes the tree, in a [`turn`] for what comes in, or by following the group's decisions ([`follow`]).
//!
//! Lock order: the namespace, then the index of older calls, then renewals, then the news that waits for the block
//! map, then the block map. The member's lock is taken under none of them and holds none. Nothing here is held across
//! I/O.

pub mod condition;
mod follow;
pub mod leading;
pub mod parked;
pub mod queue;
pub mod server_orders;
pub mod standby_reads;
pub mod tree_lock;
pub mod turn;
pub mod upgrade;
mod writer;

use crate::{
    checkpoint::Trigger,
    chronicle::Chronicle,
    cluster::Cluster,
    commit::CommitWatch,
    config::MetaConfig,
    directories::Directories,
    exchange::{fetch::Progress, reads::Reads},
    fatal::InHand,
    forward::{self, Forwarder, Recipient},
    lately::Lately,
    member::GroupMember,
    older_answers::OlderAnswers,
    peers::Secret,
    scrub::Counts,
    settle::Unsettled,
    start::Start,
};
use ::blocks::BlockMap;
use base::{BlockId, CallOrigin, Caller, GroupId, Moment};
use bytes::Bytes;
use condition::Condition;
use env::Env;
use leading::Leading;
use namespace::{Context, Namespace, Renewals, lease_watch};
use parked::Parked;
use parking_lot::Mutex;
use queue::{Attempt, Queue, Work};
use serving::{
    RecentEvents, Refusals, Rules, Tree,
    admission::{GroupFacts, Standing},
};
use standby_reads::StandbyReads;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use tokio::sync::{Notify, watch};
use tree_lock::{ReadTree, TreeLock, WriteTree};
use turn::Turn;
use upgrade::Upgrade;

/// A write waiting for its turn. It is dropped if this member does not serve by then.
pub type Write = Box<dyn FnOnce(&mut Turn<'_>) + Send>;

/// See the module's documentation.
pub struct Partition {
    pub env: Env,
    pub config: Arc<MetaConfig>,
    pub cluster: Arc<Cluster>,
    /// Many readers at a time, each on its thread's own shard; one writer for a batch of edits.
    tree: TreeLock,
    pub blocks: Arc<Mutex<BlockMap>>,
    /// The changes that the block map is told when their edits have committed.
    pub unsettled: Arc<Unsettled>,
    pub renewals: Mutex<Renewals>,
    pub commit: Arc<CommitWatch>,
    pub member: GroupMember,
    /// Takes the calls that cannot be answered here.
    pub forwarder: Forwarder,
    /// Takes the calls that other servers of the cluster pass on.
    pub recipient: Option<Recipient>,
    /// Answers that wait for the lease.
    pub leading: Leading,
    /// Reads that are answered here while this member does not lead.
    pub standby_reads: StandbyReads,
    /// The conditions that keep this member from serving although nothing has failed.
    pub condition: Condition,
    /// The level of the group, as far as the rest of this server was told of it.
    pub upgrade: Upgrade,
    /// The group's past takeovers, for operators.
    pub chronicle: Chronicle,
    started: Moment,
    /// How the start of this member went.
    pub start: Start,
    /// `complete` calls that wait for a data server's report.
    pub parked: Parked,
    /// Answers to calls that changed nothing, for late copies of them.
    pub refusals: Mutex<Refusals>,
    queue: Arc<Queue>,
    /// Answers to calls that the retry cache has forgotten.
    pub older_answers: OlderAnswers,
    /// This member's side of the directory log, while it leads.
    pub directories: Directories,
    has_homes: AtomicBool,
    /// Hears of commits, where further groups hold files.
    pub committed: Notify,
    /// Orders of other groups that this group had lost or could not carry out.
    pub orders_left_out: AtomicU64,
    /// Asks the checkpoint thread to write an image now.
    pub checkpoint: Trigger,
    /// The payload of the checkpoint that has committed last of those that another member has made.
    pub checkpoints: watch::Sender<Option<Bytes>>,
    /// Pieces of images that others read from here.
    pub pool_reads: Reads,
    /// The results of scrubbing the store.
    pub scrub: Counts,
    /// How long flushes of the journal took lately.
    pub flushes_lately: Lately,
    /// The image that is being fetched from others.
    pub fetching: Progress,
}

/// The parts of a partition, as recovery has made them.
pub struct Parts {
    pub env: Env,
    pub config: Arc<MetaConfig>,
    pub cluster: Arc<Cluster>,
    pub namespace: Namespace,
    pub blocks: Arc<Mutex<BlockMap>>,
    pub unsettled: Arc<Unsettled>,
    pub commit: Arc<CommitWatch>,
    pub queue: Arc<Queue>,
    pub member: GroupMember,
    pub start: Start,
    /// The events of the entries that the start has applied, if a client watches.
    pub events: Option<RecentEvents>,
}

impl Partition {
    /// `secret` proves calls that are passed on. To be called on a thread of the runtime.
    pub fn new(parts: Parts, secret: Option<&Secret>) -> Self {
        let Parts {
            env,
            config,
            cluster,
            namespace,
            blocks,
            unsettled,
            commit,
            queue,
            member,
            start,
            events,
        } = parts;
        let (now, began) = (env.clock.moment(), env.clock.timestamp());
        let chronicle = Chronicle::open(&env, &config.name_directory).unwrap_or_else(|error| {
            tracing::error!(%error, reason = %error.0, "unclean elections are not counted");
            Chronicle::default()
        });
        let forwarder = forward::of(&config, &cluster, &member, secret.map(Secret::as_bytes));
        let has_homes = namespace.has_homes();
        let recipient = forward::recipient(&cluster, &member, secret.map(Secret::as_bytes));
        let leading = match forwarder.runtime() {
            Some(runtime) => Leading::in_group(runtime.clone(), &config.group),
            None => Leading::default(),
        };
        // Where the coordinator proves each read no lease proves a point.
        let reads_here = config.group.standby_reads && !config.group.confirm_reads && !forwarder.is_alone();
        let standby_reads = match reads_here {
            true => StandbyReads::new(),
            false => StandbyReads::default(),
        };
        Self {
            env,
            config,
            cluster,
            older_answers: OlderAnswers::new(&namespace),
            tree: TreeLock::new(Tree::new(namespace, Rules::default()).with_events(events)),
            blocks,
            unsettled,
            renewals: Mutex::new(Renewals::new(now)),
            commit,
            member,
            forwarder,
            recipient,
            leading,
            standby_reads,
            condition: Condition::default(),
            upgrade: Upgrade::new(began),
            chronicle,
            started: now,
            start,
            parked: Parked::default(),
            refusals: Mutex::default(),
            queue,
            directories: Directories::default(),
            has_homes: AtomicBool::new(has_homes),
            committed: Notify::new(),
            orders_left_out: AtomicU64::new(0),
            checkpoint: Trigger::default(),
            checkpoints: watch::Sender::new(None),
            pool_reads: Reads::default(),
            scrub: Counts::default(),
            flushes_lately: Lately::default(),
            fetching: Progress::default(),
        }
    }

    /// Whether further groups hold files, so that calls have homes.
    pub fn has_homes(&self) -> bool {
        self.has_homes.load(Ordering::Relaxed)
    }

    /// To be called after each change of the tree.
    fn look_for_homes(&self, tree: &Tree) {
        if tree.namespace.has_homes() != self.has_homes() {
            self.has_homes.store(tree.namespace.has_homes(), Ordering::Relaxed);
        }
    }

    /// The namespace, locked for the length of one read. Never across a wait.
    pub fn tree(&self) -> ReadTree<'_> {
        self.tree.read()
    }

    /// Whether this is the pool of the partition's blocks. It has one, as its group has.
    pub fn has_pool(&self, pool: &str) -> bool {
        *self.cluster.block_pool == *pool
    }

    /// The group that has the pool of a block, if it is another one.
    pub fn other_group_of(&self, block: BlockId) -> Option<GroupId> {
        let group = Namespace::group_of_pool(block);
        Some(group).filter(|group| self.has_homes() && *group != self.cluster.group)
    }

    pub fn moment(&self) -> Moment {
        self.env.clock.moment()
    }

    /// Whether all data servers that live have had the time to say what they have.
    pub fn is_settled(&self) -> bool {
        lease_watch::is_settled(self.started, self.moment())
    }

    /// When this server's life began.
    pub fn started(&self) -> Moment {
        self.started
    }

    /// Data servers that have been heard lately.
    pub fn data_servers(&self) -> u32 {
        let limit_ms = HEARTBEATS_MISSED * self.config.blocks.heartbeat_interval_ms;
        self.blocks.lock().heard_within(limit_ms, self.moment())
    }

    /// The caller for the service's own work: the superuser.
    pub fn service_caller(&self) -> Caller {
        let access = &self.config.limits.access;
        Caller::simple(&access.superuser, &[&access.supergroup])
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
            looks: None,
            told: None,
            room: None,
        }
    }

    /// This member as a change meets it. To be asked before [`Partition::write`], while the call can still be refused.
    pub fn standing(&self) -> Standing {
        let (is_stopping, waiting) = self.queue.look();
        Standing {
            is_stopping,
            failure: self.commit.failure(),
            is_serving: self.member.is_serving(),
            waiting,
            waiting_max: self.config.call_queue.write_count_max,
            full_disk: self.condition.full_disk(),
            is_writable: self.member.is_writable(),
        }
    }

    /// The facts about the group that refusals tell.
    pub fn group_facts(&self) -> GroupFacts {
        let view = self.member.status().view;
        let (in_sync, needed) = view.map_or((0, 0), |(view, _)| (view.in_sync.len(), view.in_sync_min));
        GroupFacts { is_alone: self.is_alone(), in_sync, needed }
    }

    /// Whether the group has no other member.
    pub fn is_alone(&self) -> bool {
        self.member.peer_address().is_none()
    }

    /// Queues a write of the service's own. It runs on the writer's thread, in the order of arrival; once the server has
    /// stopped, or when it does not serve by then, it is dropped, and the replies it holds say so.
    pub fn write(&self, write: Write) {
        self.try_write(Box::new(move |turn| {
            if let Some(turn) = turn {
                write(turn);
            }
        }));
    }

    /// Queues a write of the service's own that hears of it when it is dropped: `attempt` is called then, too, and gets no turn.
    pub fn try_write(&self, attempt: Attempt) {
        self.push(None, attempt);
    }

    /// Queues a request for the writer, which gives `attempt` a turn with it. If this member no longer serves by then,
    /// `attempt` is told so and gets no turn, and nothing has happened.
    pub fn attempt(&self, request: InHand, attempt: Attempt) {
        self.push(Some(request), attempt);
    }

    fn push(&self, in_hand: Option<InHand>, attempt: Attempt) {
        if let Err(Work::Attempt(_, attempt)) = self.queue.push(Work::Attempt(in_hand, attempt)) {
            attempt(None);
        }
    }

    pub fn close(&self) {
        self.queue.close();
    }

    /// The namespace, locked for the writer, no longer than a turn.
    pub fn tree_mut(&self) -> WriteTree<'_> {
        self.tree.write()
    }
}

/// A data server that has missed so many heartbeats does not reach this member.
const HEARTBEATS_MISSED: u64 = 3;
