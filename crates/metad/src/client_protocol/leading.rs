//! An answer that rests on reading goes out only if no other member can have been elected before the read.
//!
//! [`serving::Unproved`] decides. The test of the lease is made after the answer was evaluated, and costs a comparison.
//! Answers that have to wait are looked after by a task, which asks the coordinator as well. A member that stops serving
//! hands what waits to the one that goes on.

use super::{
    answers::{Answer, send, waiting_bytes},
    elsewhere,
};
use crate::{
    core::Core,
    member::GroupMember,
    partition::{Partition, leading::Waiting},
};
use base::{Epoch, FsError, FsResult};
use rpc::{Call, Replier};
use serving::{Fate, Question, Reign, Rules};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::sync::oneshot;

/// How often waiting answers are looked at.
const LOOK: Duration = Duration::from_millis(5);

/// This member's lead now. The lease is read first, then whether the member answers, and the epoch last. The lease of a later
/// reign may stand there before that reign is told of; until it is, the member does not answer.
fn reign(member: &GroupMember) -> Reign {
    let holds_lease = member.may_answer();
    let answers = member.answers();
    Reign { holds_lease, answers, epoch: member.epoch() }
}

/// Whether the lease proves what was evaluated before this call, in this epoch: no other member can have been elected by then.
pub fn is_proved(core: &Core, epoch: Epoch) -> bool {
    let group = core.partition.leading.group.as_ref();
    group.is_none_or(|group| group.settings.is_proved(Rules::default(), reign(&core.partition.member), epoch))
}

/// Sends an answer that has just been evaluated, now or as soon as it may go out. `epoch` is the one in which the
/// evaluation began. `call` is asked for only if the answer has to wait. `proved` is called when the answer goes out.
pub fn answer<A: Answer>(
    core: &Arc<Core>,
    epoch: Epoch,
    call: impl FnOnce() -> Call,
    reply: Replier,
    answer: FsResult<A>,
    proved: impl FnOnce() + Send + 'static,
) {
    let group = match &core.partition.leading.group {
        Some(group) if !is_proved(core, epoch) => group,
        _ => {
            proved();
            return send(reply, answer);
        }
    };
    core.partition.leading.waits.fetch_add(1, Ordering::Relaxed);
    let call = call();
    let bytes = waiting_bytes(&call, &answer);
    let send = Box::new(move |reply| {
        proved();
        send(reply, answer);
    });
    let mut state = group.state.lock();
    if let Err((waiting, full)) =
        state.unproved.wait(Waiting { call, reply, send }, bytes, epoch, group.now())
    {
        drop(state);
        return waiting.reply.fs_error(&FsError::Retry(format!("{full}; try again in a moment.")));
    }
    if !std::mem::replace(&mut state.is_attended, true) {
        drop(group.runtime.spawn(attend(core.clone())));
    }
}

/// Looks after the answers that wait, until there are none. While the coordinator is asked, a lease may prove them.
async fn attend(core: Arc<Core>) {
    let Some(group) = &core.partition.leading.group else { return };
    let mut asked: Option<(Question, oneshot::Receiver<bool>)> = None;
    loop {
        let step = {
            let mut state = group.state.lock();
            // Under the lock: a lease that was seen before an answer was evaluated proves nothing about it.
            let reign = reign(&core.partition.member);
            state.unproved.look(reign, group.now())
        };
        finish(&core, step.done);
        if let Some(question) = step.ask {
            // An earlier question has waited too long for its answer, which counts no more.
            asked = Some((question, ask(&core.partition)));
        }
        {
            let mut state = group.state.lock();
            if state.unproved.is_empty() {
                if let Some((question, _)) = asked {
                    // Nobody listens to its answer. The next one to wait may ask at once.
                    state.unproved.answered(question, false, reign(&core.partition.member));
                }
                state.is_attended = false;
                return;
            }
        }
        let Some((question, receiver)) = &mut asked else {
            tokio::time::sleep(LOOK).await;
            continue;
        };
        let Ok(told) = tokio::time::timeout(LOOK, receiver).await else { continue };
        let question = *question;
        asked = None;
        let done = {
            let mut state = group.state.lock();
            state.unproved.answered(question, told == Ok(true), reign(&core.partition.member))
        };
        finish(&core, done);
    }
}

/// Asks the coordinator whether the view is still the one by which this member leads. The answer is false, or the channel
/// is closed, if that could not be confirmed.
fn ask(partition: &Partition) -> oneshot::Receiver<bool> {
    partition.leading.confirmations.fetch_add(1, Ordering::Relaxed);
    let (sender, receiver) = oneshot::channel();
    partition.member.confirm(move |confirmed| {
        // Nobody listens any more once the question was asked anew.
        let _ = sender.send(confirmed.is_ok());
    });
    receiver
}

/// Does what was decided about answers that have waited.
fn finish(core: &Arc<Core>, done: Vec<(Waiting, Fate)>) {
    for (waiting, fate) in done {
        let Waiting { call, reply, send } = waiting;
        match fate {
            Fate::Send => send(reply),
            Fate::HandOver => elsewhere::hand_over(core, call, reply),
            Fate::GiveUp => reply.fs_error(&FsError::NotActive(format!(
                "Operation {} cannot be answered: whether this member still leads its group could not be confirmed for \
                 {} ms.",
                call.method, core.config.group.hold_ms
            ))),
        }
    }
}
