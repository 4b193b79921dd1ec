//! Calls that have a turn of the writer: how they get it, and how they are answered behind it.

use super::{
    answers::{Answer, send},
    elsewhere::{hand_over, refuse, repeat},
    leading,
    steps::may_be_noted,
};
use crate::{
    core::Core,
    doors::gate,
    older_answers::lookups,
    partition::{Partition, turn::Turn},
};
use base::{FsResult, Sn};
use rpc::{Call, Replier};
use serving::Basis;
use std::sync::Arc;

/// Whether a change is taken.
pub fn admit(partition: &Partition) -> FsResult<()> {
    partition.standing().admit().map_err(|refusal| refusal.error(&partition.group_facts()))
}

/// Hands a call to the writer: `attempt` has its turn, in which it is known whether the call is an old one.
pub fn in_turn(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    attempt: impl FnOnce(&Arc<Core>, &mut Turn<'_>, Call, Replier) + Send + 'static,
) {
    if let Err(error) = admit(&core.partition) {
        return refuse(core, call, reply, &error);
    }
    lookups::find(core, call, reply, move |core, call, mut reply, older| {
        let server = core.clone();
        core.partition.attempt(
            core.in_hand(&call),
            Box::new(move |turn| {
                let Some(turn) = turn else { return hand_over(&server, call, reply) };
                reply.taken_up(turn.taken_up);
                #[cfg(feature = "planted-panics")]
                crate::fatal::planted::strike(&call);
                if let Some(reply) = gate::in_turn(&server, turn, &call, reply) {
                    turn.knowing(older, |turn| attempt(&server, turn, call, reply));
                }
            }),
        );
    });
}

/// Answers a call that found the tree at `before`, once everything that the answer may rest on has committed.
pub fn answer_behind<A: Answer>(
    core: &Arc<Core>,
    turn: &mut Turn<'_>,
    call: Call,
    reply: Replier,
    before: Sn,
    answer: FsResult<A>,
) {
    if let Some(detour) = turn.take_detour() {
        return gate::go_round(core, turn, detour, call, reply);
    }
    let basis = if turn.applied() > before { Basis::OwnEdit } else { Basis::Reading };
    after_commit(core, turn, call, reply, basis, answer);
}

/// Answers once everything that the answer may rest on has committed: a refusal is a read as well.
pub fn after_commit<A: Answer>(
    core: &Arc<Core>,
    turn: &mut Turn<'_>,
    call: Call,
    reply: Replier,
    basis: Basis,
    answer: FsResult<A>,
) {
    let (core, epoch) = (core.clone(), turn.epoch());
    // A refusal rests on more than the edits that came before it.
    let is_own = basis == Basis::OwnEdit && answer.is_ok();
    let release = move |committed: Result<(), &str>| {
        let _holding = core.in_hand(&call).hold();
        match (committed, basis) {
            (Ok(()), Basis::OwnEdit) => {
                if may_be_noted(&call) {
                    core.partition.refusals.lock().proved(&call.origin, epoch);
                }
                send(reply, answer);
            }
            (Ok(()), Basis::Reading) => {
                let (proved, origin) = (core.clone(), call.origin);
                let note = move || proved.partition.refusals.lock().proved(&origin, epoch);
                leading::answer(&core, epoch, || call, reply, answer, note);
            }
            (Err(reason), _) => repeat(&core, call, reply, reason),
        }
    };
    if is_own { turn.after_own_edit(release) } else { turn.after_commit(release) }
}
