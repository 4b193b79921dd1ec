//! A data server: its replicas, whom it obeys, and its session with each member.
//!
//! Whom it obeys is decided by [`blocks::Leadership`], which ships. The order of its messages is that of `datad`: the news is
//! forgotten when a session begins, a full report is taken after the answer that allows it, and news goes before it.

use super::words::{Request, Session};
use base::{Block, BlockId, GenerationStamp};
use blocks::{Increment, Leadership, ReplicaState, ReportedReplica, Rules, SessionKey};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    pub block: Block,
    pub state: ReplicaState,
}

pub struct DataServer {
    /// Rises with each process.
    pub life: u64,
    pub is_running: bool,
    pub is_paused: bool,
    pub replicas: BTreeMap<BlockId, Replica>,
    /// Replicas that are deleted, and whose files are there yet: a crash brings them back.
    pub removing: BTreeMap<BlockId, Replica>,
    pub leadership: Leadership,
    /// The highest epoch in which a member has called itself active to this process. The checks judge by it.
    pub heard_epoch: u64,
    /// One for each member.
    pub links: Vec<Link>,
}

/// How far a session with a member has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Registering,
    /// Registered; the first full report is not taken yet.
    Introducing,
    Serving,
}

pub struct Link {
    pub session: u64,
    pub phase: Phase,
    pub key: SessionKey,
    /// The connection on which the next call goes out. There is another after each call that was given up.
    pub connection: u64,
    /// What the member has not been told yet.
    pub news: Vec<Increment>,
    pub wants_full: bool,
    /// When everything is told anew, in any case.
    pub full_due_ns: u64,
    /// When it is looked next whether something is to be told.
    pub turn_at_ns: Option<u64>,
    /// The calls whose answers are awaited: one of the loop of heartbeats, and one of the loop of reports.
    pub beat: Option<u64>,
    pub turn: Option<(u64, Request)>,
    pub calls: u64,
}

impl Link {
    fn new(session: u64, connection: u64, news: Vec<Increment>) -> Self {
        Self {
            session,
            connection,
            phase: Phase::Registering,
            key: SessionKey([0; SessionKey::BYTES]),
            news,
            wants_full: false,
            full_due_ns: 0,
            turn_at_ns: None,
            beat: None,
            turn: None,
            calls: 0,
        }
    }
}

impl DataServer {
    pub fn new(members: usize, rules: Rules) -> Self {
        Self {
            life: 0,
            is_running: false,
            is_paused: false,
            replicas: BTreeMap::new(),
            removing: BTreeMap::new(),
            leadership: Leadership::new(rules),
            heard_epoch: 0,
            links: (0..members).map(|_| Link::new(0, 0, Vec::new())).collect(),
        }
    }

    /// A process begins. What was being written is left unfinished.
    pub fn start(&mut self, rules: Rules) {
        self.life += 1;
        (self.is_running, self.is_paused) = (true, false);
        self.leadership = Leadership::new(rules);
        self.heard_epoch = 0;
        let removing = std::mem::take(&mut self.removing);
        self.replicas.extend(removing);
        for replica in self.replicas.values_mut() {
            if replica.state == ReplicaState::BeingWritten {
                replica.state = ReplicaState::WaitingRecovery;
            }
        }
        for link in &mut self.links {
            *link = Link::new(0, link.connection + 1, Vec::new());
        }
    }

    /// Whether this session goes on.
    pub fn is_current(&self, session: Session) -> bool {
        self.is_running && self.life == session.life && self.links[session.seat].session == session.number
    }

    /// Another session with a member. The news stays until it is registered.
    pub fn begin_session(&mut self, seat: usize) {
        let link = &mut self.links[seat];
        let news = std::mem::take(&mut link.news);
        *link = Link::new(link.session + 1, link.connection, news);
    }

    pub fn session(&self, server: usize, seat: usize) -> Session {
        Session { server, life: self.life, seat, number: self.links[seat].session }
    }

    pub fn tell_all(&mut self, news: &Increment) {
        for link in &mut self.links {
            link.news.push(news.clone());
        }
    }

    /// The rows of a full report.
    pub fn rows(&self) -> Vec<ReportedReplica> {
        self.replicas.values().map(|it| ReportedReplica { block: it.block, state: it.state }).collect()
    }

    /// A finished replica of exactly this block.
    pub fn has_good(&self, block: &Block) -> bool {
        let found = self.replicas.get(&block.id);
        found.is_some_and(|it| it.state == ReplicaState::Finalized && it.block == *block)
    }

    /// As `blockstore` does: a replica with another stamp stays. The files go a little later.
    pub fn invalidate(&mut self, id: BlockId, stamp: GenerationStamp) -> Option<Replica> {
        let replica = *self.replicas.get(&id).filter(|it| it.block.generation_stamp == stamp)?;
        self.replicas.remove(&id);
        self.removing.insert(id, replica);
        Some(replica)
    }
}
