//! `complete`, and the calls of it that wait for a data server's report.
//!
//! A writer closes its file the moment the last packet is acknowledged; the data servers' reports are then
//! on their way. Hadoop answers "not yet" and its client sleeps 400 ms; here the call is parked, holding
//! neither a lock nor a thread, until the report is in or a bounded moment has passed.

use super::calls::{self, RestsOn, decode};
use crate::{
    core::Core,
    older_answers::{self, Older},
    turn::Turn,
};
use base::{Block, BlockId, FsResult, InodeId, Moment};
use namespace::ops;
use parking_lot::Mutex;
use proto::hdfs as p;
use rpc::{Call, Replier};
use std::{collections::HashMap, sync::Arc};

/// Calls parked at most; more are answered "not yet" at once.
const PARKED_COUNT_MAX: usize = 100_000;

/// Calls to close a file whose last block was not reported yet.
#[derive(Default)]
pub struct Parked {
    by_block: Mutex<HashMap<BlockId, Vec<Waiter>>>,
}

struct Waiter {
    call: Call,
    request: p::CompleteRequestProto,
    reply: Replier,
    deadline: Moment,
    older: Older,
}

impl Parked {
    /// Another replica of these blocks was reported: plan their calls again.
    pub fn wake(&self, core: &Arc<Core>, blocks: &[BlockId]) {
        let mut parked = self.by_block.lock();
        if parked.is_empty() {
            return;
        }
        let woken: Vec<Waiter> = blocks.iter().filter_map(|id| parked.remove(id)).flatten().collect();
        drop(parked);
        for waiter in woken {
            queue(core, waiter);
        }
    }

    /// Answers "not yet" to those that have waited long enough.
    pub fn expire(&self, now: Moment) {
        let mut expired = Vec::new();
        self.by_block.lock().retain(|_, waiters| {
            expired.extend(waiters.extract_if(.., |waiter| waiter.deadline <= now));
            !waiters.is_empty()
        });
        for waiter in expired {
            waiter.reply.ok(&p::CompleteResponseProto { result: false });
        }
    }

    /// This member no longer serves: the one that goes on answers.
    pub fn hand_over(&self, core: &Arc<Core>) {
        let waiting = std::mem::take(&mut *self.by_block.lock());
        for waiter in waiting.into_values().flatten() {
            calls::hand_over(core, waiter.call, waiter.reply);
        }
    }

    fn is_full(&self) -> bool {
        self.by_block.lock().len() >= PARKED_COUNT_MAX
    }

    fn park(&self, block: BlockId, waiter: Waiter) {
        self.by_block.lock().entry(block).or_default().push(waiter);
    }
}

pub fn complete(core: &Arc<Core>, call: Call, reply: Replier) {
    let Some((request, reply)) = decode::<p::CompleteRequestProto>(&call, reply) else { return };
    let deadline = core.moment().plus_ms(core.config.complete_wait_ms);
    if let Err(error) = calls::admit(core) {
        return calls::refuse(core, call, reply, &error);
    }
    older_answers::find(core, call, reply, move |core, call, reply, older| {
        queue(core, Waiter { call, request, reply, deadline, older });
    });
}

fn queue(core: &Arc<Core>, waiter: Waiter) {
    if let Err(error) = calls::admit(core) {
        return calls::refuse(core, waiter.call, waiter.reply, &error);
    }
    let core = core.clone();
    // It may be another's report that has woken it.
    core.clone().attempt(
        core.in_hand(&waiter.call),
        Box::new(move |turn| match turn {
            Some(turn) => run(turn, waiter),
            None => calls::hand_over(&core, waiter.call, waiter.reply),
        }),
    );
}

fn run(turn: &mut Turn<'_>, waiter: Waiter) {
    let before = turn.applied();
    let answer = match turn.knowing(waiter.older, |turn| close(turn, &waiter)) {
        Ok(Closing::Waiting(block)) => return wait(turn, block, waiter),
        Ok(Closing::Done) => Ok(p::CompleteResponseProto { result: true }),
        Err(error) => Err(error),
    };
    let rests_on = if turn.applied() > before { RestsOn::OwnEdit } else { RestsOn::Reading };
    calls::after_commit(turn, waiter.call, waiter.reply, rests_on, answer);
}

enum Closing {
    Done,
    Waiting(Block),
}

fn close(turn: &mut Turn<'_>, waiter: &Waiter) -> FsResult<Closing> {
    let Waiter { call, request, .. } = waiter;
    if calls::remembered(turn, call)?.is_some() {
        return Ok(Closing::Done);
    }
    calls::refuse_in_safe_mode(turn.core(), || format!("Cannot complete file {}", request.src))?;
    let last = request.last.as_ref().map(super::blocks::block_of);
    let plan =
        turn.plan(&call.caller, call.origin, calls::fingerprint(call), |namespace, context, facts| {
            let request = ops::complete::Request {
                path: &request.src,
                holder: &request.client_name,
                last,
                inode: InodeId(request.file_id.unwrap_or(0)),
            };
            ops::complete::plan(namespace, context, &request, facts)
        })?;
    Ok(match plan {
        ops::complete::Plan::Already => Closing::Done,
        ops::complete::Plan::Waiting(block) => Closing::Waiting(block),
        ops::complete::Plan::Close(edit) => {
            turn.apply(&edit);
            Closing::Done
        }
    })
}

fn wait(turn: &mut Turn<'_>, block: Block, waiter: Waiter) {
    let core = turn.core();
    if waiter.deadline <= turn.moment || core.parked.is_full() {
        return waiter.reply.ok(&p::CompleteResponseProto { result: false });
    }
    core.parked.park(block.id, waiter);
    // The report may have come between the plan and the parking.
    if turn.is_reported(&block) {
        core.parked.wake(core, &[block.id]);
    }
}
