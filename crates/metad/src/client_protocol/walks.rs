//! Reads that look at a great deal: a summary of a large tree, a search through all lost blocks.
//!
//! Each is taken in slices of about half a millisecond, and the namespace is free after each of them: a write that
//! waits gets in between any two. The first slice is looked at in place, so that a small directory is answered as any
//! read. The rest is done by one thread, one slice of each walk in turn: a long walk takes no thread from those that
//! read connections, and a short one does not wait for it.

use super::{answers::Answer, calls};
use crate::{core::Core, doors::gate};
use base::FsResult;
use namespace::{Context, Sight, Walkable};
use rpc::{Call, Replier};
use serving::{Tree, admission};
use std::sync::Arc;

/// The result of a slice.
pub enum Slice<A> {
    /// There is more to look at.
    More,
    Answer(A),
}

/// Runs on a thread of its own until the walks are closed.
pub fn run(core: &Arc<Core>) {
    while let Some(mut walk) = core.walks.next() {
        if walk() {
            core.walks.push(walk);
        }
    }
}

/// A read in slices. `answer` shapes what the walk has found.
pub fn read<R: Walkable + Send + 'static, A: Answer>(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    read: R,
    answer: impl Fn(&R, R::Found) -> A + Send + 'static,
) {
    let mut progress = R::Progress::default();
    in_slices(core, call, reply, move |tree, context| {
        let found = read.step(&mut progress, &tree.namespace, context)?;
        Ok(found.map_or(Slice::More, |found| Slice::Answer(answer(&read, found))))
    });
}

/// Looks slice by slice. The answer may rest on edits in flight, on any of them.
pub fn in_slices<A: Answer>(
    core: &Arc<Core>,
    call: Call,
    reply: Replier,
    mut look: impl FnMut(&Tree, &Context<'_>) -> FsResult<Slice<A>> + Send + 'static,
) {
    if let Err(error) = admission::admit_walk(core.walks.waiting()) {
        return reply.fs_error(&error);
    }
    let passed = gate::walk(core, &core.partition.tree().namespace, &call, reply);
    let Some(reply) = passed else { return };
    // Before the first slice: a walk may outlast a reign, and then its answer mixes the trees of two.
    let Some(epoch) = calls::begin(&core.partition) else { return calls::hand_over(core, call, reply) };
    let mut reply = Some(reply);
    let mut walk = move |core: &Arc<Core>| {
        let Some(wanted) = reply.take_if(|reply| !reply.is_abandoned()) else { return false };
        core.walks.count_slice();
        let _holding = core.in_hand(&call).hold();
        let slice = {
            let tree = core.partition.tree();
            look(&tree, &core.partition.context(&call.caller, Some(call.origin)))
        };
        let answer = match slice {
            Ok(Slice::More) => {
                reply = Some(wanted);
                return true;
            }
            Ok(Slice::Answer(answer)) => Ok(answer),
            Err(error) => Err(error),
        };
        calls::answer_since(core, epoch, &call, wanted, Sight::Everything, |_, _| answer);
        false
    };
    if walk(core) {
        let walker = core.clone();
        core.walks.push(Box::new(move || walk(&walker)));
    }
}
