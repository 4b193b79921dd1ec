//! Block recovery: a block's writer is gone, and the servers that have replicas of it settle its length.
//!
//! The metadata service orders one data server to see to it. That one asks each server of the block, itself included,
//! to begin ([`BlockRecovery`]): from then on nobody else may change the replica there. It picks a length
//! ([`BlockRecovery::decide`]), has each participant take it ([`Agreement`]), and tells the metadata service
//! ([`Commit`]). If it dies half-way, the metadata service orders another one with a higher stamp, which takes over.
//!
//! However servers die, **no byte is lost that was acknowledged to the writer**, which means that all servers of
//! its pipeline had it; and all replicas that count afterwards have the same bytes. Which length keeps this promise is
//! decided by `recovery/rule.rs`, in one place and without I/O.

mod rule;

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;

pub use rule::{RecoveryError, RecoveryOrder};

use base::{Block, Candidate};
use rule::Answer;
use thiserror::Error;

/// Why a server did not say what it has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// A recovery with the same stamp or a higher one has begun there.
    #[error("{0}")]
    Superseded(String),
    /// The server cannot be reached, or refuses: which replica it has is not known.
    #[error("{0}")]
    Unknown(String),
}

/// A recovery while its servers are asked what they have.
#[derive(Debug)]
pub struct BlockRecovery {
    order: RecoveryOrder,
    /// The answers of the servers, in the order in which the recovery's order names them.
    answers: Vec<Answer>,
    superseded: Option<String>,
    last_failure: String,
}

/// The decision on the answers.
#[derive(Debug)]
pub enum Outcome {
    Agreed(Agreement),
    /// No byte of the block can have been acknowledged, and none is there: it goes away.
    Delete,
}

/// A server that shall take the agreed length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participant {
    /// Its place in the order.
    pub server: usize,
    /// The replica as the server told of it.
    pub replica: Block,
}

/// A length that was agreed on, while its participants take it.
#[derive(Debug)]
pub struct Agreement {
    length: u64,
    /// Each with the storage that has the finished replica, once that is known.
    participants: Vec<(Participant, Option<Result<String, String>>)>,
}

/// The outcome that the metadata service is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The bytes of the block from now on.
    pub length: u64,
    /// The block has no byte and goes away.
    pub delete: bool,
    /// The servers that have taken the length, by their places in the order, each with the id of its storage.
    pub finished: Vec<(usize, String)>,
}

impl BlockRecovery {
    pub fn new(order: RecoveryOrder) -> Self {
        let is_twin = |place: usize| order.servers[..place].contains(&order.servers[place]);
        let answers = (0..order.servers.len())
            .map(|place| if is_twin(place) { Answer::Twin } else { Answer::Awaited })
            .collect();
        Self { order, answers, superseded: None, last_failure: "nobody is said to have it".into() }
    }

    /// The next server to be asked. `None` when all have answered, and as soon as one has said that a newer recovery
    /// is under way: then the others are left to that one.
    pub fn ask(&self) -> Option<usize> {
        let awaited = self.answers.iter().position(|answer| *answer == Answer::Awaited);
        awaited.filter(|_| self.superseded.is_none())
    }

    /// A server has answered: with its replica, with `None` if it has no such replica, or not at all. Its first answer
    /// counts; what it says again, or what was not asked, changes nothing.
    pub fn answered(&mut self, server: usize, answer: Result<Option<Candidate>, Failure>) {
        let Some(place) = self.answers.get_mut(server).filter(|known| **known == Answer::Awaited) else {
            return;
        };
        *place = match answer {
            Ok(Some(candidate)) => Answer::Has(candidate),
            Ok(None) => Answer::Nothing,
            Err(failure) => {
                self.last_failure = failure.to_string();
                if let Failure::Superseded(reason) = failure {
                    self.superseded.get_or_insert(reason);
                }
                Answer::Unknown
            }
        };
    }

    /// Decides by what was heard. A server that has not answered by now takes no part.
    ///
    /// # Errors
    /// [`RecoveryError::Superseded`] if a newer recovery is under way; [`RecoveryError::NobodyAnswered`];
    /// [`RecoveryError::LengthsDiffer`] if replicas of different lengths are finished. Where no replica can be used, and the
    /// block may have bytes all the same: [`RecoveryError::OnlyCopies`] if replicas are being copied in from elsewhere,
    /// [`RecoveryError::NothingLeft`] if the metadata service knows of bytes, [`RecoveryError::MayBeElsewhere`] if some
    /// servers did not say what they have.
    pub fn decide(self) -> Result<Outcome, RecoveryError> {
        self.decide_by(rule::settle)
    }

    fn decide_by(self, rule: rule::Rule) -> Result<Outcome, RecoveryError> {
        if let Some(reason) = self.superseded {
            return Err(RecoveryError::Superseded(reason));
        }
        let is_answer = |answer: &Answer| matches!(answer, Answer::Nothing | Answer::Has(_));
        if !self.answers.iter().any(is_answer) {
            return Err(RecoveryError::NobodyAnswered(self.last_failure));
        }
        let decision = rule(&self.order, &self.answers)?;
        Ok(match decision {
            rule::Decision::Delete => Outcome::Delete,
            rule::Decision::Agree { length, servers } => {
                let participant = |(server, answer): (usize, &Answer)| match answer {
                    Answer::Has(found) if servers.contains(&server) => {
                        Some((Participant { server, replica: found.block }, None))
                    }
                    _ => None,
                };
                let participants = self.answers.iter().enumerate().filter_map(participant).collect();
                Outcome::Agreed(Agreement { length, participants })
            }
        })
    }
}

impl Agreement {
    /// The bytes that the block shall have.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The servers that shall take the length.
    pub fn participants(&self) -> Vec<Participant> {
        self.participants.iter().map(|(participant, _)| *participant).collect()
    }

    /// A participant has taken the length, and names the storage that has the finished replica; or it has not, and
    /// says why. Its first word counts, and nobody else's.
    pub fn finished(&mut self, server: usize, result: Result<String, String>) {
        let of_server = self.participants.iter_mut().find(|(participant, _)| participant.server == server);
        if let Some((_, word @ None)) = of_server {
            *word = Some(result);
        }
    }

    /// The outcome that the metadata service is told. The replicas of those that have not taken the length do not count any more.
    ///
    /// # Errors
    /// [`RecoveryError::NobodyFinished`] if no participant has taken the length: then nothing may be told.
    pub fn commit(self) -> Result<Commit, RecoveryError> {
        let mut finished = Vec::new();
        let mut last_error = String::from("nobody was told of it");
        for (participant, word) in self.participants {
            match word {
                Some(Ok(storage)) => finished.push((participant.server, storage)),
                Some(Err(error)) => last_error = error,
                None => {}
            }
        }
        if finished.is_empty() {
            return Err(RecoveryError::NobodyFinished(last_error));
        }
        Ok(Commit { length: self.length, delete: false, finished })
    }
}

impl Commit {
    /// The block has no byte on any server, and goes away.
    pub fn deletion() -> Self {
        Self { length: 0, delete: true, finished: Vec::new() }
    }
}
