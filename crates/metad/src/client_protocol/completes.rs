//! `complete`, and the calls of it that wait for a data server's report.
//!
//! A writer closes its file the moment the last packet is acknowledged; the data servers' reports are then
//! on their way. Hadoop answers "not yet" and its client sleeps 400 ms; here the call is parked, holding
//! neither a lock nor a thread, until the report is in or a bounded moment has passed.

use super::{
    answers::boolean,
    calls::{self, decode},
    steps::{self, End},
};
use crate::{
    core::Core,
    doors::gate,
    older_answers::lookups,
    partition::{parked::Waiter, turn::Turn},
};
use base::{Block, BlockId, FsResult, InodeId};
use namespace::ops;
use proto::hdfs as p;
use rpc::{Call, Replier};
use serving::Basis;
use std::sync::Arc;

/// Another replica of these blocks was reported: plans the calls again that waited for it.
pub fn wake(core: &Arc<Core>, blocks: &[BlockId]) {
    for waiter in core.partition.parked.wake(blocks) {
        queue(core, waiter);
    }
}

/// This member no longer serves: the one that goes on answers.
pub fn hand_over(core: &Arc<Core>) {
    for waiter in core.partition.parked.take_all() {
        calls::hand_over(core, waiter.call, waiter.reply);
    }
}

pub fn complete(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::CompleteRequestProto>(&call, reply) else { return };
    let request = ops::complete::Request {
        path: request.src,
        holder: request.client_name,
        last: request.last.as_ref().map(super::blocks::block_of),
        inode: InodeId(request.file_id.unwrap_or(0)),
    };
    let deadline = core.moment().plus_ms(core.config.complete_wait_ms);
    if let Err(error) = calls::admit(&core.partition) {
        return calls::refuse(core, call, reply, &error);
    }
    lookups::find(core, call, reply, move |core, call, reply, older| {
        queue(core, Waiter { call, request, reply, deadline, older });
    });
}

fn queue(core: &Arc<Core>, waiter: Waiter) {
    if let Err(error) = calls::admit(&core.partition) {
        return calls::refuse(core, waiter.call, waiter.reply, &error);
    }
    let server = core.clone();
    // It may be another's report that has woken it.
    core.partition.attempt(
        core.in_hand(&waiter.call),
        Box::new(move |turn| match turn {
            Some(turn) => {
                let Waiter { call, mut reply, request, deadline, older } = waiter;
                reply.taken_up(turn.taken_up);
                if let Some(reply) = gate::in_turn(&server, turn, &call, reply) {
                    run(&server, turn, Waiter { call, reply, request, deadline, older });
                }
            }
            None => calls::hand_over(&server, waiter.call, waiter.reply),
        }),
    );
}

fn run(core: &Arc<Core>, turn: &mut Turn<'_>, waiter: Waiter) {
    let before = turn.applied();
    let answer = match turn.knowing(waiter.older, |turn| close(turn, &waiter)) {
        Ok(End::Wait(block)) => return wait(core, turn, block, waiter),
        Ok(End::Answered(essentials)) => essentials.map(|essentials| closed(boolean(essentials))),
        Ok(End::Allocate(..)) => Ok(closed(false)),
        Err(error) => Err(error),
    };
    let basis = if turn.applied() > before { Basis::OwnEdit } else { Basis::Reading };
    calls::after_commit(core, turn, waiter.call, waiter.reply, basis, answer);
}

fn closed(result: bool) -> p::CompleteResponseProto {
    p::CompleteResponseProto { result }
}

fn close(turn: &mut Turn<'_>, waiter: &Waiter) -> FsResult<End> {
    if let Some(essentials) = calls::remembered(turn, &waiter.call)? {
        return Ok(End::Answered(Ok(essentials)));
    }
    steps::follow(turn, &waiter.call, &waiter.request)
}

fn wait(core: &Arc<Core>, turn: &mut Turn<'_>, block: Block, waiter: Waiter) {
    if waiter.deadline <= turn.moment {
        return waiter.not_yet();
    }
    if let Some(waiter) = core.partition.parked.park(block.id, waiter) {
        return waiter.not_yet();
    }
    // The report may have come between the plan and the parking.
    if turn.is_reported(&block) {
        wake(core, &[block.id]);
    }
}
