//! The decision about a change that a client asks for.

use crate::broken::{Broken, Rules};
use base::{CallOrigin, FsError, FsResult};
use namespace::{Context, Edit, Namespace, Reply, RetryLookup, Step, ops};

/// Facts about a call that are looked up before it is planned.
#[derive(Debug)]
pub struct Known<'a> {
    pub origin: &'a CallOrigin,
    /// The answer of the retry cache, or of the log behind it.
    pub carried_out: RetryLookup,
    /// The answer of [`crate::Refusals::get`].
    pub refused: Option<FsResult<Reply>>,
}

/// The decision about a change.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "it is taken apart at once; a box would be made for each change"
)]
pub enum Decision {
    /// To be taken. If the call goes on behind it, it is decided again. If the step says an answer, that is kept with
    /// [`crate::Refusals::put`].
    Step(Step),
    /// An earlier copy of the call was answered so.
    Told(FsResult<Reply>),
    /// Nothing changes, for this reason. It is kept with [`crate::Refusals::put`], and the edit of [`note`] is applied before the
    /// answer waits for its commit.
    NoEdit(FsResult<Reply>),
    /// The server takes no change now, or not this copy of the call. That is not kept: a later copy of the call may be taken.
    NotNow(FsError),
}

/// The event that makes an answer true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The commit of an edit that the call has made: it proves that this member leads.
    OwnEdit,
    /// The state that was read: a refusal, or that nothing was left to do. It has to be proved that no other member has
    /// led before the read.
    Reading,
}

/// Decides on a change: a call that was carried out before gets the answer that it got, and so does a late copy of a call
/// that was refused. Any other call is planned, unless `refuse` refuses it first, as safe mode does.
pub fn decide(
    known: Known<'_>,
    refuse: impl FnOnce() -> FsResult<()>,
    plan: impl FnOnce() -> FsResult<Step>,
) -> Decision {
    match known.carried_out.into_result(known.origin) {
        Ok(None) => {}
        Ok(Some(reply)) => return Decision::Told(Ok(reply)),
        Err(mismatch) => return Decision::Told(Err(mismatch)),
    }
    if let Some(answer) = known.refused {
        return Decision::Told(answer);
    }
    if known.carried_out.forbids(known.origin) {
        // Another active has answered, and the journal does not say what. A client that still waits has sent this copy again.
        return Decision::NotNow(FsError::Retry(
            "The call was answered before, and has changed nothing; ask again.".into(),
        ));
    }
    if let Err(refused) = refuse() {
        return Decision::NotNow(refused);
    }
    match plan() {
        Ok(Step::NoChange(reply)) => Decision::NoEdit(Ok(reply)),
        Ok(step) => Decision::Step(step),
        // A client comes again with another copy of the call.
        Err(error @ FsError::Retry(_)) => Decision::NotNow(error),
        Err(error) => Decision::NoEdit(Err(error)),
    }
}

/// The note about a call that is answered and has changed nothing, for the journal; `None` if no other copy of the call can come later.
/// The answer goes out once the note has committed. So no later active carries out an older copy, after the client was told and
/// went on.
pub fn note(rules: Rules, namespace: &Namespace, context: &Context<'_>) -> Option<Edit> {
    if rules.break_rule(Broken::AnswersNotNoted) {
        return None;
    }
    ops::note_answer::plan(namespace, context).map(Into::into)
}

#[cfg(test)]
mod tests;
