//! The state that the threads of a member share.

use super::{
    OrderDone, Standing, Writer, disk_queue::DiskQueue, inbox::Inbox, reader::Reader, room::Room,
    timer::Timer,
};
use crate::{
    commit::CommitWatch,
    ended::Ended,
    fatal::Fatal,
    peers::{Peers, letter::Letter},
    points::{self, Point},
    settle::Unsettled,
    watch::Threads,
    watchers::Watchers,
};
use base::{Epoch, GroupId, MemberId, MemberStore, Moment};
use coord::{Coordinator, MemberRecord};
use env::Env;
use group::{Member, Message, Restored, Role};
use journal::Journal;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::sync::watch;

/// The parts of a member.
pub struct Parts {
    pub env: Env,
    pub group: GroupId,
    pub me: MemberStore,
    pub settings: group::Settings,
    /// Whether connections that are refused, right after one was closed, are taken for the end of a member's process.
    pub trusts_refused_connections: bool,
    pub restored: Restored,
    pub journal: Journal,
    pub coordinator: Arc<dyn Coordinator>,
    pub commit: Arc<CommitWatch>,
    /// The changes that the block map is told at each commit, before the calls that wait for it are answered.
    pub unsettled: Arc<Unsettled>,
    pub writer: Arc<dyn Writer>,
    pub threads: Arc<Threads>,
    pub fatal: Arc<Fatal>,
}

pub struct Shared {
    pub env: Env,
    pub group: GroupId,
    pub me: MemberStore,
    pub settings: group::Settings,
    pub trusts_refused_connections: bool,
    pub member: Mutex<Member>,
    pub inbox: Inbox,
    pub disk: DiskQueue,
    pub timer: Timer,
    pub reader: Reader,
    pub room: Room,
    pub journal: Journal,
    /// How long entries take from here to the disk.
    pub flushes: measures::Times,
    pub coordinator: Arc<dyn Coordinator>,
    pub commit: Arc<CommitWatch>,
    pub unsettled: Arc<Unsettled>,
    pub writer: Arc<dyn Writer>,
    pub watched: Arc<Threads>,
    pub fatal: Arc<Fatal>,
    pub watchers: Watchers,
    /// The connections to the other members; not set in a group of one.
    pub peers: OnceLock<Peers>,
    /// This member's own record.
    pub own_record: OnceLock<MemberRecord>,
    /// The members' records, as last read.
    pub records: Mutex<BTreeMap<MemberId, MemberRecord>>,
    pub standing: watch::Sender<Standing>,
    /// The epoch and the leader as the member itself knows them; changed under its lock.
    pub leader: Mutex<(Epoch, Option<MemberId>)>,
    /// Published as serving and not deposed since.
    pub is_serving: AtomicBool,
    /// Published as answering what is certain although too few are in sync.
    pub is_reading: AtomicBool,
    /// Until when others have promised to make no claim; 0 when this member does not serve.
    pub lease_end_ns: AtomicU64,
    /// The server stops: it rests on no lease any more.
    pub has_given_up_lease: AtomicBool,
    /// Whether enough members are in sync for entries to commit.
    pub is_writable: AtomicBool,
    pub epoch: AtomicU64,
    /// The server is being shut down: the conversation with the others has ended.
    pub is_stopping: AtomicBool,
    /// Set before `ended` is: commits are not told any more.
    pub is_ending: AtomicBool,
    pub ended: watch::Sender<Option<Ended>>,
    pub needs_image: watch::Sender<bool>,
    /// A member lacks what is gone from the log here: an image of this entry or a later one is needed. 0: no member
    /// needs one.
    pub image_wanted: AtomicU64,
    /// This member's state is another than that of a majority.
    pub differs: Mutex<Option<String>>,
    pub tickets: Mutex<BTreeMap<u64, OrderDone>>,
    pub ticket_count: AtomicU64,
    pub view_reads: AtomicU64,
    /// When the known commit was last written.
    pub persisted_at: Mutex<Moment>,
    /// Since when the coordinator is out of reach, as far as it is known.
    pub coordinator_lost: Mutex<Option<Moment>>,
    /// Whether the coordinator's lock is held, as far as this side knows.
    pub holds_lock: Mutex<bool>,
}

impl Shared {
    pub fn new(parts: Parts) -> Self {
        let Parts {
            env,
            group,
            me,
            settings,
            trusts_refused_connections,
            restored,
            journal,
            coordinator,
            commit,
            unsettled,
            writer,
            threads,
            fatal,
        } = parts;
        let promised = restored.promised;
        let now = env.clock.moment();
        let member = Member::new(settings, me, restored, now, env.random.next_u64());
        Self {
            group,
            me,
            settings,
            trusts_refused_connections,
            member: Mutex::new(member),
            inbox: Inbox::default(),
            disk: DiskQueue::default(),
            timer: Timer::default(),
            reader: Reader::default(),
            room: Room::default(),
            journal,
            flushes: measures::Times::default(),
            coordinator,
            commit,
            unsettled,
            writer,
            watched: threads,
            fatal,
            watchers: Watchers::default(),
            peers: OnceLock::new(),
            own_record: OnceLock::new(),
            records: Mutex::new(BTreeMap::new()),
            standing: watch::Sender::new(Standing { role: Role::Following, epoch: promised, active: None }),
            leader: Mutex::new((promised, None)),
            is_serving: AtomicBool::new(false),
            is_reading: AtomicBool::new(false),
            lease_end_ns: AtomicU64::new(0),
            has_given_up_lease: AtomicBool::new(false),
            is_writable: AtomicBool::new(false),
            epoch: AtomicU64::new(promised.0),
            is_stopping: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            ended: watch::Sender::new(None),
            needs_image: watch::Sender::new(false),
            image_wanted: AtomicU64::new(0),
            differs: Mutex::new(None),
            tickets: Mutex::new(BTreeMap::new()),
            ticket_count: AtomicU64::new(1),
            view_reads: AtomicU64::new(0),
            persisted_at: Mutex::new(now),
            coordinator_lost: Mutex::new(None),
            holds_lock: Mutex::new(false),
            env,
        }
    }

    /// Until when no other member can be elected. A member for whom there is no other may answer as long as it runs.
    pub fn lease_end(&self) -> Moment {
        let end = Moment { ns: self.lease_end_ns.load(Ordering::Acquire) };
        let counts = end.ns == u64::MAX || !self.has_given_up_lease.load(Ordering::Acquire);
        if counts { end } else { Moment::default() }
    }

    /// The epoch in which this member led last.
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// A beacon or a grant says that this member lives, and is not sent when nobody vouches for its threads.
    pub fn send(&self, to: MemberId, message: Message) {
        let says_it_lives = matches!(message, Message::Beacon { .. } | Message::Grant { .. });
        if says_it_lives && !self.watched.may_speak(self.env.clock.moment()) {
            return;
        }
        if points::is_lost(
            Point::LogSent,
            || matches!(&message, Message::Append(append) if !append.entries.is_empty()),
        ) {
            return;
        }
        if let Some(peers) = self.peers.get() {
            peers.send(to, message);
        }
    }

    /// A member that was away may not know.
    pub fn tell_fatal_requests(&self, to: MemberId) {
        if let Some((peers, text)) = self.peers.get().zip(self.fatal.text()) {
            peers.send(to, Letter::FatalRequests(text));
        }
    }

    /// A member that was away may not know.
    pub fn tell_watched(&self, to: MemberId) {
        let left_ms = self.watchers.left_ms(self.env.clock.moment());
        if let Some((peers, left_ms)) = self.peers.get().zip(left_ms) {
            peers.send(to, Letter::Watched { left_ms });
        }
    }

    /// About once a second.
    pub fn persist_due(&self) -> bool {
        let now = self.env.clock.moment();
        let mut at = self.persisted_at.lock();
        let is_due = now.ms_since(*at) >= 1_000;
        if is_due {
            *at = now;
        }
        is_due
    }
}
