//! Takes the steps of a request for a change, in the order in which the namespace says them.

use super::safe_mode::refuse_in_safe_mode;
use crate::{
    block_recovery,
    doors::decide,
    partition::turn::{Detour, Turn},
};
use base::{Block, CopyOfCall, FsError, FsResult};
use namespace::{Edit, Plannable, Question, Reply, Step, next_step, ops::add_block::NewBlock};
use rpc::Call;
use serving::{Decision, Known, Rules};

/// The end of a request's steps, as far as they are the same for all requests.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once; a box would be made for each block")]
pub enum End {
    Answered(FsResult<Reply>),
    /// Data servers are to be chosen for the new block. The answer is that of the edit, applied with them.
    Allocate(Edit, NewBlock),
    /// The call waits until another replica of the block is reported, or is answered with false.
    Wait(Block),
}

/// The remembered answer of this call: `Some` if it was carried out before.
pub fn remembered(turn: &Turn<'_>, call: &Call) -> FsResult<Option<Reply>> {
    turn.retry_lookup(&call.origin, fingerprint(call))?.into_result(&call.origin)
}

pub fn fingerprint(call: &Call) -> u64 {
    namespace::fingerprint(call.method, &call.request)
}

/// Whether older copies of this call may still come.
pub fn may_be_noted(call: &Call) -> bool {
    call.origin.copy().is_some_and(CopyOfCall::has_older)
}

/// Keeps the answer to a call that has changed nothing. If older copies of the call may still come, the journal has a note of it, whose
/// commit the answer waits for.
fn keep(turn: &mut Turn<'_>, call: &Call, fingerprint: u64, answer: FsResult<Reply>) -> FsResult<Reply> {
    if may_be_noted(call) {
        let note = turn.plan(&call.caller, call.origin, fingerprint, |namespace, context, _| {
            serving::note(Rules::default(), namespace, context)
        });
        if let Some(note) = note {
            turn.apply(note);
        }
    }
    let (partition, epoch) = (turn.partition(), turn.epoch());
    partition.refusals.lock().put(&call.origin, fingerprint, epoch, answer.clone());
    answer
}

/// Carries a request out: retry cache, refusals, safe mode, and then step by step.
pub fn run<R: Plannable<Outcome: Into<Step>>>(
    turn: &mut Turn<'_>,
    call: &Call,
    request: &R,
) -> FsResult<Reply> {
    match run_to_look(turn, call, request) {
        Ran::Answered(answer) => answer,
        Ran::Look(_) => unreachable!("a plan without looks looks by itself"),
    }
}

/// How far a request has come.
#[allow(
    clippy::large_enum_variant,
    reason = "it is taken apart at once; a box would be made for each change"
)]
pub enum Ran {
    Answered(FsResult<Reply>),
    /// Nothing has changed yet. It is to be carried out again once this look was taken.
    Look(Question),
}

/// Carries a request out like [`run`], if the looks of the turn suffice for it.
pub fn run_to_look<R: Plannable<Outcome: Into<Step>>>(turn: &mut Turn<'_>, call: &Call, request: &R) -> Ran {
    match carry_out(turn, call, request) {
        Ok(ran) => ran,
        Err(error) => Ran::Answered(Err(error)),
    }
}

fn carry_out<R: Plannable<Outcome: Into<Step>>>(
    turn: &mut Turn<'_>,
    call: &Call,
    request: &R,
) -> FsResult<Ran> {
    let (partition, epoch, fingerprint) = (turn.partition(), turn.epoch(), fingerprint(call));
    loop {
        let known = Known {
            origin: &call.origin,
            carried_out: turn.retry_lookup(&call.origin, fingerprint)?,
            refused: partition.refusals.lock().get(&call.origin, fingerprint, epoch),
        };
        let decision = serving::decide(
            known,
            || refuse_in_safe_mode(partition, || request.what()),
            || plan(turn, call, request),
        );
        let lack = turn.take_lack();
        if let Some(questions) = turn.take_unanswered() {
            return Err(go_round(turn, Detour::Ask(questions)));
        }
        if !matches!(decision, Decision::Step(Step::Edit(_) | Step::First(_) | Step::Look(_)))
            && !turn.refuse(|tree| decide::seen(call, tree))
        {
            return Err(go_round(turn, Detour::AskedAnew));
        }
        if let Some(lack) = lack.filter(|_| !matches!(decision, Decision::Step(Step::Look(_)))) {
            return Err(go_round(turn, Detour::Allot(lack)));
        }
        let step = match decision {
            Decision::Step(Step::Look(question)) => return Ok(Ran::Look(question)),
            Decision::Step(step) => step,
            Decision::Told(answer) => return answer.map(|reply| Ran::Answered(Ok(reply))),
            Decision::NotNow(refused) => return Err(refused),
            Decision::NoEdit(answer) => return Ok(Ran::Answered(keep(turn, call, fingerprint, answer))),
        };
        let step = match step {
            Step::Edit(edit) => turn.order(edit).map(Step::Edit),
            Step::First(edit) => turn.order(edit).map(Step::First),
            other => Ok(other),
        };
        let Ok(step) = step else { return Err(go_round(turn, Detour::AskedAnew)) };
        let answer = match take(turn, step) {
            None => match decide::elsewhere(call, turn.namespace()) {
                // The directories that were missing are there, and one of them has another home.
                Some(group) => return Err(go_round(turn, Detour::Elsewhere(group))),
                None => continue,
            },
            Some(End::Answered(Ok(reply))) => Ok(reply),
            Some(End::Answered(refused)) => keep(turn, call, fingerprint, refused),
            // The client asks again for the places, or whether the file is closed.
            Some(End::Allocate(edit, _)) => Ok(turn.apply(edit).reply),
            Some(End::Wait(_)) => Ok(Reply::Bool(false)),
        };
        return Ok(Ran::Answered(answer));
    }
}

/// The call is not answered: it goes on in another turn, or elsewhere. The error reaches nobody.
fn go_round(turn: &mut Turn<'_>, detour: Detour) -> FsError {
    turn.go_round(detour);
    FsError::Retry("The call goes on elsewhere.".into())
}

/// Plans a request, and takes its steps. Nothing is remembered of its copies: it must recognise its own repetition.
pub fn follow<R: Plannable<Outcome: Into<Step>>>(
    turn: &mut Turn<'_>,
    call: &Call,
    request: &R,
) -> FsResult<End> {
    refuse_in_safe_mode(turn.partition(), || request.what())?;
    loop {
        let planned = plan(turn, call, request);
        // A plan that lacks something of a quota has come to nothing.
        if let Some(lack) = turn.take_lack() {
            return Err(go_round(turn, Detour::Allot(lack)));
        }
        let step = planned?;
        if let Some(end) = take(turn, step) {
            return Ok(end);
        }
    }
}

/// The next step of a request.
pub fn plan<R: Plannable<Outcome: Into<Step>>>(turn: &Turn<'_>, call: &Call, request: &R) -> FsResult<Step> {
    turn.plan(&call.caller, call.origin, fingerprint(call), |namespace, context, facts| {
        next_step(request, namespace, context, facts)
    })
}

/// Takes a step. `None`: the request is to be planned again.
pub fn take(turn: &mut Turn<'_>, step: Step) -> Option<End> {
    let answer = match step {
        Step::Edit(edit) => Ok(turn.apply(edit).reply),
        Step::Allocate(edit, block) => return Some(End::Allocate(edit, block)),
        Step::Cut(edit, cutting) => {
            let reply = turn.apply(edit).reply;
            block_recovery::cut(turn, &cutting);
            Ok(reply)
        }
        Step::NoChange(reply) => Ok(reply),
        Step::First(edit) => {
            turn.apply(edit);
            return None;
        }
        Step::Refused(edit, error) => {
            turn.apply(edit);
            Err(error)
        }
        Step::Recover(recovery, answer) => {
            block_recovery::recover(turn, recovery);
            answer
        }
        Step::Wait(block) => return Some(End::Wait(block)),
        Step::Look(_) => unreachable!("a plan without looks looks by itself"),
    };
    Some(End::Answered(answer))
}
