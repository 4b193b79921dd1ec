//! The next step of a request for a change. Most requests take one step, an edit or an answer. Some take several, and the
//! order of these is decided here and in the plans alone: a driver takes the step that it is told, and asks for the next.

use crate::{
    Edit, Planned, Reply,
    ops::{
        add_block::{self, NewBlock},
        complete,
        release_lease::{self, Freeing, Recovery},
        truncate::{self, Cutting},
    },
};
use base::{Block, FsError, FsResult};

/// The decision on a request, as the tree is now.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The request's own edit. Applying it gives the answer.
    Edit(Edit),
    /// The request's own edit, for which data servers are chosen first. If too few are found it is dropped.
    Allocate(Edit, NewBlock),
    /// The request's own edit. Once it is applied the data servers are to cut the last block of a file.
    Cut(Edit, Cutting),
    /// Nothing is to be changed: this is the answer.
    NoChange(Reply),
    /// An edit of the service comes first. Once it is applied the request is planned again.
    First(Edit),
    /// The request is refused, but this edit of the service keeps a part of what it said.
    Refused(Edit, FsError),
    /// A block of a file is to be recovered, unless its recovery is under way. The answer does not wait for the end of that.
    Recover(Recovery, FsResult<Reply>),
    /// Replicas of this block have still to be reported. When one is, the request is planned again. The answer to a call that
    /// waits no longer is false.
    Wait(Block),
}

impl From<Planned> for Step {
    fn from(planned: Planned) -> Self {
        match planned {
            Planned::Edit(edit) => Self::Edit(edit),
            Planned::NoChange(reply) => Self::NoChange(reply),
        }
    }
}

impl From<add_block::Plan> for Step {
    fn from(plan: add_block::Plan) -> Self {
        match plan {
            add_block::Plan::New { edit, block } => Self::Allocate(edit, block),
            add_block::Plan::Again(reply) => Self::NoChange(reply),
            add_block::Plan::Refused { edit, error } => Self::Refused(edit, error),
        }
    }
}

impl From<complete::Plan> for Step {
    fn from(plan: complete::Plan) -> Self {
        match plan {
            complete::Plan::Close(edit) => Self::Edit(edit),
            complete::Plan::Already => Self::NoChange(Reply::Bool(true)),
            complete::Plan::Waiting(block) => Self::Wait(block),
        }
    }
}

impl From<truncate::Plan> for Step {
    fn from(plan: truncate::Plan) -> Self {
        match plan {
            truncate::Plan::AtOnce(edit) => Self::Edit(edit),
            truncate::Plan::Cut(edit, cutting) => Self::Cut(edit, cutting),
            truncate::Plan::NoChange(reply) => Self::NoChange(reply),
        }
    }
}

/// As the answer to a client that asks for it: is the file closed?
impl From<release_lease::Plan> for Step {
    fn from(plan: release_lease::Plan) -> Self {
        match plan {
            release_lease::Plan::Closed => Self::NoChange(Reply::Bool(true)),
            release_lease::Plan::Close(edit) => Self::Edit(edit),
            release_lease::Plan::Recover(recovery) => Self::Recover(recovery, Ok(Reply::Bool(false))),
            // The client asks again.
            release_lease::Plan::Waiting(_) => Self::NoChange(Reply::Bool(false)),
        }
    }
}

impl<P: Into<Self>> From<Freeing<P>> for Step {
    fn from(freeing: Freeing<P>) -> Self {
        match freeing {
            Freeing::Free(plan) => plan.into(),
            Freeing::Close(edit) => Self::First(edit),
            Freeing::Recover(recovery, refusal) => Self::Recover(recovery, Err(refusal)),
        }
    }
}
