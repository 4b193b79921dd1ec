//! Where a call of a client goes that has just come in.

use super::{
    batched,
    decide::{Looked, is_remembered},
    gate,
    gather::gather,
    send::send_on,
};
use crate::{core::Core, forward};
use base::{FsError, GroupId};
use namespace::homes::Decision;
use rpc::{Call, Replier};
use std::{sync::Arc, time::Duration};

/// So often a call goes on at once to the group that is named.
const REDIRECTS_AT_ONCE: u16 = 8;
/// So often it goes on at all: with the pauses, that is two seconds at least.
const REDIRECTS_MAX: u16 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Has calls that come back from another group, which does not decide them, go to the one that does.
pub fn connect(core: &Arc<Core>) {
    let Some(doors) = &core.doors else { return };
    let routing = Arc::downgrade(core);
    let runtime = doors.runtime().clone();
    let redirect: forward::Redirect = Arc::new(move |group, mut call, reply| {
        let routing = routing.clone();
        let go_on = move |call: Call, reply: Replier| {
            let Some(core) = routing.upgrade() else { return };
            match group == core.cluster.group {
                true => to_own(&core, call, reply),
                false => send_on(&core, group, call, reply),
            }
        };
        call.redirects += 1;
        match call.redirects {
            ..REDIRECTS_AT_ONCE => go_on(call, reply),
            // The groups do not agree yet: one of them has still to hear of something.
            REDIRECTS_AT_ONCE..REDIRECTS_MAX => drop(runtime.spawn(async move {
                tokio::time::sleep(PAUSE).await;
                go_on(call, reply);
            })),
            _ => reply.fs_error(&FsError::Retry(format!(
                "The groups of metadata servers do not agree which of them decides {}; try again in a moment.",
                call.method
            ))),
        }
    });
    doors.set_redirect(redirect.clone());
    core.partition.forwarder.set_redirect(redirect);
}

/// Another group says that this one decides the call. The tree of a member that does not lead may be late, so it is not asked.
fn to_own(core: &Arc<Core>, call: Call, reply: Replier) {
    let answering = core.clone();
    let answer = move |call: Call, reply: Replier| (answering.answer)(&answering, call, reply);
    match core.partition.member.is_serving() || core.partition.forwarder.is_alone() {
        true => answer(call, reply),
        false => core.partition.forwarder.take(call, reply, forward::Fate::NotBegun, Box::new(answer)),
    }
}

/// The call, if this group answers it as far as is known here; the group's active looks again. `None`: another group does, and has it.
pub fn route(core: &Arc<Core>, mut call: Call, mut reply: Replier) -> Option<(Call, Replier)> {
    let own = core.cluster.group;
    if own == GroupId::ROOT && !core.partition.has_homes() {
        return Some((call, reply));
    }
    if core.partition.member.is_serving() && gate::sends_on(&call) {
        return Some((call, reply));
    }
    let group = match Looked::at(&call) {
        Some(looked) => {
            (call, reply) = gather(core, &looked, call, reply)?;
            (call, reply) = batched::take_apart(core, &looked, call, reply)?;
            let tree = &core.partition.tree().namespace;
            let group = looked.decision(tree).map_or(own, Decision::group);
            if group != own && is_remembered(&looked, &call, tree) { own } else { group }
        }
        // Of the protocols of metadata servers among each other, and of balancers.
        None => GroupId::ROOT,
    };
    if group == own {
        return Some((call, reply));
    }
    send_on(core, group, call, reply);
    None
}
