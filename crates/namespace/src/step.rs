//! The next step of a request for a change. Most requests take one step, an edit or an answer. Some take several, and the
//! order of these is decided here and in the plans alone: a driver takes the step that it is told, and asks for the next.

use crate::{
    Reply,
    edit::{Edit, Planned},
    looks::Question,
    ops::{
        add_block::{self, AddBlockEdit, NewBlock},
        allot::AllotEdit,
        complete::{self, CompleteEdit},
        create::{self, CreateEdit},
        fsync::FsyncEdit,
        mkdirs::MkdirsEdit,
        move_file::MoveFileEdit,
        release_lease::{self, Freeing, Recovery},
        rename::{self, RenameEdit},
        set_quota::{self, SetQuotaEdit},
        truncate::{self, Cutting, TruncateEdit},
        truncate_copy::TruncateCopyEdit,
    },
};
use base::{Block, FsError, FsResult};

/// The decision on a request, as the tree is now. `E` stands for the edits of all kinds.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<E> {
    /// The request's own edit. Applying it gives the answer.
    Edit(E),
    /// The request's own edit, for which data servers are chosen first. If too few are found it is dropped.
    Allocate(E, NewBlock),
    /// The request's own edit. Once it is applied the data servers are to cut the last block of a file.
    Cut(E, Cutting),
    /// Nothing is to be changed: this is the answer.
    NoChange(Reply),
    /// An edit of the service comes first. Once it is applied the request is planned again.
    First(E),
    /// The request is refused, but this edit of the service keeps a part of what it said.
    Refused(E, FsError),
    /// A block of a file is to be recovered, unless its recovery is under way. The answer does not wait for the end of that.
    Recover(Recovery, FsResult<Reply>),
    /// A look at a large subtree comes first. Once it is taken, and the request's [`crate::Looks`] have its answer, the request is
    /// planned again.
    Look(Question),
    /// Replicas of this block have still to be reported. When one is, the request is planned again. The answer to a call that
    /// waits no longer is false.
    Wait(Block),
}

impl<B, E: From<Edit<B>>> From<Planned<B>> for Step<E> {
    fn from(planned: Planned<B>) -> Self {
        match planned {
            Planned::Edit(edit) => Self::Edit(edit.into()),
            Planned::NoChange(reply) => Self::NoChange(reply),
        }
    }
}

impl<E: From<Edit<AddBlockEdit>> + From<Edit<FsyncEdit>>> From<add_block::Plan> for Step<E> {
    fn from(plan: add_block::Plan) -> Self {
        match plan {
            add_block::Plan::New { edit, block } => Self::Allocate(edit.into(), block),
            add_block::Plan::Again(reply) => Self::NoChange(reply),
            add_block::Plan::Refused { edit, error } => Self::Refused(edit.into(), error),
        }
    }
}

impl<E: From<Edit<CreateEdit>> + From<Edit<CompleteEdit>> + From<Edit<MkdirsEdit>>> From<create::Plan>
    for Step<E>
{
    fn from(plan: create::Plan) -> Self {
        match plan {
            create::Plan::Create(freeing) => freeing.into(),
            create::Plan::Parents(edit) => Self::First(edit.into()),
        }
    }
}

impl<E: From<Edit<RenameEdit>> + From<Edit<MoveFileEdit>>> From<rename::Plan> for Step<E> {
    fn from(plan: rename::Plan) -> Self {
        match plan {
            rename::Plan::Rename(edit) => Self::Edit(edit.into()),
            rename::Plan::Move(edit) => Self::Edit(edit.into()),
            rename::Plan::NoChange(reply) => Self::NoChange(reply),
        }
    }
}

impl<E: From<Edit<CompleteEdit>>> From<complete::Plan> for Step<E> {
    fn from(plan: complete::Plan) -> Self {
        match plan {
            complete::Plan::Close(edit) => Self::Edit(edit.into()),
            complete::Plan::Already => Self::NoChange(Reply::Bool(true)),
            complete::Plan::Waiting(block) => Self::Wait(block),
        }
    }
}

impl<E: From<Edit<TruncateEdit>> + From<Edit<TruncateCopyEdit>>> From<truncate::Plan> for Step<E> {
    fn from(plan: truncate::Plan) -> Self {
        match plan {
            truncate::Plan::AtOnce(edit) => Self::Edit(edit.into()),
            truncate::Plan::Cut(edit, cutting) => Self::Cut(edit.into(), cutting),
            truncate::Plan::Copy(edit, cutting) => Self::Cut(edit.into(), cutting),
            truncate::Plan::NoChange(reply) => Self::NoChange(reply),
        }
    }
}

impl<E: From<Edit<SetQuotaEdit>> + From<Edit<AllotEdit>>> From<set_quota::Plan> for Step<E> {
    fn from(plan: set_quota::Plan) -> Self {
        match plan {
            set_quota::Plan::Alone(planned) => planned.into(),
            set_quota::Plan::Shared(edit) => Self::Edit(edit.into()),
        }
    }
}

/// As the answer to a client that asks for it: is the file closed?
impl<E: From<Edit<CompleteEdit>>> From<release_lease::Plan> for Step<E> {
    fn from(plan: release_lease::Plan) -> Self {
        match plan {
            release_lease::Plan::Closed => Self::NoChange(Reply::Bool(true)),
            release_lease::Plan::Close(edit) => Self::Edit(edit.into()),
            release_lease::Plan::Recover(recovery) => Self::Recover(recovery, Ok(Reply::Bool(false))),
            // The client asks again.
            release_lease::Plan::Waiting(_) => Self::NoChange(Reply::Bool(false)),
        }
    }
}

impl<P: Into<Self>, E: From<Edit<CompleteEdit>>> From<Freeing<P>> for Step<E> {
    fn from(freeing: Freeing<P>) -> Self {
        match freeing {
            Freeing::Free(plan) => plan.into(),
            Freeing::Close(edit) => Self::First(edit.into()),
            Freeing::Recover(recovery, refusal) => Self::Recover(recovery, Err(refusal)),
        }
    }
}
