//! The length that a recovery settles on, and who takes it: the rule that loses data if it is wrong.
//!
//! Hadoop's rule (`BlockRecoveryWorker`): a finished replica settles the length. Otherwise it is the shortest of those in
//! the best state: whatever was acknowledged is on all of them.

use base::{Block, BlockId, Candidate, GenerationStamp, ReplicaState};
use std::sync::Arc;
use thiserror::Error;

/// What the metadata service wants done, and where.
#[derive(Clone, Debug)]
pub struct RecoveryOrder {
    /// The block with the stamp that its replicas have at least, and the bytes that the metadata service knows of.
    pub block: Block,
    /// The stamp that the block gets. Grows with each recovery.
    pub stamp: GenerationStamp,
    /// The bytes that a truncation leaves, whatever the servers have.
    pub truncation: Option<u64>,
    /// The id of the block that results: another one than that of `block` if its first bytes are copied.
    pub target: BlockId,
    /// The uuids of the servers that may have a replica. They are spoken of by their places in this list.
    pub servers: Vec<Arc<str>>,
}

/// What one server of the order has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has not spoken yet.
    Awaited,
    /// Named twice in the order: it is asked once.
    Twin,
    Unknown,
    Nothing,
    Has(Candidate),
}

/// Why a block is not recovered this time. The metadata service orders it again.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RecoveryError {
    #[error("no server of the block answered; the last said: {0}")]
    NobodyAnswered(String),
    #[error("{0} of its replicas were found, all of them still being copied in, or of an older stamp")]
    OnlyCopies(usize),
    #[error("finished replicas have different lengths, {0} and {1}")]
    LengthsDiffer(u64, u64),
    #[error("a newer recovery is under way: {0}")]
    Superseded(String),
    #[error("no server that answered has a byte of it, and {0} did not say what they have")]
    MayBeElsewhere(usize),
    #[error("it is known to have {0} bytes, and no server has any of them")]
    NothingLeft(u64),
    #[error("no server took the agreed length; the last said: {0}")]
    NobodyFinished(String),
}

/// The place of a server in the order, and its replica.
type Member = (usize, Candidate);

pub enum Decision {
    /// The bytes that the block gets, and the servers that take it.
    Agree {
        length: u64,
        servers: Vec<usize>,
    },
    Delete,
}

pub type Rule = fn(&RecoveryOrder, &[Answer]) -> Result<Decision, RecoveryError>;

/// At least one server has answered.
pub fn settle(order: &RecoveryOrder, answers: &[Answer]) -> Result<Decision, RecoveryError> {
    let members = usable(order, answers);
    let Some(best) = members.iter().map(|(_, found)| found.state).min() else {
        return without_bytes(order, answers);
    };
    let lengths =
        || members.iter().filter(|(_, found)| found.state == best).map(|(_, found)| found.block.length);
    let shortest = lengths().min().expect("one is in the best state");
    if best == ReplicaState::Finalized
        && let Some(other) = lengths().find(|length| *length != shortest)
    {
        return Err(RecoveryError::LengthsDiffer(shortest, other));
    }
    let takes_part = |(_, found): &&Member| {
        let is_as_good = best == ReplicaState::Finalized
            && found.state == ReplicaState::BeingWritten
            && found.block.length == shortest;
        found.state == best || is_as_good
    };
    let servers = members.iter().filter(takes_part).map(|(server, _)| *server).collect();
    Ok(Decision::Agree { length: order.truncation.unwrap_or(shortest), servers })
}

/// The replicas with the bytes that a client wrote, as far as they have been acknowledged.
fn usable(order: &RecoveryOrder, answers: &[Answer]) -> Vec<Member> {
    let is_usable = |found: &&Candidate| {
        found.block.length > 0
            && found.state <= ReplicaState::WaitingRecovery
            && found.block.generation_stamp >= order.block.generation_stamp
    };
    found(answers).filter(|(_, found)| is_usable(&found)).collect()
}

fn found(answers: &[Answer]) -> impl Iterator<Item = Member> {
    answers.iter().enumerate().filter_map(|(server, answer)| match answer {
        Answer::Has(found) => Some((server, *found)),
        _ => None,
    })
}

/// No replica is usable. The block goes away if no byte of it can have been acknowledged; where that is not sure it
/// stays, and is recovered when more servers answer.
///
/// # Errors
/// [`RecoveryError::OnlyCopies`], [`RecoveryError::NothingLeft`], [`RecoveryError::MayBeElsewhere`].
fn without_bytes(order: &RecoveryOrder, answers: &[Answer]) -> Result<Decision, RecoveryError> {
    // A copy under way shows that another server has the block. An old stamp shows that a newer one was given out.
    let with_bytes = found(answers).filter(|(_, found)| found.block.length > 0).count();
    if with_bytes > 0 {
        return Err(RecoveryError::OnlyCopies(with_bytes));
    }
    // Who truncates, appends or syncs tells the metadata service of bytes that all servers had.
    if order.block.length > 0 || order.truncation.is_some() || order.target != order.block.id {
        return Err(RecoveryError::NothingLeft(order.block.length));
    }
    // All servers of a pipeline have a byte before it is acknowledged, this one too; and it was not restarted since.
    let is_open_and_empty = |found: Candidate| {
        found.state == ReplicaState::BeingWritten
            && found.block.generation_stamp >= order.block.generation_stamp
    };
    let silent = answers.iter().filter(|answer| matches!(answer, Answer::Awaited | Answer::Unknown)).count();
    if silent > 0 && !found(answers).any(|(_, found)| is_open_and_empty(found)) {
        return Err(RecoveryError::MayBeElsewhere(silent));
    }
    Ok(Decision::Delete)
}
