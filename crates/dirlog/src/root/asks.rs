//! What an ordered operation asks of homes, what they tell, and what becomes of its plan.

use crate::{Mark, OpId};
use base::GroupId;
use bytes::Bytes;

/// What one home is to tell, and to leave as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AskOf {
    pub group: GroupId,
    /// To be held there.
    pub marks: Vec<Mark>,
    pub body: Bytes,
}

/// What a home has told, and holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fact {
    pub group: GroupId,
    pub body: Bytes,
}

/// An operation whose facts are all in hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Planning {
    pub op: OpId,
    pub facts: Vec<Fact>,
}

/// What became of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "an entry is to be appended, and a plan that does not stand must not be applied"]
pub enum Decided<T> {
    /// It stands: the entry is to be appended to the root group's log now, or the refusal may be answered.
    Stands(T),
    /// Facts on which it rests are void: homes are asked anew, and nothing of it has happened.
    AskedAnew,
}

/// Too many operations wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;
