//! The messages between data servers and members, and all else that is under way at data servers.

use base::{Block, BlockId};
use blocks::{Answer, Claim, Increment, Mandate, ReportId, ReportedReplica, SessionKey};
use std::collections::BTreeSet;

/// Which of a data server's processes speaks to which member, in which of their sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The data server, counted from 0.
    pub server: usize,
    /// Its process: a message for an earlier one is void.
    pub life: u64,
    pub seat: usize,
    /// The process's sessions with this member are counted.
    pub number: u64,
}

/// A call of a data server.
#[derive(Clone, Debug)]
pub struct Call {
    pub session: Session,
    /// The calls of a session are counted.
    pub number: u64,
    /// The connection that brings it: one that is made later has a higher number.
    pub connection: u64,
    /// The key of the registration; before there is one it is of no use.
    pub key: SessionKey,
    pub what: Request,
}

#[derive(Clone, Debug)]
pub enum Request {
    Register,
    Heartbeat { wants_lease: bool },
    FullReport { lease: u64, rows: Vec<ReportedReplica> },
    Changes(Vec<Increment>),
}

/// A call whose thread at the member goes on later.
#[derive(Clone, Debug)]
pub enum Rest {
    /// A heartbeat: the claim of the answer was made before.
    Heartbeat(Claim),
    /// A full report of which so many rows are taken.
    FullReport(ReportId, usize),
}

#[derive(Clone, Debug)]
pub enum Reply {
    Registered(SessionKey),
    /// To a heartbeat. With it go those of the blocks that shall be deleted that a file had when the order was given.
    Answered(Answer, BTreeSet<BlockId>),
    Taken,
    /// The data server is told to register again.
    Unregistered,
    Failed,
}

/// Something that happens at a data server, or at a member for the sake of data servers.
#[derive(Clone, Debug)]
pub enum Event {
    Start {
        server: usize,
    },
    /// The next heartbeat is due.
    Beat(Session),
    /// The loop of reports looks whether something is to be told.
    Turn(Session),
    /// A session has failed, and another is begun.
    Begin(Session),
    Answer {
        session: Session,
        number: u64,
        reply: Reply,
    },
    /// Nothing was heard for too long.
    Timeout {
        session: Session,
        number: u64,
    },
    /// A client's call has given it a block: it begins to write a replica, and ends.
    Writing {
        server: usize,
        life: u64,
        block: Block,
    },
    Written {
        server: usize,
        life: u64,
        block: Block,
        client: usize,
        call: u32,
    },
    /// A copy of a block has gone from one data server to another.
    Copied {
        from: (usize, u64),
        to: (usize, u64),
        block: Block,
    },
    /// A replica is deleted, if the order's mandate still stands and the session in which it came goes on: before a data server begins
    /// another session it has carried out all orders, or dropped them. `is_needed`: a file had the block when the order was given.
    Delete {
        session: Session,
        mandate: Mandate,
        block: Block,
        is_needed: bool,
    },
    /// The files of a deleted replica are gone.
    Removed {
        server: usize,
        life: u64,
        block: BlockId,
    },
    /// A member gives its block map the time.
    Tick {
        seat: usize,
        life: u64,
    },
    /// The pipeline of a client's block has come to its end.
    PipelineEnded {
        client: usize,
        call: u32,
    },
}
