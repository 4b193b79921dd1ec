//! The way of one call to another group.

use crate::{core::Core, directories, forward};
use base::GroupId;
use rpc::{Call, Replier};
use serving::admission;
use std::sync::Arc;

/// Another group answers the call.
pub fn send_on(core: &Arc<Core>, group: GroupId, call: Call, reply: Replier) {
    directories::forget(&core.partition, &call);
    if call.is_forwarded {
        // The door sends it on.
        return reply.error(forward::of_group(group));
    }
    match &core.doors {
        Some(doors) => doors.pass(group, call, reply.unwatched()),
        None => reply.fs_error(&admission::no_door(call.method, core.cluster.group)),
    }
}
