//! The ways of a call that is not answered here: another member is to answer it, or nobody.

use crate::{core::Core, forward::Fate, partition::turn::commit_failed};
use base::FsError;
use rpc::{Call, Replier};
use std::sync::Arc;

/// Passes on a call that was begun here and cannot be answered here. The member that leads now knows its fate.
pub fn repeat(core: &Arc<Core>, call: Call, reply: Replier, reason: &str) {
    if core.partition.forwarder.is_alone() && !call.is_forwarded {
        return reply.fs_error(&commit_failed(reason));
    }
    take(core, call, reply, Fate::Unknown);
}

/// A call of which nothing was begun, by a member that does not serve (any more).
pub fn hand_over(core: &Arc<Core>, call: Call, reply: Replier) {
    if core.partition.forwarder.is_alone() && !call.is_forwarded {
        let error = match core.partition.commit.failure() {
            Some(reason) => commit_failed(&reason),
            None => FsError::Retry("This metadata server is not ready yet.".into()),
        };
        return reply.fs_error(&error);
    }
    take(core, call, reply, Fate::NotBegun);
}

/// A write that was not admitted: for good, or because another member is the one to ask.
pub fn refuse(core: &Arc<Core>, call: Call, reply: Replier, error: &FsError) {
    match error {
        FsError::NotActive(_) => hand_over(core, call, reply),
        _ => reply.fs_error(error),
    }
}

fn take(core: &Arc<Core>, call: Call, reply: Replier, fate: Fate) {
    // Where it is answered then, it is answered anew.
    let call = Call { read_point: None, ..call };
    let serving = core.clone();
    let serve = Box::new(move |call: Call, reply: Replier| (serving.answer)(&serving, call, reply));
    core.partition.forwarder.take(call, reply.unwatched(), fate, serve);
}
