//! The three shapes of a call: a read answered in place, a write answered after its commit, a write whose steps or answer are
//! unusual.

use super::{
    answers::{Answer, waiting_bytes},
    leading, looking, turns,
};
pub use super::{
    elsewhere::{hand_over, refuse, repeat},
    safe_mode::{refuse_in_safe_mode, refuse_unknown_places},
    steps::{fingerprint, remembered, run},
    turns::{admit, after_commit},
};
use crate::{
    audit::lines,
    core::Core,
    doors::gate,
    partition::{Partition, turn::Turn},
    standby_reads,
};
use base::{Epoch, FsResult};
use namespace::{Context, Readable, Reply, Request, Sight};
use prost::Message;
use rpc::{Call, Replier};
use serving::{Tree, admission};
use std::sync::Arc;

/// Decodes the request or answers with why not.
pub fn decode<M: Message + Default + prost::Name>(call: &Call, reply: Replier) -> Option<(M, Replier)> {
    match call.decode::<M>() {
        Ok(request) => Some((request, reply)),
        Err(error) => {
            reply.error(error);
            None
        }
    }
}

/// The epoch of a read that begins now; `None` if this member does not answer.
///
/// The epoch is taken first. A member that was deposed and leads again has taken the entries in between into its tree
/// before it answers again: if it does, the tree is at least that of the epoch taken.
pub fn begin(partition: &Partition) -> Option<Epoch> {
    let epoch = partition.member.epoch();
    partition.member.answers().then_some(epoch)
}

/// Decodes the message of a read and makes its value, or answers with why not. The audit log hears how the read ends.
pub fn asked<M: Message + Default + prost::Name, R: Readable>(
    core: &Arc<Core>,
    call: &Call,
    reply: Replier,
    read: impl FnOnce(M) -> R,
) -> Option<(R, Replier)> {
    let (message, reply) = decode::<M>(call, reply)?;
    let read = read(message);
    let reply = lines::watch_read(core, call, reply, &read);
    Some((read, reply))
}

/// A read: answered by this very thread, unless it may have seen an edit that is not yet durable, or by a member that does not lead, if the read has its
/// point. `answer` shapes what the
/// look has found, while the tree is at hand.
pub fn read<R: Readable, A: Answer>(
    core: &Arc<Core>,
    call: &Call,
    reply: Replier,
    read: &R,
    answer: impl for<'t> FnOnce(&'t Tree, R::Seen<'t>) -> FsResult<A>,
) {
    let look = |tree: &Tree, context: &Context<'_>| answer(tree, read.look(&tree.namespace, context)?);
    // With its point a read may be answered although this member has become the active meanwhile.
    match (call.read_point, begin(&core.partition)) {
        (Some(point), _) => standby_reads::answer(core, point, call, reply, read.sight(), look),
        (None, Some(epoch)) => answer_since(core, epoch, call, reply, read.sight(), look),
        (None, None) => hand_over(core, call.clone(), reply),
    }
}

/// Gives an answer that is no read of the tree, once all edits in sight have committed.
pub fn once_certain<A: Answer>(
    core: &Arc<Core>,
    call: &Call,
    reply: Replier,
    sight: Sight<'_>,
    answer: impl FnOnce() -> FsResult<A>,
) {
    match begin(&core.partition) {
        Some(epoch) => answer_since(core, epoch, call, reply, sight, |_, _| answer()),
        None => hand_over(core, call.clone(), reply),
    }
}

/// Answers a read that was begun in `epoch`, once the edits in sight have committed.
pub fn answer_since<A: Answer>(
    core: &Arc<Core>,
    epoch: Epoch,
    call: &Call,
    reply: Replier,
    sight: Sight<'_>,
    look: impl FnOnce(&Tree, &Context<'_>) -> FsResult<A>,
) {
    let (answer, wait_for, reply) = {
        let tree = core.partition.tree();
        let Some(reply) = gate::look(core, &tree.namespace, call, reply, &sight) else { return };
        let context = core.partition.context(&call.caller, Some(call.origin));
        (look(&tree, &context), tree.rests_on(core.partition.commit.certain(), sight), reply)
    };
    match wait_for {
        None => leading::answer(core, epoch, || call.clone(), reply, answer, || {}),
        Some(_) if core.partition.member.is_reading() => {
            reply.fs_error(&core.partition.group_facts().in_doubt())
        }
        Some(until) => {
            let Some(room) = core.partition.commit.room_for(waiting_bytes(call, &answer)) else {
                return reply.fs_error(&admission::no_room_to_wait());
            };
            let (core, call) = (core.clone(), call.clone());
            core.clone().partition.commit.when(until, move |committed| {
                let _room = room;
                let _holding = core.in_hand(&call).hold();
                match committed {
                    Ok(()) => leading::answer(&core, epoch, || call, reply, answer, || {}),
                    Err(reason) => repeat(&core, call, reply, reason),
                }
            });
        }
    }
}

/// A write in its usual shape: the request is carried out, and answered after the commit.
pub fn write<A: Answer>(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    request: impl Into<Request>,
    answer: impl FnOnce(&Turn<'_>, Reply) -> A + Send + 'static,
) {
    looking::write(core, call, reply, request.into(), |_, _| Ok(()), answer);
}

/// Runs `operate` in the writer's turn and answers with what it gives, after the commit of all it has seen.
pub fn turn<A: Answer>(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    operate: impl FnOnce(&mut Turn<'_>, &Call) -> FsResult<A> + Send + 'static,
) {
    turns::in_turn(core, call, reply, move |core, turn, call, reply| {
        let before = turn.applied();
        let answer = operate(turn, &call);
        turns::answer_behind(core, turn, call, reply, before, answer);
    });
}
