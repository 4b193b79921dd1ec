//! The length that a recovery settles on, and who takes it: the rule that loses data if it is wrong.
//!
//! It is Hadoop's (`BlockRecoveryWorker`): a finished replica settles the length. Otherwise it is the shortest of those in
//! the best state: all bytes that were acknowledged are on all of them. Some things are added, since without them bytes are lost
//! or a recovery never ends:
//!
//! - A block is deleted only if nobody can have a byte that was acknowledged ([`without_bytes`]). Hadoop deletes it if
//!   those that answer have none.
//! - A finished replica settles nothing if another one has been written on under its stamp: it has missed an append.
//! - A replica that is shorter than the metadata service knows the block to be counts only if there is none that is not.
//! - Finished replicas may have different lengths if their stamps differ: an earlier recovery died half-way.

use base::{Block, BlockId, Candidate, GenerationStamp, ReplicaState};
use std::sync::Arc;
use thiserror::Error;

/// An order of the metadata service: the block to recover, and the servers that may have it.
#[derive(Clone, Debug)]
pub struct RecoveryOrder {
    /// The block with the stamp that its replicas have at least, and the bytes that the metadata service knows of.
    pub block: Block,
    /// The stamp that the block gets. Grows with each recovery.
    pub stamp: GenerationStamp,
    /// The length in bytes that a truncation leaves. The servers' lengths do not matter then.
    pub truncation: Option<u64>,
    /// The id of the block that results: another one than that of `block` if its first bytes are copied.
    pub target: BlockId,
    /// The uuids of the servers that may have a replica. They are spoken of by their places in this list.
    pub servers: Vec<Arc<str>>,
}

/// The answer of one server of the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The server has not answered yet.
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

/// Decides by the answers so far. At least one server must have answered.
pub fn settle(order: &RecoveryOrder, answers: &[Answer]) -> Result<Decision, RecoveryError> {
    let members = usable(order, answers);
    let (finished, unfinished): (Vec<Member>, Vec<Member>) =
        members.iter().partition(|(_, found)| found.state == ReplicaState::Finalized);
    let is_outgrown = |member: &Member| unfinished.iter().any(|other| outgrows(order, &other.1, &member.1));
    let standing: Vec<Member> = finished.into_iter().filter(|member| !is_outgrown(member)).collect();
    if let Some(length) = finished_length(&standing)? {
        return Ok(follow_finished(order, &members, length));
    }
    let Some(best) = unfinished.iter().map(|(_, found)| found.state).min() else {
        return without_bytes(order, answers);
    };
    let of_best = || unfinished.iter().filter(|(_, found)| found.state == best);
    let shortest = of_best().map(|(_, found)| found.block.length).min().expect("one is in the best state");
    let servers = of_best().map(|(server, _)| *server).collect();
    Ok(Decision::Agree { length: order.truncation.unwrap_or(shortest), servers })
}

/// Whether `other` was written on after `finished` was. Only an append that keeps the stamp does so; where the finished
/// replica has the stamp of a recovery, the other one is longer because that recovery has not cut it.
fn outgrows(order: &RecoveryOrder, other: &Candidate, finished: &Candidate) -> bool {
    order.truncation.is_none()
        && finished.block.generation_stamp == order.block.generation_stamp
        && finished.block.length < other.block.length
}

/// The length of the finished replicas, if there are any. Where recoveries that did not come to an end have left several,
/// that of the newest counts: each had heard of all that was acknowledged.
fn finished_length(finished: &[Member]) -> Result<Option<u64>, RecoveryError> {
    let newest = finished.iter().map(|(_, found)| found.block.generation_stamp).max();
    let of_newest = finished.iter().filter(|(_, found)| Some(found.block.generation_stamp) == newest);
    let mut lengths = of_newest.map(|(_, found)| found.block.length);
    let Some(length) = lengths.next() else { return Ok(None) };
    match lengths.find(|other| *other != length) {
        Some(other) => Err(RecoveryError::LengthsDiffer(length.min(other), length.max(other))),
        None => Ok(Some(length)),
    }
}

/// Finished replicas settle the length; those that are being written and are as long take part.
fn follow_finished(order: &RecoveryOrder, members: &[Member], length: u64) -> Decision {
    let is_cut = |found: u64| order.truncation.is_some_and(|truncated| truncated <= found);
    let takes_part = |(_, found): &&Member| match found.state {
        // A truncation that did not come to an end has cut some of them, and not the others.
        ReplicaState::Finalized => found.block.length == length || is_cut(found.block.length),
        ReplicaState::BeingWritten => found.block.length == length,
        _ => false,
    };
    let servers = members.iter().filter(takes_part).map(|(server, _)| *server).collect();
    Decision::Agree { length: order.truncation.unwrap_or(length), servers }
}

/// The replicas with the bytes that a client wrote, as far as they have been acknowledged.
fn usable(order: &RecoveryOrder, answers: &[Answer]) -> Vec<Member> {
    let is_usable = |(_, found): &Member| {
        found.block.length > 0
            && found.state <= ReplicaState::WaitingRecovery
            && found.block.generation_stamp >= order.block.generation_stamp
    };
    let mut members: Vec<Member> = found(answers).filter(is_usable).collect();
    // A replica that is shorter than the metadata service knows the block to be has lost bytes, or has missed some. A truncation
    // that did not come to an end leaves shorter ones too.
    let is_whole = |(_, found): &Member| found.block.length >= order.block.length;
    if order.truncation.is_none() && members.iter().any(is_whole) {
        members.retain(is_whole);
    }
    members
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
    // A client that truncates, appends or syncs tells the metadata service of bytes that all servers had.
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
